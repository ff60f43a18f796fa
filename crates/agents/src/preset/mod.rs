//! Agents that are known by name, from one file of data.

mod check;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde::Deserialize;

pub use self::check::{Found, check, find_program};
use crate::files::ConfigFile;
use crate::permission::Permissions;
use crate::template::fill;

static PRESETS: LazyLock<Vec<Preset>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("presets.toml")).expect("a test reads this file");
    file.preset
});

/// All agents that are known.
#[must_use]
pub fn presets() -> &'static [Preset] {
    &PRESETS
}

/// The agent of this name.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    presets().iter().find(|preset| preset.name == name)
}

/// How an agent is started and told of its tools.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Preset {
    /// What it is chosen by.
    pub name: String,
    /// What people call it.
    pub title: String,
    /// The program to look for.
    pub program: String,
    /// How it is talked to.
    pub protocol: PresetProtocol,
    /// How to get it.
    pub install: String,
    args: Vec<String>,
    #[serde(default)]
    args_again: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    allowed: Allowed,
    model: Model,
    #[serde(default, rename = "file")]
    files: Vec<FileTemplate>,
}

/// How an agent is talked to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PresetProtocol {
    /// By the Agent Client Protocol.
    Acp,
    /// By being started for each message.
    OneShot,
}

/// What an agent is given.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// The MCP server with its tools, as the agent sees the program.
    pub inside: &'a str,
    /// The server's arguments.
    pub inside_args: &'a [String],
    /// Its home, as it sees it.
    pub home: &'a str,
    /// The model it is pointed at; without one it uses what it finds itself.
    pub model: Option<&'a ModelDoor>,
    /// Who answers what it asks for. One that cannot ask is told to do nothing it would have to ask
    /// for, unless everything is allowed.
    pub permissions: Permissions,
}

/// Where an agent finds its model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelDoor {
    /// The base URL, without a slash at its end.
    pub url: String,
    /// What the agent shows there. Not the real key: whoever is behind the door has that.
    pub key: String,
    /// The model's name.
    pub model: String,
}

/// An agent that is ready to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prepared {
    /// The program.
    pub program: String,
    /// Its arguments. For an agent of one message each, [`Self::again`] has those for every message
    /// but the first.
    pub args: Vec<String>,
    /// Empty if it cannot continue a conversation, or needs no other arguments to.
    pub again: Vec<String>,
    /// What its environment has.
    pub env: BTreeMap<String, String>,
    /// What it finds in its home.
    pub files: Vec<ConfigFile>,
    /// How it is talked to.
    pub protocol: PresetProtocol,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    preset: Vec<Preset>,
}

/// What is added where everything is allowed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Allowed {
    /// Before the last argument that says where the message is, so at the start of all.
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Model {
    provider: String,
    /// What is added for it.
    #[serde(default)]
    args: Vec<String>,
    env: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTemplate {
    path: PathBuf,
    /// What comes first if there is a model.
    #[serde(default)]
    with_model: String,
    text: String,
}

impl Preset {
    /// Whose API it speaks to its model: `openai`, `anthropic` or `google`.
    #[must_use]
    pub fn provider(&self) -> &str {
        &self.model.provider
    }

    /// Fills everything in.
    #[must_use]
    pub fn prepare(&self, setting: &Setting<'_>) -> Prepared {
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
        Prepared {
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
            // A `-` for the message stays the last.
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
    /// Its name.
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
