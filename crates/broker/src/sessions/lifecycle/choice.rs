//! Which agent a session runs, with which model, and who answers its permission requests: what is
//! configured, or what the session's starter chose instead.

use std::sync::Arc;

use ringback_agents::preset::{Preset, preset, presets};
use ringback_core::policy::{may_loosen, no_agent};
use ringback_proto::network::NetworkMode;
use ringback_proto::permission::PermissionMode;
use ringback_proto::principal::{Principal, PrincipalId};
use ringback_proto::record::{ProjectRecord, SessionChoice};
use ringback_proto::request::ModelChoice;
use ringback_proto::secret::Secret;
use ringback_proto::{Error, Result};

use crate::kernel::Kernel;
use crate::rooms::SharedRooms;
use crate::sessions::conversation::permissions::{answer, mode};
use crate::sessions::{
    AgentCommand, AgentProtocol, ELSEWHERE, LiveSession, Origin, ProviderKey, Register, SessionKey,
    SessionSettings, StartSession,
};

/// The longest name of a provider or a model.
const NAME_BYTES_MAX: usize = 200;

/// What the starter of a session chooses instead of what is configured.
#[derive(Debug, Clone, Default)]
pub(crate) struct StartChoice {
    pub(crate) model: Option<ModelChoice>,
    /// A key of the provider that `model` names.
    pub(crate) key: Option<Secret>,
    pub(crate) permissions: Option<PermissionMode>,
}

/// The agent of a session, with everything chosen for it.
#[derive(Debug, Clone)]
pub(in crate::sessions) struct ChosenAgent {
    pub(in crate::sessions) name: String,
    /// As configured, or as its preset says; with the provider, model and permissions to use.
    pub(in crate::sessions) command: Arc<AgentCommand>,
    /// What was chosen, to be stored with the session.
    pub(in crate::sessions) choice: SessionChoice,
    /// A key of its provider for this session alone.
    pub(in crate::sessions) key: SessionKey,
}

/// Decides what sessions run.
#[derive(Debug)]
pub(crate) struct Choices {
    kernel: Arc<Kernel>,
    register: Arc<Register>,
}

impl StartChoice {
    fn is_empty(&self) -> bool {
        self.model.is_none() && self.key.is_none() && self.permissions.is_none()
    }
}

impl ChosenAgent {
    /// Returns the name of its provider, if it has one.
    pub(in crate::sessions) fn provider(&self) -> Option<&str> {
        self.command.provider.as_deref()
    }
}

impl AgentCommand {
    /// Returns an agent as its preset says, which needs no configuration.
    #[must_use]
    pub fn of_preset_alone(preset: &Preset) -> Self {
        Self {
            protocol: AgentProtocol::Preset(preset.name.clone()),
            provider: Some(preset.provider().to_owned()),
            model: Some(preset.default_model().to_owned()),
            ..Self::default()
        }
    }

    fn preset(&self) -> Option<&'static Preset> {
        match &self.protocol {
            AgentProtocol::Preset(name) => preset(name),
            AgentProtocol::Lines | AgentProtocol::Acp | AgentProtocol::OneShot => None,
        }
    }

    /// Returns the API that it speaks to its model, if that is known.
    fn api(&self) -> Option<&str> {
        self.preset().map(Preset::provider)
    }

    /// Replaces its provider and its model by the chosen ones.
    fn choose_model(&mut self, provider: Option<&str>, model: Option<&str>) -> Result<()> {
        if provider.is_none() && model.is_none() {
            return Ok(());
        }
        let preset = self.preset();
        if model.is_some() && preset.is_none() {
            let message = "only presets take the name of a model; set it in the agent's `command` \
                           or `env` in the configuration";
            return Err(Error::invalid_field("model.name", message));
        }
        let usual = preset.map(|preset| preset.provider().to_owned());
        let chosen = provider.map(str::to_owned).or_else(|| self.provider.clone()).or(usual);
        let is_same = chosen == self.provider;
        let default = preset
            .filter(|preset| chosen.as_deref() == Some(preset.provider()))
            .map(|preset| preset.default_model().to_owned());
        let before = self.model.take().filter(|_| is_same);
        self.model = model.map(str::to_owned).or(before).or(default);
        if self.model.is_none() && preset.is_some() {
            let provider = chosen.unwrap_or_default();
            let message = format!(
                "which model of provider `{provider}`? Set `model.name` (`--model NAME` on the \
                 command line)"
            );
            return Err(Error::invalid_field("model.name", message));
        }
        self.provider = chosen;
        Ok(())
    }
}

