//! Which agent runs, with which model and key: what the command line says, else what the daemon is
//! configured for, else the only agent that is installed.

use std::collections::BTreeMap;

use clap::Args;
use ringback_agents::preset::{preset, presets};
use ringback_client::Client;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::permission::PermissionMode;
use ringback_proto::request::{
    ConfigGetRequest, ModelChoice, ModelFailure, ProjectGetRequest, SessionGetRequest,
    SessionMessageRequest, SessionModel, SessionResponse,
};
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::{ConfigGet, ProjectGet, SessionGet};
use ringback_proto::value::Value;

use crate::config::{Environment, KnownProvider};
use crate::connection::Target;
use crate::failure::Failure;
use crate::screen::Screen;

/// The built-in agent, which runs only when it is named.
const SCRIPTED: &str = "scripted";
/// The origin of a key that came with its session.
const SESSION_KEY: &str = "session";

/// The model of an agent, and the answer to its questions.
#[derive(Debug, Clone, Default, Args)]
pub struct ChoiceArgs {
    /// Provider of its model: a configured one, or one of `anthropic`, `google`, `lmstudio`,
    /// `ollama`, `openai`, `openrouter` [default: as configured, else the agent's own]
    #[arg(long, value_name = "NAME")]
    pub provider: Option<String>,
    /// Its model, as the provider calls it [default: as configured, else the agent's own]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Answer to its permission requests: `ask` (you), `allow` or `deny`; more than its settings
    /// allow needs an admin token. Tools of `--tool` are not asked about
    #[arg(long, value_name = "ANSWER")]
    pub permissions: Option<PermissionMode>,
}

/// The agent of a session, and what is chosen for it.
#[derive(Debug, Default)]
pub(crate) struct Chosen {
    /// As named; `None` leaves it to the project.
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<ModelChoice>,
    /// The key of its provider, for the first message.
    pub(crate) key: Option<ShellKey>,
}

/// A key from a variable of this process.
#[derive(Debug, Clone)]
pub(crate) struct ShellKey {
    pub(crate) variable: &'static str,
    provider: String,
    key: Secret,
}

impl ShellKey {
    /// Adds the key to a message, with its provider, so that no other gets it.
    pub(crate) fn add_to(&self, message: &mut SessionMessageRequest) {
        let model = message.model.get_or_insert_default();
        model.provider = Some(self.provider.clone());
        message.model_key = Some(self.key.clone());
    }
}

/// What the daemon's configuration says of its agents.
#[derive(Debug, Default)]
struct ConfiguredAgents {
    default: Option<String>,
    agents: BTreeMap<String, ConfiguredAgent>,
}

#[derive(Debug, Default)]
struct ConfiguredAgent {
    preset: Option<String>,
    provider: Option<String>,
}

impl ChoiceArgs {
    /// Decides what to ask the daemon for. An agent is found if none is named and `must_find` is
    /// set.
    pub(crate) async fn choose(
        &self,
        call: &Caller<'_>,
        project: ProjectId,
        named: Option<&str>,
        must_find: bool,
    ) -> Result<Chosen, Failure> {
        let configured = ConfiguredAgents::of(call.client).await?;
        let agent = match named {
            Some(named) => Some(named.to_owned()),
            None => {
                let request = ProjectGetRequest { project_id: project };
                call.client.call::<ProjectGet>(request).await?.agent
            }
        };
        let agent = match agent {
            None if must_find => Some(configured.find(call.environment)?),
            agent => agent,
        };
        let meant = agent.as_ref().or(configured.default.as_ref());
        let provider = self.provider.clone().or_else(|| {
            let is_wanted = self.model.is_some();
            meant.and_then(|agent| configured.provider_of(agent, is_wanted))
        });
        let key = match provider.and_then(|name| key_in(call.environment, name)) {
            // Over any other connection it might reach somebody else.
            Some(found) if call.target.is_own_socket().await => Some(found),
            Some(_) | None => None,
        };
        let (provider, name) = (self.provider.clone(), self.model.clone());
        let model = ModelChoice { provider, name, key_follows: key.is_some() };
        let model = (model != ModelChoice::default()).then_some(model);
        Ok(Chosen { agent, model, key })
    }
}

