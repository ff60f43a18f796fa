//! Flags of `serve` that override keys.

use std::path::PathBuf;

use super::section::Raw;
use super::{Config, ConfigError, Name, Origin};

/// The flags of `serve`. Values stay text until they are parsed as their key's type, so that a bad
/// one is reported like any other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServeFlags {
    /// `--config`: the file to read; it must exist.
    pub config: Option<PathBuf>,
    /// `--data-dir`: overrides `data_dir`.
    pub data_dir: Option<String>,
    /// `--http`: overrides `http.listen`.
    pub http: Option<String>,
    /// `--hoot`: overrides `hoot.listen`.
    pub hoot: Option<String>,
    /// `--iopub`: overrides `hoot.iopub`.
    pub iopub: Option<String>,
    /// `--open`: no tokens. Deliberately not a key: it is for experiments. Refused by
    /// [`Config::load`] unless every listener is on loopback.
    pub open: bool,
}

impl ServeFlags {
    pub(super) fn apply(&self, config: &mut Config) -> Result<(), ConfigError> {
        let overrides = [
            ("--data-dir", "", "data_dir", &self.data_dir),
            ("--http", "http", "listen", &self.http),
            ("--hoot", "hoot", "listen", &self.hoot),
            ("--iopub", "hoot", "iopub", &self.iopub),
        ];
        for (flag, section, key, value) in overrides {
            if let Some(text) = value {
                config.set(Name { section, key }, Raw::Text(text), Origin::Flag(flag))?;
            }
        }
        Ok(())
    }
}
