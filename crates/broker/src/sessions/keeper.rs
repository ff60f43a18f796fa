//! The keeper of a session: owns its agent, passes messages to it, and turns what it says into
//! events.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_agents::{Agent, AgentEvent, AgentHandle, AgentLimits, AgentSpec, Launcher};
use ringback_core::sessions::Where;
use ringback_proto::record::{Record, SessionState};
use ringback_proto::request::SessionEventInfo;
use ringback_proto::{Error, ErrorKind};
use ringback_sandbox::places;
use tokio::sync::{mpsc, watch};

use super::confine::{BoxLauncher, Seen};
use super::say::{bounded, event};
use super::{AgentCommand, Key};
use crate::shared::Shared;
use crate::sync::lock;

/// Messages that may wait for the keeper.
pub(super) const ORDERS_MAX: usize = 64;

/// What a keeper is told.
#[derive(Debug)]
pub(super) enum Order {
    /// A message for the agent.
    Message(String),
    /// End the agent, and yourself.
    End,
}

/// An agent under way.
#[derive(Debug)]
struct Running {
    agent: Agent,
    handle: AgentHandle,
    /// Where it runs, if it is confined.
    launcher: Option<Arc<BoxLauncher>>,
}

/// The word in an agent's command that stands for the program inside.
const INSIDE: &str = "{inside}";
/// What an agent finds programs by.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// What belongs to one session's agent.
#[derive(Debug)]
pub(super) struct Keeper {
    shared: Arc<Shared>,
    place: Where,
    agent: String,
    dir: Utf8PathBuf,
    key: Option<Key>,
    done: watch::Sender<bool>,
}

impl Keeper {
    pub(super) fn new(
        shared: Arc<Shared>,
        place: Where,
        agent: &str,
        dir: Utf8PathBuf,
        key: Option<Key>,
        done: watch::Sender<bool>,
    ) -> Self {
        Self { shared, place, agent: agent.to_owned(), dir, key, done }
    }

    pub(super) async fn run(self, mut inbox: mpsc::Receiver<Order>) {
        let mut running: Option<Running> = None;
        loop {
            tokio::select! {
                biased;
                order = inbox.recv() => match order {
                    None | Some(Order::End) => break,
                    Some(Order::Message(text)) => self.tell(&mut running, text).await,
                },
                heard = next(&mut running) => match heard {
                    Some(heard) => self.hear(heard).await,
                    None => running = None,
                },
            }
        }
        if let Some(Running { mut agent, handle, launcher }) = running {
            handle.terminate(self.shared.sessions.settings.end_grace);
            while agent.next().await.is_some() {}
            if let Some(launcher) = launcher {
                launcher.gone().await;
            }
        }
        self.done.send_replace(true);
    }

    /// Passes a message on, to an agent that is started for it if there is none.
    async fn tell(&self, running: &mut Option<Running>, text: String) {
        if running.is_none() {
            match self.start().await {
                Ok(started) => *running = Some(started),
                Err(why) => return self.failed(why).await,
            }
        }
        self.changed(SessionState::Running).await;
        if let Some(running) = running
            && let Err(error) = running.handle.send(text)
        {
            self.say(SessionEventInfo { text: Some(error.to_string()), ..event("error") });
        }
    }

    async fn start(&self) -> Result<Running, String> {
        let sessions = &self.shared.sessions;
        let mut usual = sessions.settings.agents.get(&self.agent).cloned();
        let names_inside = usual.iter().flat_map(|usual| &usual.command).any(|word| word == INSIDE);
        let inside = if names_inside { Some(self.inside().await?) } else { None };
        let launcher = sessions
            .confiner
            .clone()
            .map(|confiner| BoxLauncher::new(confiner, self.dir.clone(), inside.clone()));
        let seen = if launcher.is_some() { Some(places::INSIDE.into()) } else { inside };
        let command = usual.as_mut().map(|usual| &mut usual.command);
        for word in command.into_iter().flatten().filter(|word| *word == INSIDE) {
            *word = seen.clone().map(Utf8PathBuf::into_string).unwrap_or_default();
        }
        let mut spec = self.spec(usual.as_ref());
        spec.launcher = launcher.clone().map(|launcher| launcher as Arc<dyn Launcher>);
        let started = self.shared.blocking(move || Ok(Agent::start(&spec)));
        let (agent, handle) =
            started.await.map_err(|error| error.to_string())?.map_err(|error| causes(&error))?;
        Ok(Running { agent, handle, launcher })
    }

    /// The path of the program inside.
    async fn inside(&self) -> Result<Utf8PathBuf, String> {
        let Some(inside) = self.shared.sessions.settings.inside.clone() else {
            return Err(format!("there is no program that `{INSIDE}` could stand for"));
        };
        let found = self.shared.blocking(move || {
            inside.path().map_err(|error| {
                let message = format!("the program inside cannot be written: {error}");
                Error::new(ErrorKind::Internal, message).with_source(error)
            })
        });
        found.await.map_err(|error| error.to_string())
    }

