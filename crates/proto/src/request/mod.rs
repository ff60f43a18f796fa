//! What native tools take and give, one file per area.
//!
//! Times are milliseconds since the Unix epoch. A field that may be absent may also be null.

mod abc;
mod artifact;
mod call;
mod caller;
mod cas;
mod container;
mod job;
mod meta;
mod model;
mod open;
mod project;
mod session;
mod spending;
mod studio;
mod token;
mod workspace;

pub use abc::*;
pub use artifact::*;
pub use call::*;
pub use caller::*;
pub use cas::*;
pub use container::*;
pub use job::*;
pub use meta::*;
pub use model::*;
pub use open::*;
pub use project::*;
pub use session::*;
pub use spending::*;
pub use studio::*;
pub use token::*;
pub use workspace::*;

/// Reads null as the type's default, so that a field that may be absent may also be null.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Default + serde::Deserialize<'de>,
{
    use serde::Deserialize as _;
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// Reads an empty text as no id, like null: some clients send every field, and fill what they do not
/// mean with nothing.
///
/// # Errors
/// When a text that is not empty is no id.
pub fn empty_as_none<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: std::str::FromStr<Err: std::fmt::Display>,
{
    use serde::Deserialize as _;
    match Option::<String>::deserialize(deserializer)? {
        Some(text) if !text.is_empty() => text.parse().map(Some).map_err(serde::de::Error::custom),
        Some(_) | None => Ok(None),
    }
}

/// Where an artifact comes from, as its caller says. Every tool that makes artifacts takes these
/// fields, last and in this order; `wire_struct!` writes them into a request that is `with_lineage`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    /// Labels.
    pub tags: Vec<String>,
    /// Who made it.
    pub creator: Option<String>,
    /// What it was made from.
    pub parent_id: Option<crate::ids::ArtifactId>,
    /// The set of variations it joins.
    pub variation_set_id: Option<crate::ids::VariationSetId>,
}

/// A struct of the wire: maps with field names out, maps or positional arrays in. Written
/// `Name with_lineage { .. }`, it ends with the fields of [`Lineage`] as its own: positional arrays
/// know no structs inside structs.
macro_rules! wire_struct {
    (@one [$($meta:tt)*] $name:ident [with_lineage] { $($fields:tt)* }) => {
        $crate::request::wire_struct!(@one [$($meta)*] $name [] {
            $($fields)*
            /// Labels.
            #[serde(default, deserialize_with = "crate::request::null_as_default")]
            #[schemars(with = "Option<Vec<String>>")]
            tags: Vec<String>,
            /// Who made it.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            creator: Option<String>,
            /// What it was made from; must exist.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            parent_id: Option<$crate::ids::ArtifactId>,
            /// The set of variations it joins.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            variation_set_id: Option<$crate::ids::VariationSetId>,
        });

        impl $name {
            /// Where what it makes comes from; leaves the labels and the creator empty.
            #[must_use]
            pub fn take_lineage(&mut self) -> $crate::request::Lineage {
                $crate::request::Lineage {
                    tags: std::mem::take(&mut self.tags),
                    creator: self.creator.take(),
                    parent_id: self.parent_id,
                    variation_set_id: self.variation_set_id,
                }
            }
        }
    };
    (@one [$($meta:tt)*] $name:ident [] {
        $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
    }) => {
        $($meta)*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $type,)*
        }
    };
    ($($(#[$meta:meta])* $name:ident $($with_lineage:ident)? { $($fields:tt)* })*) => {$(
        $crate::request::wire_struct!(@one [$(#[$meta])*] $name [$($with_lineage)?] { $($fields)* });
    )*};
}
use wire_struct;
