//! `[sessions]` and `[callerTools]`: how agents run, and how their callers are reached.

#![expect(non_snake_case, reason = "keys are spelled as their users know them")]

use std::collections::BTreeMap;

use ringback_agents::Permissions;
use ringback_agents::preset::{preset, presets};
use ringback_broker::AgentProtocol;
use ringback_proto::money::MicroUsd;
use toml::de::DeValue;

use super::section::{Raw, section};
use super::value::Value;

/// A caller answers promptly, or declares a longer limit for its tool.
const CALLER_TIMEOUT_MS: u64 = 60_000;

/// Several polls of a caller that polls every few seconds.
const POLL_GRACE_MS: u64 = 10_000;

/// Minutes of a talkative agent.
const EVENTS_KEPT: usize = 2000;

/// Far more than a reader needs at once.
const EVENT_BYTES: usize = 16 << 20;

/// A daemon with a thousand sessions stays a small program.
const EVENT_BYTES_TOTAL: usize = 64 << 20;

/// Enough for an agent to close its files; one that hangs does not delay its caller.
const END_GRACE_MS: u64 = 3000;

/// Time for a coffee break; most agents wait longer for their model.
const LIMIT_WAIT_MS: u64 = 5 * 60 * 1000;

const IDLE_MS: u64 = 30 * 60 * 1000;

section! {
    /// How agents run.
    pub struct Sessions = "sessions" {
        /// Agent of projects that name none. `scripted` is always available: it runs its message
        /// line by line.
        pub agent: String = "scripted".to_owned(),
        /// Further agents by name: `[sessions.agents.NAME]` with `preset = "goose"` (`ringback
        /// agents list` shows the presets), or with `command = ["program", "argument"]`, where the
        /// word `{inside}` stands for the session's MCP server, and a `protocol` of `lines`, `acp`
        /// or `one-shot`. Both may have `env = { NAME = "value" }` and `permissions`. With
        /// `provider = "NAME"` the agent may use the models of that entry of `providers`: `{model}`
        /// in its arguments and environment stands for the address, and a preset uses `model =
        /// "MODEL"`.
        pub agents: Agents = Agents::default(),
        /// Maximum depth of sessions started by sessions.
        pub max_depth: usize = 3,
        /// Maximum number of sessions that one session may start in total.
        pub max_agents: usize = 50,
        /// Maximum number of sessions of one project that have not ended.
        pub max_sessions: usize = 10,
        /// How long a session may be idle, in milliseconds.
        pub idle: u64 = IDLE_MS,
        /// Number of events of a session kept in memory; its journal has more.
        pub events_kept: usize = EVENTS_KEPT,
        /// Bytes of a session's events kept in memory, until it ends.
        pub event_bytes: usize = EVENT_BYTES,
        /// Bytes of the events of all sessions kept in memory; beyond it, the sessions with the
        /// most lose their oldest.
        pub event_bytes_total: usize = EVENT_BYTES_TOTAL,
        /// Answer to agents' permission requests: `ask` passes the question on as an event of the
        /// session, `allow` and `deny` answer immediately. An agent's own `permissions` take
        /// precedence.
        pub permissions: Permissions = Permissions::Ask,
        /// How long an agent may take to end when asked to, in milliseconds.
        pub end_grace: u64 = END_GRACE_MS,
        /// Model tokens after which a session's caller is asked. A session or its project may set
        /// another number; the same applies to the next two.
        pub max_tokens: Option<u64> = None,
        /// Working time after which the caller is asked, in milliseconds.
        pub max_time: Option<u64> = None,
        /// Cost after which the caller is asked, in dollars such as `2.50`. Needs `prices` of the
        /// provider.
        pub max_usd: Option<MicroUsd> = None,
        /// How long a session at a limit waits for an answer, in milliseconds; then its agent is
        /// stopped.
        pub limit_wait: u64 = LIMIT_WAIT_MS,
    }
}

section! {
    /// Tools that a session's caller offers its agent.
    pub struct CallerTools = "callerTools" {
        /// Time limit of a call if its tool does not set one, in milliseconds.
        pub timeout: u64 = CALLER_TIMEOUT_MS,
        /// How long after its last poll a polling caller counts as connected, in milliseconds.
        pub pollGrace: u64 = POLL_GRACE_MS,
    }
}

/// Agents by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agents(pub BTreeMap<String, AgentEntry>);

/// How one agent is started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentEntry {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment.
    pub env: BTreeMap<String, String>,
    /// Its protocol.
    pub protocol: AgentProtocol,
    /// The answer to its permission requests.
    pub permissions: Option<Permissions>,
    /// The provider whose models it may use.
    pub provider: Option<String>,
    /// The model that a preset uses.
    pub model: Option<String>,
}

