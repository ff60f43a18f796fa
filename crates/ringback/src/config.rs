//! The daemon's configuration: parsed whole into a checked type before anything is bound.
//!
//! Later wins: the default of each key, the TOML file, the environment (`RINGBACK_HTTP__LISTEN` for
//! `http.listen`), flags. An unknown key is always an error, with the nearest known name; a bad
//! value is an error with its file and line. An old name of a key works for one release, with a
//! warning. Nothing here reads the process environment directly: [`Environment`] is passed in.

mod agents;
mod background;
mod check;
mod client_tools;
mod dirs;
mod env;
mod error;
mod file;
mod flags;
mod garden;
mod images;
mod known;
mod old_names;
mod providers;
mod quantity;
mod reference;
mod sandbox;
mod section;
mod sections;
mod sessions;
mod table;
mod value;

use std::collections::BTreeMap;
use std::path::PathBuf;

use ringback_egress::{CommandRules, Vault};

pub use agents::Agents;
pub use background::Background;
pub use client_tools::ClientTools;
pub use dirs::{DirError, IpcSockets};
pub use env::Environment;
pub use error::{ConfigError, EXIT_BAD_CONFIG, Origin, UnknownKey};
pub use flags::ServeFlags;
pub use garden::{Garden, GardenStart};
pub use images::Images;
pub(crate) use known::KnownProvider;
pub use old_names::OldName;
pub use providers::{ProviderEntry, Providers, Secrets};
pub use quantity::{Auto, ByteSize, Millis, OptionalLimit, Percent, PlainMillis, Seconds, Span};
pub use sandbox::{Sandbox, SandboxBackend};
pub use section::Key;
pub use sections::{Files, Hoot, Http, Limits, Log, Mcp, Root, Services, Studio, Telemetry};
pub use sessions::{CallerTools, Sessions};
pub use value::{HootEndpoint, LogFilter, LogFormat, OtlpEndpoint, TlsFiles};

use old_names::OldNames;
use section::{Raw, Section, SetError};

/// Every setting of the daemon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Keys outside any section: the directories.
    pub root: Root,
    /// `[http]`
    pub http: Http,
    /// `[hoot]`
    pub hoot: Hoot,
    /// `[clientTools]`
    pub client_tools: ClientTools,
    /// `[sessions]`
    pub sessions: Sessions,
    /// `[providers.NAME]`
    pub providers: Providers,
    /// `[secrets]`
    pub secrets: Secrets,
    /// `[sandbox]`
    pub sandbox: Sandbox,
    /// `[caller_tools]`
    pub caller_tools: CallerTools,
    /// `[mcp]`
    pub mcp: Mcp,
    /// `[limits]`
    pub limits: Limits,
    /// `[files]`
    pub files: Files,
    /// `[studio]`
    pub studio: Studio,
    /// `[studio.services]`
    pub services: Services,
    /// `[garden]`
    pub garden: Garden,
    /// `[background]`
    pub background: Background,
    /// `[log]`
    pub log: Log,
    /// `[telemetry]`
    pub telemetry: Telemetry,
    /// The file that was read, if there is one.
    file: Option<PathBuf>,
    /// Where each key was set, unless it has its default; used in errors.
    origins: BTreeMap<String, Origin>,
    old_names: OldNames,
}

