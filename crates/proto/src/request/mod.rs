//! What native tools take and give, one file per area.
//!
//! Times are milliseconds since the Unix epoch. A field that may be absent may also be null.

mod artifact;
mod cas;
mod job;
mod meta;
mod token;

pub use artifact::*;
pub use cas::*;
pub use job::*;
pub use meta::*;
pub use token::*;

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
