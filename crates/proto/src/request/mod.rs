//! What native tools take and give, one file per area.
//!
//! Times are milliseconds since the Unix epoch. A field that may be absent may also be null.

mod abc;
mod artifact;
mod call;
mod caller;
mod cas;
mod job;
mod meta;
mod open;
mod project;
mod session;
mod studio;
mod token;

pub use abc::*;
pub use artifact::*;
pub use call::*;
pub use caller::*;
pub use cas::*;
pub use job::*;
pub use meta::*;
pub use open::*;
pub use project::*;
pub use session::*;
pub use studio::*;
pub use token::*;

/// Reads null as the type's default, so that a field that may be absent may also be null.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + serde::Deserialize<'de>,
{
    use serde::Deserialize as _;
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A struct of the wire: maps with field names out, maps or positional arrays in.
macro_rules! wire_struct {
    ($($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident: $type:ty,)* })*) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }
    )*};
}
use wire_struct;