    fn spec(&self, usual: Option<&AgentCommand>) -> AgentSpec {
        let mut env: BTreeMap<String, String> =
            usual.map(|usual| usual.env.clone()).unwrap_or_default();
        let workspace = self.shared.workspace_path(self.place.workspace);
        Seen::of(self.shared.sessions.are_confined(), &workspace, &self.dir).tell(&mut env);
        env.insert("RINGBACK_SESSION".to_owned(), self.place.id.to_string());
        if let Some(key) = &self.key {
            env.insert("OUBLIETTE_API_KEY".to_owned(), key.secret.expose().to_owned());
        }
        for (name, value) in [("PATH", PATH), ("LANG", "C.UTF-8")] {
            env.entry(name.to_owned()).or_insert_with(|| value.to_owned());
        }
        let mut command = usual.map(|usual| usual.command.clone()).unwrap_or_default().into_iter();
        AgentSpec {
            command: command.next().unwrap_or_default().into(),
            args: command.map(Into::into).collect(),
            env: env.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            workspace: workspace.into(),
            limits: AgentLimits::default(),
            launcher: None,
        }
    }

    fn say(&self, event: SessionEventInfo) {
        self.shared.say(self.place.id, event);
    }

    async fn hear(&self, heard: AgentEvent) {
        let text = |text: String| Some(bounded(text));
        match heard {
            AgentEvent::Message { text: said } => {
                let role = Some("assistant".to_owned());
                self.say(SessionEventInfo { text: text(said), role, ..event("message") });
            }
            AgentEvent::ToolCall { id, tool, .. } => {
                let (tool_name, request_id) = (Some(tool), Some(id));
                self.say(SessionEventInfo { tool_name, request_id, ..event("tool_call") });
            }
            AgentEvent::ToolResult { id, tool, is_error, .. } => {
                let (tool_name, request_id) = (Some(tool), Some(id));
                let text = Some(if is_error { "failed" } else { "succeeded" }.to_owned());
                self.say(SessionEventInfo { tool_name, request_id, text, ..event("tool_result") });
            }
            AgentEvent::Log { text: said } => {
                self.say(SessionEventInfo { text: text(said), ..event("log") });
            }
            AgentEvent::Error { text: said } => {
                self.say(SessionEventInfo { text: text(said), ..event("error") });
                self.turn_ended().await;
            }
            AgentEvent::AgentGarbage { lines, sample } => {
                let said = format!("{lines} lines that are no event, the first: {sample}");
                self.say(SessionEventInfo { text: text(said), ..event("agent_garbage") });
            }
            AgentEvent::Done => {
                self.say(event("completion"));
                self.turn_ended().await;
            }
            AgentEvent::AgentExited { code: Some(0), .. } => self.rests().await,
            AgentEvent::AgentExited { code, signal, stderr } => {
                let how = match (code, signal) {
                    (Some(code), _) => format!("with code {code}"),
                    (None, Some(signal)) => format!("by signal {signal}"),
                    (None, None) => "without telling how".to_owned(),
                };
                self.failed(format!("the agent ended {how}\n{}", stderr.trim_end())).await;
            }
        }
    }

    /// The agent is done with a message.
    async fn turn_ended(&self) {
        let now = self.shared.now();
        let settled = lock(&self.shared.sessions.table).end_turn(now, self.place.id);
        if let Some(state) = settled {
            self.settled(state).await;
        }
    }

    /// The agent has nothing to do any more. A message starts another.
    async fn rests(&self) {
        let now = self.shared.now();
        let settled = lock(&self.shared.sessions.table).rest(now, self.place.id);
        if let Some(state) = settled {
            self.settled(state).await;
        }
    }

    async fn settled(&self, state: SessionState) {
        self.changed(state).await;
        // There is another moment now at which a session is idle for too long.
        self.shared.jobs.deadlines.notify_one();
    }

    /// The agent is of no use any more. The session stays: a message may start another agent.
    async fn failed(&self, text: String) {
        self.say(SessionEventInfo { text: Some(bounded(text)), ..event("error") });
        self.rests().await;
    }

    async fn changed(&self, state: SessionState) {
        self.store(state).await;
        self.shared.say_state(self.place.id, state, None);
    }

    async fn store(&self, state: SessionState) {
        let at = self.shared.now().unix;
        let changed = Record::SessionChanged { id: self.place.id, state, at };
        if let Err(error) = self.shared.commit_for_sure(&[changed]).await {
            tracing::error!(session = %self.place.id, %error, "a session's state is not stored");
        }
    }
}

/// An error with all that caused it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// The next thing an agent says; `None` when it is gone, never if there is none.
async fn next(running: &mut Option<Running>) -> Option<AgentEvent> {
    match running {
        Some(running) => running.agent.next().await,
        None => std::future::pending().await,
    }
}
