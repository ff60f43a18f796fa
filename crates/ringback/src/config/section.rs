//! One declaration per section: the only source of its keys, types, defaults and documentation.

use toml::de::DeValue;

use super::Name;

/// A key as the reference page shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The section; empty for keys outside any.
    pub section: &'static str,
    /// The key within its section.
    pub name: &'static str,
    /// The kind of value.
    pub kind: &'static str,
    /// Its default, `None` where it is not set or depends on the user's directories.
    pub default: Option<toml::Value>,
    /// Its description.
    pub doc: &'static str,
}

/// A value as given.
#[derive(Clone, Copy, Debug)]
pub(super) enum Raw<'a> {
    /// From a file, with a type.
    Toml(&'a DeValue<'a>),
    /// From the environment or a flag: text, parsed as the key's type.
    Text(&'a str),
}

/// Why a key could not be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SetError {
    /// The section has no such key.
    Unknown,
    /// The value is bad; the text names what was expected and what was found.
    Invalid(String),
}

/// A section of the configuration, by name.
pub(super) trait Section {
    /// Returns its name; empty for keys outside any section.
    fn name(&self) -> &'static str;
    /// Returns its keys, in the order of declaration.
    fn keys(&self) -> Vec<Key>;
    /// Sets a key.
    fn set(&mut self, key: &str, raw: Raw<'_>) -> Result<(), SetError>;
    /// Returns the value of a key, masked; `None` if the key is unknown, `Some(None)` if it is not
    /// set.
    fn show(&self, key: &str) -> Option<Option<toml::Value>>;
    /// Returns every key that is set, masked.
    fn table(&self) -> toml::Table {
        let shown =
            |key: Key| self.show(key.name).flatten().map(|value| (key.name.to_owned(), value));
        self.keys().into_iter().filter_map(shown).collect()
    }
}

impl Key {
    /// Returns the full name, `section.key`.
    #[must_use]
    pub fn full_name(&self) -> String {
        self.as_name().full()
    }

    /// Returns the environment variable that sets it.
    #[must_use]
    pub fn variable(&self) -> String {
        super::env::variable(self.as_name())
    }

    pub(super) const fn as_name(&self) -> Name<'static> {
        Name { section: self.section, key: self.name }
    }
}

/// Declares a section: `pub struct Http = "http" { /// doc \n pub key: Type = default, }`.
macro_rules! section {
    (
        $(#[doc = $section_doc:literal])+
        $visibility:vis struct $Section:ident = $section:literal {
            $($(#[doc = $doc:literal])+ pub $key:ident: $Type:ty = $default:expr,)+
        }
    ) => {
        $(#[doc = $section_doc])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        $visibility struct $Section {
            $($(#[doc = $doc])+ pub $key: $Type,)+
        }

        impl Default for $Section {
            fn default() -> Self {
                Self { $($key: $default,)+ }
            }
        }

        impl $crate::config::section::Section for $Section {
            fn name(&self) -> &'static str {
                $section
            }

            fn keys(&self) -> Vec<$crate::config::section::Key> {
                let default = Self::default();
                vec![$($crate::config::section::Key {
                    section: $section,
                    name: stringify!($key),
                    kind: <$Type as $crate::config::value::Value>::KIND,
                    default: $crate::config::value::Value::show(&default.$key),
                    doc: concat!($($doc),+).trim_ascii(),
                }),+]
            }

            fn set(
                &mut self,
                key: &str,
                raw: $crate::config::section::Raw<'_>,
            ) -> Result<(), $crate::config::section::SetError> {
                match key {
                    $(stringify!($key) => {
                        self.$key = $crate::config::value::Value::parse(raw)
                            .map_err($crate::config::section::SetError::Invalid)?;
                    })+
                    _ => return Err($crate::config::section::SetError::Unknown),
                }
                Ok(())
            }

            fn show(&self, key: &str) -> Option<Option<toml::Value>> {
                match key {
                    $(stringify!($key) => Some($crate::config::value::Value::show(&self.$key)),)+
                    _ => None,
                }
            }
        }
    };
}

pub(super) use section;
