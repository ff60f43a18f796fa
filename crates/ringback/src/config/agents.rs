//! `[sessions.agents.NAME]`: how each agent is started.

use std::collections::BTreeMap;

use ringback_agents::Permissions;
use ringback_agents::preset::{preset, presets};
use ringback_broker::{AgentCommand, AgentProtocol};

use super::section::Raw;
use super::table::{self, Entry};
use super::value::Value;

const EXPECTED: &str = "a table of agents such as `{ mine = { command = [\"/usr/bin/agent\"] } }`";

const KEYS: [&str; 7] =
    ["command", "env", "preset", "protocol", "permissions", "provider", "model"];

/// Agents by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Agents(pub BTreeMap<String, AgentCommand>);

impl Value for Agents {
    const KIND: &'static str = "table";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        table::named(raw, EXPECTED, |raw| table::entry(raw, EXPECTED, &KEYS, agent)).map(Self)
    }

    fn show(&self) -> Option<toml::Value> {
        table::shown_by_name(&self.0, |agent| {
            let (preset, protocol) = match &agent.protocol {
                AgentProtocol::Preset(name) => (Some(name.as_str().into()), None),
                AgentProtocol::Lines => (None, None),
                AgentProtocol::Acp => (None, Some(ACP.into())),
                AgentProtocol::OneShot => (None, Some(ONE_SHOT.into())),
            };
            table::shown([
                ("command", agent.command.show().filter(|_| !agent.command.is_empty())),
                ("env", agent.env.show().filter(|_| !agent.env.is_empty())),
                ("preset", preset),
                ("protocol", protocol),
                ("permissions", agent.permissions.show()),
                ("provider", agent.provider.show()),
                ("model", agent.model.show()),
            ])
        })
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

/// The variables of a process.
impl Value for BTreeMap<String, String> {
    const KIND: &'static str = "table of texts";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        table::named(raw, "a table of texts", String::parse)
    }

    /// Hides the values: they may be secrets.
    fn show(&self) -> Option<toml::Value> {
        table::shown_by_name(self, |_| "(hidden)".into())
    }
}

const LINES: &str = "lines";
const ACP: &str = "acp";
const ONE_SHOT: &str = "one-shot";

fn agent(entry: &Entry<'_>) -> Result<AgentCommand, String> {
    let mut agent = AgentCommand {
        command: entry.get("command")?.unwrap_or_default(),
        env: entry.get("env")?.unwrap_or_default(),
        protocol: protocol(entry)?,
        permissions: entry.get("permissions")?,
        provider: entry.get("provider")?,
        model: entry.get("model")?,
    };
    complete(&mut agent);
    check(&agent)?;
    Ok(agent)
}

fn protocol(entry: &Entry<'_>) -> Result<AgentProtocol, String> {
    match (entry.get::<String>("preset")?, entry.get::<String>("protocol")?) {
        (Some(_), Some(_)) => Err("a `preset` has its own `protocol`; set one of them".to_owned()),
        (Some(name), None) if preset(&name).is_some() => Ok(AgentProtocol::Preset(name)),
        (Some(name), None) => {
            let names: Vec<_> = presets().iter().map(|preset| preset.name.as_str()).collect();
            Err(format!("unknown preset `{name}`; known presets: {}", names.join(", ")))
        }
        (None, Some(name)) => match name.as_str() {
            LINES => Ok(AgentProtocol::Lines),
            ACP => Ok(AgentProtocol::Acp),
            ONE_SHOT => Ok(AgentProtocol::OneShot),
            other => Err(format!(
                "`protocol`: expected `{LINES}`, `{ACP}` or `{ONE_SHOT}`, found `{other}`"
            )),
        },
        (None, None) => Ok(AgentProtocol::default()),
    }
}

/// Fills in what a preset says of its model, if a model is wanted: its provider where only the
/// model is set, and its model where only that provider is.
fn complete(agent: &mut AgentCommand) {
    let AgentProtocol::Preset(name) = &agent.protocol else { return };
    let Some(preset) = preset(name) else { return };
    if agent.model.is_some() && agent.provider.is_none() {
        agent.provider = Some(preset.provider().to_owned());
    }
    if agent.model.is_none() && agent.provider.as_deref() == Some(preset.provider()) {
        agent.model = Some(preset.default_model().to_owned());
    }
}

/// Checks that the keys of an agent agree with each other.
fn check(agent: &AgentCommand) -> Result<(), String> {
    let needs_command = !matches!(agent.protocol, AgentProtocol::Preset(_));
    let wrong = match (&agent.provider, &agent.model) {
        (Some(_), None) if !needs_command => {
            Some("`model` is missing: the model of the provider to use")
        }
        (None, Some(_)) => Some("`model` needs a `provider`"),
        (Some(_), Some(_)) if needs_command => {
            Some("`model` is only for presets; set it in `command` or `env`")
        }
        (None | Some(_), _) => None,
    };
    if let Some(wrong) = wrong {
        return Err(wrong.to_owned());
    }
    if needs_command && agent.command.first().is_none_or(String::is_empty) {
        return Err("`command` is missing: the program and its arguments".to_owned());
    }
    Ok(())
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

    /// Rule: the first example of docs/providers.md is enough: a preset has a provider and a model.
    #[test]
    fn a_preset_fills_in_its_own_provider_and_model() {
        let of = |text: &str| Agents::parse(Raw::Text(text)).unwrap().0.remove("mine").unwrap();
        let claude = of("{ mine = { preset = \"claude\", provider = \"anthropic\" } }");
        let default = preset("claude").unwrap().default_model();
        assert_eq!(claude.model.as_deref(), Some(default));
        let goose = of("{ mine = { preset = \"goose\", model = \"m\" } }");
        assert_eq!(
            (goose.provider.as_deref(), goose.model.as_deref()),
            (Some("openai"), Some("m"))
        );
        // Without either, the agent uses its own configuration, as before.
        assert_eq!(of("{ mine = { preset = \"goose\" } }").provider, None);
    }

    #[test]
    fn an_agent_without_a_command_or_with_an_unknown_key_says_what_is_wrong() {
        for (text, expected) in [
            ("{ mine = {} }", "`command` is missing"),
            ("{ mine = { command = [] } }", "`command` is missing"),
            ("{ mine = { command = \"x\" } }", "`command`: expected a list"),
            ("{ mine = { command = [\"x\"], colour = 1 } }", "unknown key `colour`"),
            ("{ mine = { command = [\"x\"], env = 1 } }", "table of texts"),
            ("{ mine = { command = [\"x\"], protocol = \"morse\" } }", "`one-shot`, found `morse`"),
            ("{ mine = { preset = \"hal\" } }", "unknown preset `hal`; known presets: goose"),
            ("{ mine = { preset = \"goose\", protocol = \"acp\" } }", "set one of them"),
            ("{ mine = { preset = \"goose\", permissions = \"maybe\" } }", "`ask`, `allow` or"),
            ("{ mine = { command = [\"x\"], provider = 1 } }", "`provider`: expected text"),
            ("{ mine = { preset = \"goose\", provider = \"p\" } }", "`model` is missing"),
            ("{ mine = { command = [\"x\"], model = \"m\" } }", "`model` needs a `provider`"),
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