impl SessionSettings {
    /// Returns an agent by name: a configured one, or a preset.
    pub(in crate::sessions) fn agent(&self, name: &str) -> Option<AgentCommand> {
        let configured = self.agents.get(name).cloned();
        configured.or_else(|| preset(name).map(AgentCommand::of_preset_alone))
    }

    fn unknown_agent(&self, name: &str) -> Error {
        let configured = self.agents.keys().map(String::as_str);
        let others = presets().iter().map(|preset| preset.name.as_str());
        let others = others.filter(|name| !self.agents.contains_key(*name));
        let message = format!(
            "unknown agent `{name}`; configured: {}; known without configuration: {}; \
             `{ELSEWHERE}` is for an agent that connects to the session's URL",
            listed(configured),
            listed(others)
        );
        Error::invalid_field("agent", message)
    }
}

impl Choices {
    pub(in crate::sessions) fn new(shared_rooms: &SharedRooms) -> Self {
        let (kernel, register) = (shared_rooms.kernel.clone(), shared_rooms.register.clone());
        Self { kernel, register }
    }

    /// Checks that there is an agent of this name.
    pub(crate) fn check_agent(&self, agent: &str) -> Result<()> {
        let settings = &self.kernel.config.sessions;
        if agent == ELSEWHERE || settings.agent(agent).is_some() {
            return Ok(());
        }
        Err(settings.unknown_agent(agent))
    }

    /// Decides which agent a session runs, and how.
    ///
    /// An agent that starts a session chooses nothing: it gets a configured agent as configured, or
    /// its own with the model and permissions that were chosen for itself.
    pub(in crate::sessions) fn choose(
        &self,
        start: &StartSession,
        name: &str,
    ) -> Result<ChosenAgent> {
        let settings = &self.kernel.config.sessions;
        let is_empty = start.choice.is_empty();
        if !is_empty {
            no_agent(&start.principal, "choosing the model or the permissions of a session")?;
        }
        if name == ELSEWHERE {
            if !is_empty {
                let message = "an agent that runs elsewhere has its own model and permissions";
                return Err(Error::invalid_field("agent", message));
            }
            return Ok(ChosenAgent::of(name, AgentCommand::default()));
        }
        if let Some(parent) = start.origin.parent().and_then(|id| self.register.live(id)) {
            return self.choose_below(&parent, name);
        }
        let mut command = settings.agent(name).ok_or_else(|| settings.unknown_agent(name))?;
        let choice = match &start.origin {
            Origin::Again(record) => record.choice.clone(),
            Origin::New { .. } => self.new_choice(start, &command)?,
        };
        command.choose_model(choice.provider.as_deref(), choice.model.as_deref())?;
        command.permissions = choice.permissions.map(answer).or(command.permissions);
        let chosen = ChosenAgent { choice, ..ChosenAgent::of(name, command) };
        let StartChoice { model, key, .. } = &start.choice;
        if matches!(start.origin, Origin::Again(_)) {
            chosen.check_kept(model.as_ref())?;
        }
        if let Some(key) = key {
            chosen.take_key(&start.principal, model.as_ref(), key)?;
        }
        Ok(chosen)
    }

    /// Returns the agent of a session that an agent starts.
    fn choose_below(&self, parent: &LiveSession, name: &str) -> Result<ChosenAgent> {
        let settings = &self.kernel.config.sessions;
        let parent = &parent.chosen;
        let (mut command, mut choice) = if parent.name == name {
            (AgentCommand::clone(&parent.command), parent.choice.clone())
        } else {
            // A preset would reach a provider that was configured for nobody.
            let configured = settings.agents.get(name).cloned();
            (configured.ok_or_else(|| settings.unknown_agent(name))?, SessionChoice::default())
        };
        // What was denied to an agent is not allowed to those that it starts.
        let usual = mode(command.permissions.unwrap_or(settings.permissions));
        if let Some(least) = parent.choice.permissions.filter(|least| *least < usual) {
            choice.permissions = Some(least);
            command.permissions = Some(answer(least));
        }
        Ok(ChosenAgent { choice, ..ChosenAgent::of(name, command) })
    }

    fn new_choice(&self, start: &StartSession, command: &AgentCommand) -> Result<SessionChoice> {
        let StartChoice { model, permissions, .. } = &start.choice;
        if let Some(wanted) = permissions {
            self.check_chosen(start, command, *wanted)?;
        }
        let ModelChoice { provider, name, key_follows: _ } = model.clone().unwrap_or_default();
        for (field, text) in [("model.provider", &provider), ("model.name", &name)] {
            let is_name = |text: &String| {
                (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control)
            };
            if !text.as_ref().is_none_or(is_name) {
                let message = format!("a name has 1 to {NAME_BYTES_MAX} bytes on one line");
                return Err(Error::invalid_field(field, message));
            }
        }
        Ok(SessionChoice { provider, model: name, permissions: *permissions })
    }

