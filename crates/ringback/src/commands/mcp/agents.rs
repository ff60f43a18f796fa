//! The agents that can be configured: where each keeps its settings, and in which format.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde::Serialize;

use super::edit::{Block, EditError, JsonPlace};
use crate::config::Environment;

/// The name of our entry.
const NAME: &str = "ringback";

/// An agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Agent {
    /// Claude Code, for this user
    ClaudeCode,
    /// Codex
    Codex,
    /// opencode
    Opencode,
    /// goose
    Goose,
    /// Gemini CLI
    Gemini,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
}

/// A change to a settings file.
enum Change {
    Json(JsonPlace, String),
    Lines(Block, String),
}

#[derive(Serialize)]
struct Command<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'static str>,
    command: &'a str,
    args: [&'static str; 1],
}

#[derive(Serialize)]
struct OpencodeCommand<'a> {
    r#type: &'static str,
    command: [&'a str; 2],
    enabled: bool,
}

impl Agent {
    /// The name on the command line.
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }

    /// Returns the path of its settings; `None` without a home directory.
    pub(crate) fn file(self, environment: &Environment) -> Option<PathBuf> {
        let home = || environment.get("HOME").map(PathBuf::from);
        let config = || {
            let set = environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
            set.filter(|path| path.is_absolute()).or_else(|| Some(home()?.join(".config")))
        };
        match self {
            Self::ClaudeCode => Some(home()?.join(".claude.json")),
            Self::Codex => Some(home()?.join(".codex/config.toml")),
            Self::Opencode => Some(config()?.join("opencode/opencode.json")),
            Self::Goose => Some(config()?.join("goose/config.yaml")),
            Self::Gemini => Some(home()?.join(".gemini/settings.json")),
            Self::Cursor => Some(home()?.join(".cursor/mcp.json")),
            Self::Vscode => Some(config()?.join("Code/User/mcp.json")),
        }
    }

    /// Adds an entry that starts `program` to its settings.
    pub(super) fn with_entry(self, text: &str, program: &Path) -> Result<String, EditError> {
        match self.change(&program.to_string_lossy()) {
            Change::Json(place, entry) => place.put(text, &entry),
            Change::Lines(block, lines) => Ok(block.put(text, &lines)),
        }
    }

    /// Removes the entry from its settings.
    pub(super) fn without_entry(self, text: &str) -> Result<String, EditError> {
        match self.change("") {
            Change::Json(place, _) => place.take(text),
            Change::Lines(block, _) => Ok(block.take(text)),
        }
    }

    fn change(self, program: &str) -> Change {
        let json = |servers, r#type| {
            let entry = Command { r#type, command: program, args: ["mcp"] };
            Change::Json(JsonPlace { servers, name: NAME }, pretty(&entry))
        };
        // A quoted string is the same in JSON, TOML and YAML.
        let quoted = serde_json::to_string(program).expect("a text can be written");
        match self {
            Self::ClaudeCode => json("mcpServers", Some("stdio")),
            Self::Gemini | Self::Cursor => json("mcpServers", None),
            Self::Vscode => json("servers", Some("stdio")),
            Self::Opencode => {
                let entry =
                    OpencodeCommand { r#type: "local", command: [program, "mcp"], enabled: true };
                Change::Json(JsonPlace { servers: "mcp", name: NAME }, pretty(&entry))
            }
            Self::Codex => {
                let block = Block {
                    under: "",
                    head: "[mcp_servers.ringback]",
                    continues: |line| {
                        !line.starts_with('[') || line.starts_with("[mcp_servers.ringback.")
                    },
                };
                Change::Lines(block, format!("command = {quoted}\nargs = [\"mcp\"]\n"))
            }
            Self::Goose => {
                let block = Block {
                    under: "extensions:",
                    head: "  ringback:",
                    continues: |line| line.starts_with("    "),
                };
                let lines = format!(
                    "    type: stdio\n    name: ringback\n    enabled: true\n    cmd: {quoted}\n    \
                     args: [mcp]\n    timeout: 300\n"
                );
                Change::Lines(block, lines)
            }
        }
    }
}

fn pretty(entry: &impl Serialize) -> String {
    serde_json::to_string_pretty(entry).expect("plain data can be written")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::ValueEnum as _;

    use super::Agent;

    /// REQ: issue "mcp install AGENT and uninstall".
    #[test]
    fn every_agent_s_settings_gain_and_lose_one_entry() {
        let program = Path::new("/opt/a \"b\"/ringback");
        for agent in Agent::value_variants() {
            let put = agent.with_entry("", program).unwrap();
            assert!(put.contains("ringback") && put.contains("mcp"), "{put}");
            assert_eq!(agent.with_entry(&put, program).unwrap(), put, "{agent:?}: twice is once");
            let taken = agent.without_entry(&put).unwrap();
            assert!(!taken.contains("/opt/a"), "{taken}");
        }
        let toml = Agent::Codex.with_entry("model = \"x\"\n", program).unwrap();
        let parsed: toml::Table = toml.parse().unwrap();
        let entry = &parsed["mcp_servers"]["ringback"];
        assert_eq!(entry["command"].as_str().unwrap(), program.to_str().unwrap());
    }

    #[test]
    fn settings_are_where_the_agents_look_for_them() {
        let environment = [("HOME", "/home/ada")].into_iter().collect();
        let file = |agent: Agent| agent.file(&environment).unwrap().display().to_string();
        assert_eq!(file(Agent::ClaudeCode), "/home/ada/.claude.json");
        assert_eq!(file(Agent::Goose), "/home/ada/.config/goose/config.yaml");
        assert_eq!(Agent::ClaudeCode.name(), "claude-code");
    }
}