impl Config {
    /// Reads file, environment and flags, and checks the result as a whole.
    ///
    /// # Errors
    /// The first problem, as one line of text.
    pub fn load(flags: &ServeFlags, environment: &Environment) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        if let Some((path, text)) = file::read(flags, environment)? {
            file::apply(&mut config, &path, &text)?;
            config.file = Some(path);
        }
        environment.apply(&mut config)?;
        flags.apply(&mut config)?;
        dirs::resolve(&mut config.root, environment)?;
        config.sandbox.resolve(environment);
        config.check()?;
        if flags.open {
            config.check_open()?;
        }
        Ok(config)
    }

    /// Returns every key, with its documentation and default.
    #[must_use]
    pub fn keys() -> Vec<Key> {
        Self::default().sections().into_iter().flat_map(Section::keys).collect()
    }

    /// Returns the settings in effect as TOML, secrets masked; unset keys are left out.
    #[must_use]
    pub fn to_toml_masked(&self) -> String {
        self.to_table().to_string()
    }

    /// Returns settings with secrets masked: everything, a section, or one key. `None` is an unset
    /// key.
    ///
    /// # Errors
    /// When the section or key is unknown.
    pub fn lookup(
        &self,
        section: Option<&str>,
        key: Option<&str>,
    ) -> Result<Option<toml::Value>, UnknownKey> {
        if section.is_none() && key.is_none() {
            return Ok(Some(self.to_table().into()));
        }
        let name = Name { section: section.unwrap_or_default(), key: key.unwrap_or_default() };
        let value = || self.section(name.section)?.show(key?);
        let table = || self.section(&name.full()).map(|section| Some(self.table(section).into()));
        value().or_else(table).ok_or_else(|| UnknownKey::new(name))
    }

    /// Returns the keys that were set under an old name; each deserves a warning.
    #[must_use]
    pub fn old_names(&self) -> &[OldName] {
        &self.old_names.0
    }

    /// Returns where a key was set, by its full name such as `http.listen`.
    #[must_use]
    pub fn origin(&self, name: &str) -> Origin {
        self.origins.get(name).cloned().unwrap_or(Origin::Default)
    }

    /// Returns all usable providers: the configured ones, and the well-known ones that an agent
    /// names.
    #[must_use]
    pub fn providers_in_use(&self) -> BTreeMap<String, ProviderEntry> {
        let mut providers = self.providers.0.clone();
        for name in self.sessions.agents.0.values().filter_map(|agent| agent.provider.as_ref()) {
            if !providers.contains_key(name) {
                providers.extend(ProviderEntry::known(name).map(|known| (name.clone(), known)));
            }
        }
        providers
    }

    /// Returns all providers that sessions may name, configured or known; those without an address
    /// with what to do about it.
    #[must_use]
    pub fn providers_to_name(&self) -> BTreeMap<String, Result<ProviderEntry, String>> {
        let known = KnownProvider::all().iter().filter_map(|known| {
            let entry = ProviderEntry::known(known.name).map(Ok);
            Some((known.name.to_owned(), entry.or_else(|| known.advice().map(Err))?))
        });
        let configured =
            self.providers.0.iter().map(|(name, entry)| (name.clone(), Ok(entry.clone())));
        known.chain(configured).collect()
    }

    /// Returns the vault with the secrets.
    #[must_use]
    pub fn vault(&self) -> Vault {
        let rules = CommandRules {
            timeout: self.secrets.command_timeout.0,
            kept: self.secrets.command_kept.0,
        };
        Vault::new(self.root.data_dir.join("secrets"), rules)
    }

    /// Returns the daemon's private paths, which are hidden from agents: its directories, its keys
    /// and its configuration.
    #[must_use]
    pub fn private(&self) -> Vec<PathBuf> {
        let dirs = [self.root.data_dir.clone(), self.root.runtime_dir.clone()];
        let of_providers = self.providers.0.values().filter_map(|entry| entry.key_file.clone());
        let of_tls = self.http.tls.iter().map(|files| files.key.clone());
        let of_curve = self.hoot.curve_secret_key_file.clone();
        let files = of_providers.chain(of_tls).chain(of_curve).chain(self.file.clone());
        // Relative paths are relative to the daemon's working directory.
        let here = |path: PathBuf| std::path::absolute(&path).unwrap_or(path);
        dirs.into_iter().chain(files).map(here).collect()
    }

    /// Returns the paths of the daemon's sockets in the runtime directory, if `hoot.ipc` is on.
    #[must_use]
    pub fn ipc_sockets(&self) -> Option<IpcSockets> {
        self.hoot.ipc.then(|| IpcSockets::in_dir(&self.root.runtime_dir))
    }

    /// Creates the data and runtime directories, mode 0700.
    ///
    /// # Errors
    /// When one cannot be created, or exists and other users can enter it.
    pub fn create_dirs(&self) -> Result<(), DirError> {
        dirs::create(&self.root)
    }

    fn set(&mut self, name: Name<'_>, raw: Raw<'_>, origin: Origin) -> Result<(), ConfigError> {
        let name = self.old_names.resolve(name, &origin, &self.origins)?;
        let section =
            self.sections_mut().into_iter().find(|section| section.name() == name.section);
        match section.map_or(Err(SetError::Unknown), |section| section.set(name.key, raw)) {
            Ok(()) => {
                self.origins.insert(name.full(), origin);
                Ok(())
            }
            Err(SetError::Unknown) => Err(ConfigError::unknown(name, origin)),
            Err(SetError::Invalid(reason)) => {
                Err(ConfigError::Invalid { key: name.full(), origin, reason })
            }
        }
    }

    fn section(&self, name: &str) -> Option<&dyn Section> {
        self.sections().into_iter().find(|section| section.name() == name)
    }

    fn sections(&self) -> [&dyn Section; 18] {
        [
            &self.root,
            &self.http,
            &self.hoot,
            &self.client_tools,
            &self.sessions,
            &self.providers,
            &self.secrets,
            &self.sandbox,
            &self.caller_tools,
            &self.mcp,
            &self.limits,
            &self.files,
            &self.studio,
            &self.services,
            &self.garden,
            &self.background,
            &self.log,
            &self.telemetry,
        ]
    }

    fn sections_mut(&mut self) -> [&mut dyn Section; 18] {
        [
            &mut self.root,
            &mut self.http,
            &mut self.hoot,
            &mut self.client_tools,
            &mut self.sessions,
            &mut self.providers,
            &mut self.secrets,
            &mut self.sandbox,
            &mut self.caller_tools,
            &mut self.mcp,
            &mut self.limits,
            &mut self.files,
            &mut self.studio,
            &mut self.services,
            &mut self.garden,
            &mut self.background,
            &mut self.log,
            &mut self.telemetry,
        ]
    }

    fn to_table(&self) -> toml::Table {
        let mut whole = self.root.table();
        let sections = self.sections().into_iter().skip(1);
        for section in sections.filter(|section| !section.name().contains('.')) {
            whole.insert(section.name().to_owned(), self.table(section).into());
        }
        whole
    }

    /// Returns a section with the sections inside it.
    fn table(&self, section: &dyn Section) -> toml::Table {
        let mut table = section.table();
        table.extend(self.sections().into_iter().filter_map(|inner| {
            let (outer, name) = inner.name().split_once('.')?;
            (outer == section.name()).then(|| (name.to_owned(), inner.table().into()))
        }));
        table
    }
}

/// A key as written, not yet known to exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name<'a> {
    section: &'a str,
    key: &'a str,
}

impl<'a> Name<'a> {
    /// Splits a full name, `section.key`.
    fn split(full: &'a str) -> Self {
        let (section, key) = full.rsplit_once('.').unwrap_or(("", full));
        Self { section, key }
    }

    /// Returns `section.key`, or the one that is not empty.
    fn full(self) -> String {
        match (self.section, self.key) {
            ("", key) => key.to_owned(),
            (section, "") => section.to_owned(),
            (section, key) => format!("{section}.{key}"),
        }
    }
}

/// Returns the path of the configuration file: `--config`, `RINGBACK_CONFIG`, or the user's
/// default.
#[must_use]
pub fn config_path(flags: &ServeFlags, environment: &Environment) -> Option<PathBuf> {
    file::locate(flags, environment).map(|located| located.path)
}

#[cfg(test)]
mod tests;
