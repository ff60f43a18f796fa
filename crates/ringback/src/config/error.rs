//! Configuration errors, each one line of text that names the place.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::section::Key;
use super::{Config, Name, env, old_names};
use crate::nearest::nearest_by;

/// The exit code for a bad configuration.
pub const EXIT_BAD_CONFIG: u8 = 64;

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The default.
    Default,
    /// A line of a file, counted from 1.
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
    /// A flag of the command line.
    Flag(&'static str),
}

/// Why the configuration cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration file `{}`", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system error.
        #[source]
        source: io::Error,
    },
    /// The file is not TOML.
    #[error("{origin}: {message}")]
    Syntax {
        /// File and line.
        origin: Origin,
        /// The parser's message, on one line.
        message: String,
    },
    /// An unknown key.
    #[error("{origin}: {unknown}")]
    Unknown {
        /// Where it was set.
        origin: Origin,
        /// The key and the nearest known one.
        unknown: UnknownKey,
    },
    /// A bad value.
    #[error("{origin}: bad value for `{key}`: {reason}")]
    Invalid {
        /// The full name of the key.
        key: String,
        /// Where it was set.
        origin: Origin,
        /// What was expected, what was found, and what to do.
        reason: String,
    },
    /// A key was set under its old name and its new one.
    #[error("{origin}: `{old}` is the old name of `{new}`, and both are set; remove `{old}`")]
    TwoNames {
        /// The second of the two places.
        origin: Origin,
        /// The old name.
        old: String,
        /// The new name.
        new: String,
    },
    /// No home directory to put a default into.
    #[error(
        "no default for the data directory: neither `XDG_DATA_HOME` nor `HOME` is set to an absolute \
         path; set `data_dir`, `RINGBACK_DATA_DIR` or `--data-dir`"
    )]
    NoHome,
}

/// An unknown key or section.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownKey {
    /// The name as given.
    pub name: String,
    /// The nearest known name, if one is near.
    pub nearest: Option<String>,
}

impl ConfigError {
    pub(super) fn unknown(name: Name<'_>, origin: Origin) -> Self {
        let mut unknown = UnknownKey::new(name);
        if let Origin::Variable(variable) = &origin {
            unknown.name.clone_from(variable);
            unknown.nearest = nearest_key(name).map(|key| env::variable(key.as_name()));
        }
        Self::Unknown { origin, unknown }
    }
}

impl UnknownKey {
    pub(super) fn new(name: Name<'_>) -> Self {
        let nearest = match name.key {
            "" => nearest_section(name.section).map(str::to_owned),
            _ => nearest_key(name).map(|key| key.full_name()),
        };
        Self { name: name.full(), nearest }
    }
}

/// Returns the key that was probably meant.
fn nearest_key(name: Name<'_>) -> Option<Key> {
    let name = Name { section: old_names::section(name.section), ..name };
    nearest_by(&name.full(), Config::keys(), Key::full_name)
}

/// Returns the section that was probably meant.
fn nearest_section(section: &str) -> Option<&'static str> {
    nearest_by(section, Config::keys(), |key| key.section.to_owned()).map(|key| key.section)
}

impl fmt::Display for UnknownKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown key `{}`", self.name)?;
        match &self.nearest {
            Some(nearest) => write!(f, "; did you mean `{nearest}`?"),
            None => f.write_str("; see docs/configuration.md for all keys"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(name) => write!(f, "flag {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_name_is_suggested_and_a_far_one_is_not() {
        let near = |section, key| UnknownKey::new(Name { section, key }).nearest;
        assert_eq!(near("http", "lisen").as_deref(), Some("http.listen"));
        assert_eq!(near("htp", "listen").as_deref(), Some("http.listen"));
        assert_eq!(near("", "datadir").as_deref(), Some("data_dir"));
        assert_eq!(near("models", "yuee").as_deref(), Some("studio.services.yue"));
        assert_eq!(near("zebra", "crossing"), None);
        assert_eq!((near("htp", "").as_deref(), near("zebra", "")), (Some("http"), None));
    }
}
