//! The keeper of a session: owns its agent, passes messages to it, and turns what it says into
//! events.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_agents::{Agent, AgentEvent, AgentExit, AgentSpec};
use ringback_core::sessions::Where;
use ringback_proto::record::{Record, SessionState};
use ringback_proto::request::SessionEventInfo;
use tokio::sync::{mpsc, watch};

use super::Key;
use super::say::{bounded, event};
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
        let mut agent: Option<Agent> = None;
        loop {
            tokio::select! {
                biased;
                order = inbox.recv() => match order {
                    None | Some(Order::End) => break,
                    Some(Order::Message(text)) => self.tell(&mut agent, text).await,
                },
                heard = next(&mut agent) => match heard {
                    Some(heard) => self.hear(heard).await,
                    None => self.left(&mut agent).await,
                },
            }
        }
        if let Some(agent) = agent {
            agent.terminate(self.shared.sessions.settings.end_grace).await;
        }
        self.done.send_replace(true);
    }

    /// Passes a message on, to an agent that is started for it if there is none.
    async fn tell(&self, agent: &mut Option<Agent>, text: String) {
        if agent.is_none() {
            match Agent::start(self.spec()) {
                Ok(started) => *agent = Some(started),
                Err(error) => {
                    let text = format!("the agent `{}` cannot be started: {error}", self.agent);
                    return self.failed(text).await;
                }
            }
        }
        self.changed(SessionState::Running).await;
        let sent = agent.as_ref().is_some_and(|agent| agent.send(&text).is_ok());
        if !sent {
            self.say(SessionEventInfo {
                text: Some("the agent does not take messages".to_owned()),
                ..event("error")
            });
        }
    }

    fn spec(&self) -> AgentSpec {
        let settings = &self.shared.sessions.settings;
        let usual = settings.agents.get(&self.agent);
        let mut env: BTreeMap<String, String> =
            usual.map(|usual| usual.env.clone()).unwrap_or_default();
        let socket = self.dir.join("relay.sock");
        env.insert("RINGBACK_SOCKET".to_owned(), socket.into_string());
        env.insert("RINGBACK_SESSION".to_owned(), self.place.id.to_string());
        let inside = serde_json::to_string(&settings.inside).unwrap_or_default();
        env.insert("RINGBACK_INSIDE".to_owned(), inside);
        if let Some(key) = &self.key {
            env.insert("OUBLIETTE_API_KEY".to_owned(), key.secret.expose().to_owned());
        }
        AgentSpec {
            command: usual.map(|usual| usual.command.clone()).unwrap_or_default(),
            env,
            workspace: self.shared.workspace_path(self.place.workspace),
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
            AgentEvent::ToolCall { tool, .. } => {
                self.say(SessionEventInfo { tool_name: Some(tool), ..event("tool_call") });
            }
            AgentEvent::ToolResult { tool, text: said, .. } => {
                let (tool_name, text) = (Some(tool), text(said));
                self.say(SessionEventInfo { tool_name, text, ..event("tool_result") });
            }
            AgentEvent::Log { text: said } => {
                self.say(SessionEventInfo { text: text(said), ..event("log") });
            }
            AgentEvent::Garbage { text: said } => {
                self.say(SessionEventInfo { text: text(said), ..event("agent_garbage") });
            }
            AgentEvent::Done { text: said } => {
                self.say(SessionEventInfo { text: said.map(bounded), ..event("completion") });
                let settled =
                    lock(&self.shared.sessions.table).end_turn(self.shared.now(), self.place.id);
                if let Some(state) = settled {
                    self.store(state).await;
                    self.shared.say_state(self.place.id, state, None);
                    self.shared.jobs.deadlines.notify_one();
                }
            }
        }
    }

    /// The agent's process ended. Without an error the session rests; a message starts it anew.
    async fn left(&self, agent: &mut Option<Agent>) {
        let Some(gone) = agent.take() else { return };
        let AgentExit { success, text } = gone.exited().await;
        if !success {
            return self.failed(text).await;
        }
        let settled = lock(&self.shared.sessions.table).rest(self.shared.now(), self.place.id);
        if let Some(state) = settled {
            self.store(state).await;
            self.shared.say_state(self.place.id, state, None);
            self.shared.jobs.deadlines.notify_one();
        }
    }

    /// The agent is of no use any more. The session stays: a message may start another agent.
    async fn failed(&self, text: String) {
        self.say(SessionEventInfo { text: Some(bounded(text)), ..event("error") });
        let settled = lock(&self.shared.sessions.table).rest(self.shared.now(), self.place.id);
        if settled.is_some() {
            self.store(SessionState::Idle).await;
            self.shared.say_state(self.place.id, SessionState::Idle, None);
            self.shared.jobs.deadlines.notify_one();
        }
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

/// The next thing an agent says; `None` when it is gone, never if there is none.
async fn next(agent: &mut Option<Agent>) -> Option<AgentEvent> {
    match agent {
        Some(agent) => agent.next().await,
        None => std::future::pending().await,
    }
}
