//! The TOML file: its path, and its keys with their lines.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::section::Raw;
use super::{Config, ConfigError, Environment, Name, Origin, ServeFlags, old_names};

/// The path of the file, and whether it was given explicitly.
#[derive(Clone, Debug)]
pub(super) struct ConfigPath {
    pub(super) path: PathBuf,
    /// A file given explicitly must exist; the default one need not.
    must_exist: bool,
}

/// A file being read, to turn offsets into lines.
struct Source<'a> {
    path: &'a Path,
    text: &'a str,
}

pub(super) fn locate(flags: &ServeFlags, environment: &Environment) -> Option<ConfigPath> {
    let named =
        flags.config.clone().or_else(|| environment.get("RINGBACK_CONFIG").map(PathBuf::from));
    if let Some(path) = named {
        return Some(ConfigPath { path, must_exist: true });
    }
    let home = || environment.absolute_dir("HOME").map(|home| home.join(".config"));
    let config_home = environment.absolute_dir("XDG_CONFIG_HOME").or_else(home)?;
    Some(ConfigPath { path: config_home.join("ringback").join("config.toml"), must_exist: false })
}

/// Reads the file; `None` if the default one does not exist.
pub(super) fn read(
    flags: &ServeFlags,
    environment: &Environment,
) -> Result<Option<(PathBuf, String)>, ConfigError> {
    let Some(ConfigPath { path, must_exist }) = locate(flags, environment) else { return Ok(None) };
    match fs::read_to_string(&path) {
        Ok(text) => Ok(Some((path, text))),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !must_exist => Ok(None),
        Err(source) => Err(ConfigError::Read { path, source }),
    }
}

/// Sets every key of the file.
pub(super) fn apply(config: &mut Config, path: &Path, text: &str) -> Result<(), ConfigError> {
    let source = Source { path, text };
    let document = DeTable::parse(text).map_err(|error| ConfigError::Syntax {
        origin: source.origin(error.span().unwrap_or_default()),
        message: error.message().replace('\n', "; "),
    })?;
    for (key, value) in document.get_ref() {
        if let DeValue::Table(section) = value.get_ref() {
            source.apply_section(config, key.get_ref(), section, source.origin(key.span()))?;
        } else {
            let name = Name { section: "", key: key.get_ref() };
            config.set(name, Raw::Toml(value.get_ref()), source.origin(key.span()))?;
        }
    }
    Ok(())
}

impl Source<'_> {
    fn apply_section(
        &self,
        config: &mut Config,
        section: &str,
        table: &DeTable<'_>,
        origin: Origin,
    ) -> Result<(), ConfigError> {
        if config.section(old_names::section(section)).is_none() || section.is_empty() {
            return Err(ConfigError::unknown(Name { section, key: "" }, origin));
        }
        for (key, value) in table {
            let (name, origin) = (Name { section, key: key.get_ref() }, self.origin(key.span()));
            let inner = value.get_ref().as_table();
            match inner.filter(|_| config.section(&name.full()).is_some()) {
                Some(inner) => self.apply_section(config, &name.full(), inner, origin)?,
                None => config.set(name, Raw::Toml(value.get_ref()), origin)?,
            }
        }
        Ok(())
    }

    fn origin(&self, span: Range<usize>) -> Origin {
        let before = self.text.as_bytes().iter().take(span.start);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        Origin::File { path: self.path.to_owned(), line }
    }
}
