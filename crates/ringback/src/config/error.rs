//! Configuration errors, each one line of text that names the place.

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::suggest::{nearest_key, nearest_section};
use super::{env, full_name};

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
    pub(super) fn unknown(section: &str, key: &str, origin: Origin) -> Self {
        let mut unknown = UnknownKey::new(section, key);
        if let Origin::Variable(variable) = &origin {
            unknown.name.clone_from(variable);
            unknown.nearest =
                nearest_key(section, key).map(|key| env::variable(key.section, key.name));
        }
        Self::Unknown { origin, unknown }
    }
}

impl UnknownKey {
    pub(super) fn new(section: &str, key: &str) -> Self {
        let nearest = match key {
            "" => nearest_section(section).map(str::to_owned),
            key => nearest_key(section, key).map(|key| key.full_name()),
        };
        Self { name: full_name(section, key), nearest }
    }
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
