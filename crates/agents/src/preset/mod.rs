//! Agents known by name, from one data file.

mod check;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde::Deserialize;

pub use self::check::{InstalledAgent, check, find_program};
use crate::files::ConfigFile;
use crate::permission::Permissions;
use crate::template::fill;

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("presets.toml")).expect("a test reads this file");
    file.preset
});

/// Returns all known agents.
#[must_use]
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// Returns the agent of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.name == name)
}

/// How to start an agent and give it its tools.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// The name for choosing it.
    pub name: String,
    /// Its name for people.
    pub title: String,
    /// The program to look for.
    pub program: String,
    /// Other names under which its packages install it.
    #[serde(default)]
    pub other_names: Vec<String>,
    /// Its protocol.
    pub protocol: PresetProtocol,
    /// The command that installs it.
    pub install: String,
    args: Vec<String>,
    #[serde(default)]
    args_again: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    allowed: AllowAllOptions,
    model: Model,
    #[serde(default, rename = "file")]
    files: Vec<FileTemplate>,
}

/// The protocol of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PresetProtocol {
    /// The Agent Client Protocol.
    Acp,
    /// One run of the program for each message.
    OneShot,
}

/// The values to fill in for an agent.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The MCP server with its tools, as a path that the agent sees.
    pub inside: &'a str,
    /// The server's arguments.
    pub inside_args: &'a [String],
    /// Its home, as it sees it.
    pub home: &'a str,
    /// The model to use; without one the agent uses its own configuration.
    pub model: Option<&'a ModelDoor>,
    /// Who answers its permission requests. An agent that cannot ask is configured to do nothing
    /// that needs permission, unless everything is allowed.
    pub permissions: Permissions,
}

/// How an agent reaches its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDoor {
    /// The base URL, without a trailing slash.
    pub url: String,
    /// The key that the agent presents. Not the real key, which only the model proxy has.
    pub key: String,
    /// The model's name.
    pub model: String,
}

/// An agent that is ready to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PreparedAgent {
    /// The program.
    pub program: String,
    /// Its arguments. If it runs once for each message, [`Self::again`] has those for every message
    /// but the first.
    pub args: Vec<String>,
    /// Empty if it cannot continue a conversation, or needs no other arguments for that.
    pub again: Vec<String>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// The files in its home.
    pub files: Vec<ConfigFile>,
    /// Its protocol.
    pub protocol: PresetProtocol,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    preset: Vec<Preset>,
}

/// Additions if everything is allowed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AllowAllOptions {
    /// Inserted before a final argument that stands for the message, otherwise appended.
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    provider: String,
    /// The model to use if no other is named.
    default: String,
    /// Arguments added if a model is configured.
    #[serde(default)]
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTemplate {
    path: PathBuf,
    /// Text that comes first if a model is configured.
    #[serde(default)]
    with_model: String,
    text: String,
}

impl Preset {
    /// Returns the API it speaks to its model, and the provider it uses if no other is named:
    /// `openai`, `anthropic` or `google`.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.model.provider
    }

    /// Returns its program in these directories, in the format of `PATH`, under any of its names.
    #[must_use]
    pub fn find(&self, path: &OsStr) -> Option<PathBuf> {
        let names = std::iter::once(&self.program).chain(&self.other_names);
        names.into_iter().find_map(|name| find_program(name, path))
    }

    /// Returns the model that it uses if no other is named.
    #[must_use]
    pub fn default_model(&self) -> &str {
        &self.model.default
    }

    /// Fills in all values.
    #[must_use]
    pub fn prepare(&self, setting: &Setting<'_>) -> PreparedAgent {
        let inside_args = serde_json::Value::from(setting.inside_args).to_string();
        let nowhere = ModelDoor { url: String::new(), key: String::new(), model: String::new() };
        let door = setting.model.unwrap_or(&nowhere);
        let values = [
            ("inside", setting.inside),
            ("inside_args", &inside_args),
            ("home", setting.home),
            ("model", &door.model),
            ("model_url", &door.url),
            ("model_key", &door.key),
        ];
        let file = |file: &FileTemplate| {
            let first = if setting.model.is_some() { file.with_model.trim_start() } else { "" };
            let text = format!("{first}{}", file.text.trim_start());
            ConfigFile { path: file.path.clone(), text: fill(&text, &values) }
        };
        PreparedAgent {
            program: self.program.clone(),
            args: self.arguments(&self.args, setting, &values),
            again: self.arguments(&self.args_again, setting, &values),
            env: self.environment(setting, &values),
            files: self.files.iter().map(file).collect(),
            protocol: self.protocol,
        }
    }

    fn arguments(
        &self,
        args: &[String],
        setting: &Setting<'_>,
        values: &[(&str, &str)],
    ) -> Vec<String> {
        let mut added = Vec::new();
        if setting.permissions == Permissions::Allow {
            added.extend(self.allowed.args.iter().cloned());
        }
        if setting.model.is_some() {
            added.extend(self.model.args.iter().map(|arg| fill(arg, values)));
        }
        let mut args: Vec<_> = args.iter().map(|arg| fill(arg, values)).collect();
        if !args.is_empty() {
            // A `-` for the message stays last.
            let end = args.len() - usize::from(args.last().is_some_and(|arg| arg == "-"));
            args.splice(end..end, added);
        }
        args
    }

    fn environment(
        &self,
        setting: &Setting<'_>,
        values: &[(&str, &str)],
    ) -> BTreeMap<String, String> {
        let mut env = self.env.clone();
        if setting.permissions == Permissions::Allow {
            env.extend(self.allowed.env.clone());
        }
        if setting.model.is_some() {
            let filled = |(name, value): (&String, &String)| (name.clone(), fill(value, values));
            env.extend(self.model.env.iter().map(filled));
        }
        env
    }
}

impl PresetProtocol {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::OneShot => "one-shot",
        }
    }
}

#[cfg(test)]
mod tests;