/// Whom a command asks, and what it knows of itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) client: &'a Client,
    pub(crate) target: &'a Target,
    pub(crate) environment: &'a Environment,
}

impl ConfiguredAgents {
    async fn of(client: &Client) -> Result<Self, Failure> {
        let request = ConfigGetRequest { section: Some("sessions".to_owned()), key: None };
        let sessions = client.call::<ConfigGet>(request).await?.value;
        let text = |value: &Value, key: &str| match value.get(key) {
            Some(Value::Text(text)) => Some(text.clone()),
            Some(_) | None => None,
        };
        let agents = match sessions.get("agents") {
            Some(Value::Map(agents)) => agents.clone(),
            Some(_) | None => Vec::new(),
        };
        let agents = agents.into_iter().map(|(name, agent)| {
            let (preset, provider) = (text(&agent, "preset"), text(&agent, "provider"));
            (name, ConfiguredAgent { preset, provider })
        });
        Ok(Self { default: text(&sessions, "agent"), agents: agents.collect() })
    }

    /// Returns the only agent that can be meant; never the scripted one.
    fn find(&self, environment: &Environment) -> Result<String, Failure> {
        if let Some(default) = self.default.as_ref().filter(|name| *name != SCRIPTED) {
            return Ok(default.clone());
        }
        let configured: Vec<_> = self.agents.keys().filter(|name| *name != SCRIPTED).collect();
        let path = environment.get("PATH").unwrap_or_default();
        let installed = presets().iter().filter(|preset| preset.find(path).is_some());
        let installed: Vec<_> = installed.map(|preset| &preset.name).collect();
        let (which, names) = match (configured.as_slice(), installed.as_slice()) {
            ([only], _) | ([], [only]) => return Ok((*only).clone()),
            ([], []) => {
                let others = presets().iter().map(|it| format!("`{}` ({})", it.name, it.install));
                let others: Vec<_> = others.collect();
                return Err(Failure::Usage(format!(
                    "no agent is installed; install one of {}, or choose one with `--agent NAME`",
                    others.join(", ")
                )));
            }
            ([], installed) => ("installed", installed),
            (configured, _) => ("configured", configured),
        };
        let names = names.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
        Err(Failure::Usage(format!(
            "choose an agent with `--agent NAME`; {which}: {names}; `ringback agents check` shows how \
             to install others"
        )))
    }

    /// Returns the provider that an agent uses; one that is not configured to use any uses its own
    /// if a model is named.
    fn provider_of(&self, agent: &str, is_model_named: bool) -> Option<String> {
        let own = |name: &str| preset(name).map(|preset| preset.provider().to_owned());
        match self.agents.get(agent) {
            Some(ConfiguredAgent { provider: Some(provider), .. }) => Some(provider.clone()),
            Some(ConfiguredAgent { preset: Some(preset), .. }) if is_model_named => own(preset),
            Some(_) => None,
            None => own(agent),
        }
    }
}

/// Returns the key of a provider, from the variable in which people have it.
fn key_in(environment: &Environment, provider: String) -> Option<ShellKey> {
    let variables = KnownProvider::of(&provider)?.variables.iter();
    let found = variables.filter_map(|name| Some((*name, environment.get(name)?.to_str()?)));
    let mut keys = found.map(|(name, key)| (name, key.trim())).filter(|(_, key)| !key.is_empty());
    let (variable, key) = keys.next()?;
    Some(ShellKey { variable, key: Secret::new(key.to_owned()), provider })
}

/// Returns what is to be done about a session whose model has not answered, if it has not.
pub(crate) async fn model_failure(
    client: &Client,
    screen: Screen,
    session_id: SessionId,
    key: Option<&ShellKey>,
) -> Result<(SessionResponse, Option<String>), Failure> {
    let shown = client.call::<SessionGet>(SessionGetRequest { session_id }).await?;
    let explained = match &shown.model {
        Some(SessionModel { provider, failure: Some(failure), .. }) => {
            let text = explained(provider, failure, key.map(|key| key.variable));
            Some(screen.printable(&text))
        }
        Some(_) | None => None,
    };
    Ok((shown, explained))
}