    /// Checks whether permissions may be chosen: only an administrator may loosen them.
    fn check_chosen(
        &self,
        start: &StartSession,
        command: &AgentCommand,
        wanted: PermissionMode,
    ) -> Result<()> {
        let own = mode(command.permissions.unwrap_or(self.kernel.config.sessions.permissions));
        if wanted > otherwise(&start.project).unwrap_or(own) {
            may_loosen(&start.principal, "permissions beyond those of the project and the agent")?;
        }
        Ok(())
    }

    /// Checks that a session can use its provider, before it exists. Its key may come with the first
    /// message, if that was said.
    pub(in crate::sessions) async fn check_model(
        &self,
        chosen: &ChosenAgent,
        choice: &StartChoice,
    ) -> Result<()> {
        let key_follows = choice.model.as_ref().is_some_and(|model| model.key_follows);
        match self.provider_key(chosen).await? {
            ProviderKey::Missing(advice) if !key_follows && chosen.key.get().is_none() => {
                Err(Error::invalid_field("model_key", advice))
            }
            ProviderKey::Missing(_) | ProviderKey::Ready => Ok(()),
        }
    }

    async fn provider_key(&self, chosen: &ChosenAgent) -> Result<ProviderKey> {
        let Some(models) = self.kernel.config.sessions.doors.models.clone() else {
            return Ok(ProviderKey::Ready);
        };
        let command = Arc::clone(&chosen.command);
        let checked = self.kernel.blocking(move || {
            let Some(provider) = command.provider.as_deref() else {
                return Ok(Ok(ProviderKey::Ready));
            };
            Ok(models.check(provider, command.api()))
        });
        checked.await?.map_err(|error| Error::invalid_field("model", error))
    }

    /// Checks that the provider of a session has a key, before a message makes its agent ask.
    pub(in crate::sessions) async fn check_key(&self, live: &LiveSession) -> Result<()> {
        let is_closed = live.network().is_some_and(|network| network.mode < NetworkMode::Model);
        if is_closed || live.chosen.provider().is_none() || live.chosen.key.get().is_some() {
            return Ok(());
        }
        match self.provider_key(&live.chosen).await? {
            ProviderKey::Ready => Ok(()),
            ProviderKey::Missing(advice) => Err(Error::invalid_field("model_key", advice)),
        }
    }
}

impl ChosenAgent {
    fn of(name: &str, command: AgentCommand) -> Self {
        let (name, command) = (name.to_owned(), Arc::new(command));
        Self { name, command, choice: SessionChoice::default(), key: SessionKey::default() }
    }

    /// Checks that a message to a session that exists names no other model.
    pub(in crate::sessions) fn check_kept(&self, model: Option<&ModelChoice>) -> Result<()> {
        let Some(ModelChoice { provider, name, key_follows: _ }) = model else { return Ok(()) };
        if name.is_some() {
            let message = "the session keeps its model; start another one for another model";
            return Err(Error::invalid_field("model.name", message));
        }
        if provider.is_some() && *provider != self.command.provider {
            let message = "the session keeps its provider; start another one for another provider";
            return Err(Error::invalid_field("model.provider", message));
        }
        Ok(())
    }

    /// Takes the key that its starter brings: the daemon's own user alone, for the provider that
    /// the user names, so that no other gets it.
    pub(in crate::sessions) fn take_key(
        &self,
        principal: &Principal,
        model: Option<&ModelChoice>,
        key: &Secret,
    ) -> Result<()> {
        no_agent(principal, "sending a key with a message")?;
        if principal.id != PrincipalId::Local {
            return Err(Error::forbidden("sending a key with a message", "the daemon's own user"));
        }
        let named = model.and_then(|model| model.provider.as_ref());
        if named.is_none() || named != self.command.provider.as_ref() {
            let message = "name the session's provider in `model.provider` with a `model_key`, so \
                           that no other provider gets it";
            return Err(Error::invalid_field("model.provider", message));
        }
        self.key.set(key.clone());
        Ok(())
    }
}

/// Returns a project's answer to what none of its rules decides.
fn otherwise(project: &ProjectRecord) -> Option<PermissionMode> {
    project.permissions.as_ref()?.otherwise
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