const EXPECTED: &str = "a table of agents such as `{ mine = { command = [\"/usr/bin/agent\"] } }`";

impl Value for Agents {
    const KIND: &'static str = "table";

    /// Text is parsed as an inline TOML table.
    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let table = match raw {
            Raw::Toml(DeValue::Table(table)) => table,
            Raw::Toml(_) => return Err(format!("expected {EXPECTED}")),
            Raw::Text(text) => {
                let parsed = DeValue::parse(text).map_err(|_| format!("expected {EXPECTED}"))?;
                return Self::parse(Raw::Toml(parsed.get_ref()));
            }
        };
        let mut agents = BTreeMap::new();
        for (name, value) in table {
            let name = name.get_ref().as_ref();
            let entry = entry(value.get_ref()).map_err(|reason| format!("`{name}`: {reason}"))?;
            agents.insert(name.to_owned(), entry);
        }
        Ok(Self(agents))
    }

    /// Hides the environments: they may hold secrets.
    fn show(&self) -> Option<toml::Value> {
        let shown = |(name, agent): (&String, &AgentEntry)| {
            let command = agent.command.iter().cloned().map(toml::Value::String).collect();
            let names = agent.env.keys().cloned();
            let hidden = names.map(|name| (name, toml::Value::String("(hidden)".to_owned())));
            let mut entry = toml::Table::new();
            if !agent.command.is_empty() {
                entry.insert("command".to_owned(), toml::Value::Array(command));
            }
            if let Some((key, value)) = spoken(&agent.protocol) {
                entry.insert(key.to_owned(), value.into());
            }
            if let Some(permissions) = agent.permissions {
                entry.insert("permissions".to_owned(), permissions.name().into());
            }
            if !agent.env.is_empty() {
                entry.insert("env".to_owned(), toml::Value::Table(hidden.collect()));
            }
            if let Some(provider) = agent.provider.show() {
                entry.insert("provider".to_owned(), provider);
            }
            if let Some(model) = agent.model.show() {
                entry.insert("model".to_owned(), model);
            }
            (name.clone(), toml::Value::Table(entry))
        };
        (!self.0.is_empty()).then(|| toml::Value::Table(self.0.iter().map(shown).collect()))
    }
}

impl Value for Permissions {
    const KIND: &'static str = "`ask`, `allow` or `deny`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let name = String::parse(raw)?;
        Self::named(&name).ok_or_else(|| format!("expected {}, found `{name}`", Self::KIND))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.name().into())
    }
}

/// Returns the key and value for an agent's protocol, unless it is the default.
fn spoken(protocol: &AgentProtocol) -> Option<(&'static str, &str)> {
    match protocol {
        AgentProtocol::Lines => None,
        AgentProtocol::Acp => Some(("protocol", "acp")),
        AgentProtocol::OneShot => Some(("protocol", "one-shot")),
        AgentProtocol::Preset(name) => Some(("preset", name)),
    }
}

fn protocol(name: &str) -> Result<AgentProtocol, String> {
    match name {
        "lines" => Ok(AgentProtocol::Lines),
        "acp" => Ok(AgentProtocol::Acp),
        "one-shot" => Ok(AgentProtocol::OneShot),
        other => Err(format!("`protocol` must be `lines`, `acp` or `one-shot`, not `{other}`")),
    }
}

fn of_preset(name: &str) -> Result<AgentProtocol, String> {
    if preset(name).is_some() {
        return Ok(AgentProtocol::Preset(name.to_owned()));
    }
    let names: Vec<_> = presets().iter().map(|preset| preset.name.as_str()).collect();
    Err(format!("unknown preset `{name}`; known presets: {}", names.join(", ")))
}

