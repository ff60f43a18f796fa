//! The requests and responses of native tools, one file per area.
//!
//! Times are milliseconds since the Unix epoch. A field that may be absent may also be null.

mod abc;
mod artifact;
mod call;
mod caller;
mod cas;
mod container;
mod garden;
mod graph;
mod job;
mod meta;
mod model;
mod project;
mod query;
mod remote_session;
mod session;
mod session_model;
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
pub use garden::*;
pub use graph::*;
pub use job::*;
pub use meta::*;
pub use model::*;
pub use project::*;
pub use query::*;
pub use remote_session::*;
pub use session::*;
pub use session_model::*;
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

/// Reads an empty string as no id, like null: some clients send every field, and leave unused ones
/// empty.
///
/// # Errors
/// When a string is not empty and not an id.
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

/// The origin of an artifact, as given by its caller. Every tool that creates artifacts takes these
/// fields, last and in this order; `wire_struct!` adds them to a request marked `with_lineage`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    /// Its tags.
    pub tags: Vec<String>,
    /// Its creator.
    pub creator: Option<String>,
    /// The artifact it was derived from.
    pub parent_id: Option<crate::ids::ArtifactId>,
    /// The variation set it joins.
    pub variation_set_id: Option<crate::ids::VariationSetId>,
}

/// Defines a wire struct: written as a map with field names, read from a map or a positional array.
/// With `Name with_lineage { .. }` the fields of [`Lineage`] become its own last fields, because
/// positional arrays cannot nest structs.
macro_rules! wire_struct {
    (@one [$($meta:tt)*] $name:ident [with_lineage] { $($fields:tt)* }) => {
        $crate::request::wire_struct!(@one [$($meta)*] $name [] {
            $($fields)*
            /// Tags for the new artifact.
            #[serde(default, deserialize_with = "crate::request::null_as_default")]
            #[schemars(with = "Option<Vec<String>>")]
            tags: Vec<String>,
            /// The creator of the new artifact.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            creator: Option<String>,
            /// The artifact it is derived from, which must exist.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            parent_id: Option<$crate::ids::ArtifactId>,
            /// The variation set it joins.
            #[serde(default, skip_serializing_if = "Option::is_none")]
            variation_set_id: Option<$crate::ids::VariationSetId>,
        });

        impl $name {
            /// Takes the lineage of the new artifact; leaves the tags and the creator empty.
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
pub(crate) use wire_struct;
