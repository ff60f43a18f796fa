//! Enums that are names on the wire.

/// Defines an enum whose variants are written as these names, with `ALL` and `as_str`.
macro_rules! wire_enum {
    ($(
        $(#[$meta:meta])*
        $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }
    )+) => {$(
        $(#[$meta])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash,
            serde::Serialize, serde::Deserialize, schemars::JsonSchema,
        )]
        pub enum $name {
            $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];

            /// Returns the name on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    )+};
}
pub(crate) use wire_enum;