fn explained(provider: &str, failure: &ModelFailure, variable: Option<&str>) -> String {
    let ModelFailure { status, cause, key } = failure;
    let Some(status) = status else {
        return format!("no model request succeeded: provider `{provider}`: {cause}");
    };
    let what_to_do = match (status, key.as_deref(), variable) {
        (401 | 403, Some(SESSION_KEY), Some(variable)) => format!(
            "; correct {variable}, or store another key with `ringback secret set {provider}`"
        ),
        (401 | 403, Some(key), _) => match key.split_once(' ') {
            Some(("secret", name)) => {
                format!("; store another with `ringback secret set {name}`")
            }
            Some((_, path)) => format!("; put another into `{path}`"),
            None => String::new(),
        },
        (401 | 403, None, _) => "; it is configured without a key".to_owned(),
        _ => String::new(),
    };
    format!(
        "no model request succeeded: provider `{provider}` answered {status}: {cause}{what_to_do}"
    )
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn failure(status: Option<u16>, key: Option<&str>) -> ModelFailure {
        ModelFailure { status, cause: "why".to_owned(), key: key.map(str::to_owned) }
    }

    /// REQ: a refused key names the secret to set, or the variable it came from.
    #[test]
    fn a_refused_key_says_where_it_came_from() {
        for (key, expected) in [
            (Some("secret work"), "`ringback secret set work`"),
            (Some("session"), "correct OPENAI_API_KEY"),
            (Some("key_file /k/a b"), "`/k/a b`"),
            (None, "without a key"),
        ] {
            let text = explained("openai", &failure(Some(401), key), Some("OPENAI_API_KEY"));
            assert!(text.contains(expected) && text.contains("answered 401"), "{text}");
        }
        let text = explained("openai", &failure(None, None), None);
        assert_eq!(text, "no model request succeeded: provider `openai`: why");
    }

    /// Rule: a key is taken only from the variable of the provider that is asked.
    #[test]
    fn a_key_is_taken_from_its_providers_variable_alone() {
        let environment: Environment =
            [("OPENAI_API_KEY", " sk-1\n"), ("GOOGLE_API_KEY", "g"), ("ANTHROPIC_API_KEY", "")]
                .into_iter()
                .collect();
        let key = |name: &str| {
            key_in(&environment, name.to_owned()).map(|found| found.key.expose().to_owned())
        };
        assert_eq!(key("openai").as_deref(), Some("sk-1"));
        assert_eq!(key("google").as_deref(), Some("g"));
        for other in ["anthropic", "ollama", "mine", "OPENAI"] {
            assert_eq!(key(other), None, "{other}");
        }
    }

    /// REQ: without `--agent`, the only agent is chosen, and never the scripted one.
    #[test]
    fn the_only_agent_is_found_and_otherwise_they_are_listed() {
        let dir = tempfile::tempdir().unwrap();
        let environment: Environment =
            [("PATH", dir.path().to_str().unwrap())].into_iter().collect();
        let install = |name: &str| {
            let path = dir.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        };
        let mut agents =
            ConfiguredAgents { default: Some(SCRIPTED.to_owned()), ..Default::default() };
        let find = |agents: &ConfiguredAgents| {
            agents.find(&environment).map_err(|failure| failure.to_string())
        };
        let none = find(&agents).unwrap_err();
        assert!(none.contains("npm install") && none.contains("`opencode`"), "{none}");
        install("goose");
        assert_eq!(find(&agents).unwrap(), "goose");
        install("codex");
        assert!(find(&agents).unwrap_err().contains("installed: goose, codex"));
        agents.agents.insert("mine".to_owned(), ConfiguredAgent::default());
        assert_eq!(find(&agents).unwrap(), "mine");
        agents.agents.insert("other".to_owned(), ConfiguredAgent::default());
        assert!(find(&agents).unwrap_err().contains("configured: mine, other"));
        agents.default = Some("other".to_owned());
        assert_eq!(find(&agents).unwrap(), "other");
    }
}
