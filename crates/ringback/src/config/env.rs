//! The environment as a value, and the keys it can set.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::section::Raw;
use super::{Config, ConfigError, Key, Name, Origin, old_names};

/// The prefix of every variable of this program.
const PREFIX: &str = "RINGBACK_";

/// Stands for the dots between sections and keys.
const NESTING: &str = "__";

/// The variables of a process, so that tests need not touch their own.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, OsString>);

impl std::fmt::Debug for Environment {
    /// Shows only names: values may be secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Environment {
    /// Returns the variables of this process.
    #[must_use]
    pub fn of_process() -> Self {
        std::env::vars_os().collect()
    }

    /// Returns the value of a variable, unless it is empty.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.0.get(name).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// Returns the variables with chosen names.
    pub(crate) fn chosen(
        &self,
        is_chosen: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = (&str, &OsStr)> {
        let all = self.0.iter().map(|(name, value)| (name.as_str(), value.as_os_str()));
        all.filter(move |(name, _)| is_chosen(name))
    }

    /// Returns the directory in a variable; a relative one is ignored, as the XDG specification
    /// demands.
    pub(crate) fn absolute_dir(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(Path::new).filter(|path| path.is_absolute()).map(Path::to_owned)
    }

    pub(super) fn apply(&self, config: &mut Config) -> Result<(), ConfigError> {
        for (variable, value) in &self.0 {
            let Some((section, key)) = key_of(variable) else { continue };
            let name = Name { section: &section, key: &key };
            let origin = Origin::Variable(variable.clone());
            let Some(text) = value.to_str() else {
                let reason = "the value is not UTF-8".to_owned();
                return Err(ConfigError::Invalid { key: name.full(), origin, reason });
            };
            config.set(name, Raw::Text(text), origin)?;
        }
        Ok(())
    }
}

impl<N: Into<OsString>, V: Into<OsString>> FromIterator<(N, V)> for Environment {
    /// Leaves out variables whose name is not UTF-8: they cannot be ours.
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        let named = |(name, value): (N, V)| Some((name.into().into_string().ok()?, value.into()));
        Self(variables.into_iter().filter_map(named).collect())
    }
}

/// Returns the variable that sets a key.
pub(super) fn variable(name: Name<'_>) -> String {
    format!("{PREFIX}{}", name.full().replace('.', NESTING)).to_uppercase()
}

/// Returns the key that a variable sets: any name with the nesting mark, or a key outside sections.
/// Others with our prefix (`RINGBACK_TOKEN`, `RINGBACK_CONFIG`) are not keys.
fn key_of(given: &str) -> Option<(String, String)> {
    let name = given.strip_prefix(PREFIX)?.to_lowercase();
    let keys = Config::keys();
    let mut known = keys.iter().map(Key::as_name).chain(old_names::old_names());
    if let Some(Name { section, key }) = known.find(|name| variable(*name) == given) {
        return Some((section.to_owned(), key.to_owned()));
    }
    name.split_once(NESTING).map(|(section, key)| (section.to_owned(), key.to_owned()))
}