fn entry(value: &DeValue<'_>) -> Result<AgentEntry, String> {
    let DeValue::Table(table) = value else { return Err(format!("expected {EXPECTED}")) };
    let mut agent = AgentEntry::default();
    let has = |key: &str| table.keys().any(|name| name.get_ref() == key);
    if has("protocol") && has("preset") {
        return Err("a `preset` has its own `protocol`; set one of them".to_owned());
    }
    for (name, value) in table {
        match (name.get_ref().as_ref(), value.get_ref()) {
            ("protocol", value) => agent.protocol = protocol(&String::parse(Raw::Toml(value))?)?,
            ("preset", value) => agent.protocol = of_preset(&String::parse(Raw::Toml(value))?)?,
            ("permissions", value) => {
                agent.permissions = Some(Permissions::parse(Raw::Toml(value))?);
            }
            ("command", DeValue::Array(_)) => {
                agent.command = Vec::<String>::parse(Raw::Toml(value.get_ref()))?;
            }
            ("command", _) => return Err("`command` must be a list of texts".to_owned()),
            ("env", DeValue::Table(env)) => {
                for (name, value) in env {
                    let value = String::parse(Raw::Toml(value.get_ref()))
                        .map_err(|reason| format!("`env.{}`: {reason}", name.get_ref()))?;
                    agent.env.insert(name.get_ref().to_string(), value);
                }
            }
            ("env", _) => return Err("`env` must be a table of texts".to_owned()),
            (key @ ("provider" | "model"), value) => {
                let text = String::parse(Raw::Toml(value));
                let text = text.map_err(|reason| format!("`{key}`: {reason}"))?;
                let place = if key == "model" { &mut agent.model } else { &mut agent.provider };
                *place = Some(text);
            }
            (unknown, _) => {
                return Err(format!(
                    "unknown key `{unknown}`; known keys: `command`, `env`, `preset`, `protocol`, \
                     `permissions`, `provider`, `model`"
                ));
            }
        }
    }
    let needs_command = !matches!(agent.protocol, AgentProtocol::Preset(_));
    match (&agent.provider, &agent.model) {
        (Some(_), None) if !needs_command => {
            return Err("`model` is missing: the model of the provider to use".to_owned());
        }
        (None, Some(_)) => return Err("`model` needs a `provider`".to_owned()),
        (Some(_), Some(_)) if needs_command => {
            let reason = "`model` is only for presets; set it in `command` or `env`";
            return Err(reason.to_owned());
        }
        (None | Some(_), _) => {}
    }
    if needs_command && agent.command.first().is_none_or(String::is_empty) {
        return Err("`command` is missing: the program and its arguments".to_owned());
    }
    Ok(agent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_read_whole_and_their_environment_is_hidden() {
        let text = r#"{ mine = { command = ["/bin/agent", "-v"], env = { KEY = "secret" }, provider = "p" } }"#;
        let agents = Agents::parse(Raw::Text(text)).unwrap();
        assert_eq!(agents.0["mine"].provider.as_deref(), Some("p"));
        assert_eq!(agents.0["mine"].command, ["/bin/agent", "-v"]);
        assert_eq!(agents.0["mine"].env["KEY"], "secret");
        let shown = agents.show().unwrap().to_string();
        assert!(shown.contains("/bin/agent") && !shown.contains("secret"), "{shown}");
    }

    /// REQ: an agent in the configuration has a protocol or a preset.
    #[test]
    fn an_agent_says_how_it_is_talked_to() {
        let text = r#"{ goose = { preset = "goose", permissions = "allow" }, other = { command = ["x"], protocol = "acp" } }"#;
        let agents = Agents::parse(Raw::Text(text)).unwrap();
        assert_eq!(agents.0["goose"].protocol, AgentProtocol::Preset("goose".to_owned()));
        assert_eq!(agents.0["goose"].permissions, Some(Permissions::Allow));
        assert_eq!(agents.0["other"].protocol, AgentProtocol::Acp);
        let again = Agents::parse(Raw::Text(&agents.show().unwrap().to_string())).unwrap();
        assert_eq!(again, agents);
    }

    #[test]
    fn an_agent_without_a_command_or_with_an_unknown_key_says_what_is_wrong() {
        for (text, expected) in [
            ("{ mine = {} }", "`command` is missing"),
            ("{ mine = { command = [] } }", "`command` is missing"),
            ("{ mine = { command = \"x\" } }", "list of texts"),
            ("{ mine = { command = [\"x\"], colour = 1 } }", "unknown key `colour`"),
            ("{ mine = { command = [\"x\"], env = 1 } }", "table of texts"),
            ("{ mine = { command = [\"x\"], protocol = \"morse\" } }", "`one-shot`, not `morse`"),
            ("{ mine = { preset = \"hal\" } }", "unknown preset `hal`; known presets: goose"),
            ("{ mine = { preset = \"goose\", protocol = \"acp\" } }", "set one of them"),
            ("{ mine = { preset = \"goose\", permissions = \"maybe\" } }", "`ask`, `allow` or"),
            ("{ mine = { command = [\"x\"], provider = 1 } }", "`provider`: expected text"),
            ("{ mine = { preset = \"goose\", provider = \"p\" } }", "`model` is missing"),
            ("{ mine = { preset = \"goose\", model = \"m\" } }", "`model` needs a `provider`"),
            (
                "{ mine = { command = [\"x\"], provider = \"p\", model = \"m\" } }",
                "only for presets",
            ),
            ("3", "table of agents"),
        ] {
            let error = Agents::parse(Raw::Text(text)).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
