//! The supervisor of a session: owns its agent and its tool servers, passes messages on, and turns
//! the agent's output into events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_agents::{
    AgentEvent, AgentHandle, Driver, Launcher, MessageAttachment, Permissions, Programs,
    SharedPolicy,
};
use ringback_core::sessions::SessionPlace;
use ringback_proto::record::{ProjectRecord, Record, SessionState};
use ringback_proto::request::{PermissionAnswer, SessionEventInfo};
use ringback_proto::{Error, ErrorKind};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::confinement::{BoxLauncher, VisiblePaths};
use crate::disk::Watch;
use crate::failure::chain;
use crate::sessions::conversation::agent_events::shown;
use crate::sessions::conversation::events::{bounded, event};
use crate::sessions::conversation::redaction::Redactor;
use crate::sessions::lifecycle::agent::{Answers, INSIDE, Place, PlacedToolchains, Ready};
use crate::sessions::lifecycle::choice::ChosenAgent;
use crate::sessions::lifecycle::equipment::equipped;
use crate::sessions::offers::RunningServer;
use crate::sessions::{ELSEWHERE, Key, Sessions};
use crate::sync::lock;

/// Orders that may wait for the supervisor.
pub(in crate::sessions) const ORDERS_MAX: usize = 64;

/// Extra time for tool servers beyond the grace period, to notice that it has started.
const SERVERS_SLACK: Duration = Duration::from_secs(1);

/// A message for an agent, with files that are in its workspace.
#[derive(Debug)]
pub(in crate::sessions) struct Message {
    pub(in crate::sessions) text: String,
    pub(in crate::sessions) attached: Vec<MessageAttachment>,
}

/// An order to the supervisor.
#[derive(Debug)]
pub(in crate::sessions) enum Order {
    /// A message for the agent. Boxed: a queue has room for 32 orders from its start, in every
    /// session.
    Message(Box<Message>),
    /// The answer to a permission request; without an option, the request is withdrawn.
    Answer(Box<PermissionAnswer>),
    /// Abort the agent's turn, and drop its waiting messages.
    Abort,
    /// Supervise a tool server.
    Serve(Box<RunningServer>),
    /// End the agent and the supervisor.
    End,
}

/// A running agent.
#[derive(Debug)]
struct RunningAgent {
    agent: Driver,
    handle: AgentHandle,
    /// Its sandboxes, if it is confined.
    launcher: Option<Arc<BoxLauncher>>,
    /// Disk watch.
    _watch: Watch,
}

/// The supervisor of one session.
#[derive(Debug)]
pub(in crate::sessions) struct Keeper {
    sessions: Arc<Sessions>,
    place: SessionPlace,
    chosen: ChosenAgent,
    kept: SupervisorSettings,
    done: watch::Sender<bool>,
    /// The conversation that the next agent continues; `None` if not looked up yet.
    conversation: Option<Option<String>>,
}

/// What a supervisor needs to start agents.
#[derive(Debug)]
pub(in crate::sessions) struct SupervisorSettings {
    /// Whether the session never ran before: then there is no conversation to continue.
    pub(in crate::sessions) is_new: bool,
    /// Directory of the session's sockets.
    pub(in crate::sessions) dir: Utf8PathBuf,
    pub(in crate::sessions) key: Option<Key>,
    /// The answers to permission requests.
    pub(in crate::sessions) permissions: SharedPolicy,
}

impl Keeper {
    pub(in crate::sessions) fn new(
        sessions: Arc<Sessions>,
        place: SessionPlace,
        chosen: ChosenAgent,
        kept: SupervisorSettings,
        done: watch::Sender<bool>,
    ) -> Self {
        let conversation = kept.is_new.then_some(None);
        Self { sessions, place, chosen, kept, done, conversation }
    }

    pub(in crate::sessions) async fn run(mut self, mut inbox: mpsc::Receiver<Order>) {
        let mut running: Option<Box<RunningAgent>> = None;
        let mut servers = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                order = inbox.recv() => match order {
                    None | Some(Order::End) => break,
                    // Boxed like everything rare: most of possibly many sessions are idle.
                    Some(Order::Message(message)) => {
                        Box::pin(self.tell(&mut running, *message)).await;
                    }
                    Some(Order::Answer(answer)) => {
                        let PermissionAnswer { request_id, option } = *answer;
                        self.pass(&running, |handle| handle.answer(request_id, option));
                    }
                    Some(Order::Abort) => self.pass(&running, AgentHandle::abort),
                    Some(Order::Serve(served)) => drop(servers.spawn(served.run())),
                },
                () = self.sessions.budgets.time_to_look(self.place.id) => {
                    self.sessions.budgets.look_at_work(self.place.id);
                }
                heard = next(&mut running) => match heard {
                    Some(heard) => Box::pin(self.hear(heard)).await,
                    None => running = None,
                },
                // A tool server that ended is not restarted: its calls fail immediately.
                Some(_) = servers.join_next() => {}
            }
        }
        Box::pin(self.end(running, servers)).await;
        self.sessions.budgets.work_ends(self.place.id);
        self.done.send_replace(true);
    }

    /// Ends the agent and the tool servers.
    async fn end(&self, running: Option<Box<RunningAgent>>, mut servers: JoinSet<()>) {
        let grace = self.sessions.kernel.config.sessions.end_grace;
        if let Some(running) = running {
            let RunningAgent { mut agent, handle, launcher, _watch } = *running;
            handle.terminate(grace);
            while agent.next().await.is_some() {}
            if let Some(launcher) = launcher {
                launcher.gone().await;
            }
        }
        self.sessions.conversations.take_questions_back(self.place.id);
        // Their streams ended with the session, so they end too, with the grace of an agent.
        let ended = async { while servers.join_next().await.is_some() {} };
        if tokio::time::timeout(grace + SERVERS_SLACK, ended).await.is_err() {
            servers.shutdown().await;
        }
    }

    /// Passes a message to the agent, and starts the agent if it is not running.
    async fn tell(
        &mut self,
        running: &mut Option<Box<RunningAgent>>,
        Message { text, attached }: Message,
    ) {
        if self.chosen.name == ELSEWHERE {
            // The agent at the URL finds the message among the events.
            return self.turn_ended().await;
        }
        if running.is_none() {
            match self.start().await {
                Ok(started) => *running = Some(Box::new(started)),
                Err(why) => return self.failed(why).await,
            }
        }
        self.changed(SessionState::Running).await;
        self.sessions.budgets.work_begins(self.place.id);
        if let Some(running) = running
            && let Err(error) = running.handle.send_with(text, attached)
        {
            self.say(SessionEventInfo { text: Some(error.to_string()), ..event("error") });
            self.turn_ended().await;
        }
    }

    /// Passes an order to the agent, if it is running.
    fn pass(
        &self,
        running: &Option<Box<RunningAgent>>,
        what: impl FnOnce(&AgentHandle) -> Result<(), ringback_agents::SendError>,
    ) {
        let passed = running.as_ref().map(|running| what(&running.handle));
        let refused = match passed {
            Some(Ok(())) => return,
            Some(Err(error)) => error.to_string(),
            None => "no agent is running".to_owned(),
        };
        self.say(SessionEventInfo { text: Some(refused), ..event("log") });
    }

    async fn start(&mut self) -> Result<RunningAgent, String> {
        let settings = &self.sessions.kernel.config.sessions;
        let usual = Arc::clone(&self.chosen.command);
        self.sessions.disk.check_disk().await.map_err(|error| error.to_string())?;
        let has_network = self.has_network();
        let is_wanted = usual.wants_inside(settings.inside.is_some(), has_network);
        let inside = self.prepare(is_wanted).await.map_err(|error| error.to_string())?;
        let (overall, project) = self.permissions().await?;
        let conversation = self.conversation().await;
        let mut place = self.agent_place(inside.as_deref(), has_network);
        let tooling = self.sessions.workspaces.tooling(self.place.project, self.place.workspace);
        let tooling = tooling.await.map_err(|error| error.to_string())?;
        let cache = tooling.as_ref().and_then(|tooling| tooling.cache.clone());
        let permissions = Answers { overall, policy: self.kept.permissions.clone() };
        let image = self.sessions.images.image_of_sessions(&project).await;
        let image = image.map_err(|error| error.to_string())?;
        let (confiner, dir) = (self.sessions.sandboxes.confiner.clone(), self.kept.dir.clone());
        let path = self.sessions.kernel.config.sessions.path.clone();
        let begin = move || {
            let programs = match &confiner {
                None => Programs::Here(path),
                Some(confiner) => confiner.programs(path).map_err(|error| chain(&error))?,
            };
            let (toolchains, equipment) = equipped(tooling, confiner.as_deref(), &programs);
            place.toolchains = toolchains;
            let Ready { mut spec, shown, protocol, files } =
                usual.ready(place, &programs, &permissions, conversation)?;
            let launcher = confiner
                .map(|confiner| BoxLauncher::new(confiner, dir, inside, shown, equipment, image));
            spec.launcher = launcher.clone().map(|launcher| launcher as Arc<dyn Launcher>);
            let parts = Driver::start(spec, protocol, files).map_err(|error| chain(&error))?;
            Ok::<_, String>((parts, launcher))
        };
        let before = self.sessions.disk.measured_before(self.place, cache).await;
        let parts = self.sessions.kernel.blocking(move || Ok(begin())).await;
        let ((agent, handle), launcher) = parts.map_err(|error| error.to_string())??;
        let watch = self.sessions.disk.watch(self.place, &handle, before);
        Ok(RunningAgent { agent, handle, launcher, _watch: watch })
    }

    /// Sets the answers to permission requests. Returns the overall answer and the project.
    async fn permissions(&self) -> Result<(Permissions, ProjectRecord), String> {
        let id = self.place.project;
        let mut known = None;
        loop {
            let project = self.sessions.kernel.read(move |store| store.project(id)).await;
            let project = project.map_err(|error| error.to_string())?;
            let project = project.ok_or_else(|| format!("project {id} no longer exists"))?;
            let policy = self.sessions.policy_for(project.permissions.as_ref(), &self.chosen);
            let policy = policy.map_err(|error| chain(&error))?;
            let overall = policy.overall();
            // Unchanged since the policy was set; a later change sets its own.
            if known.as_ref() == Some(&project.permissions) {
                return Ok((overall, project));
            }
            self.kept.permissions.set(policy);
            known = Some(project.permissions);
        }
    }

    /// Returns whether the session has a network proxy now.
    fn has_network(&self) -> bool {
        let network = self.sessions.register.live(self.place.id).and_then(|live| live.network());
        network.is_some_and(|network| network.mode.has_door())
    }

    /// Returns the conversation to continue: the previous agent's, or that of an earlier run.
    async fn conversation(&mut self) -> Option<String> {
        if self.conversation.is_none() {
            self.conversation =
                Some(self.sessions.conversations.conversation_of(self.place.id).await);
        }
        self.conversation.clone().flatten()
    }

    /// Records the initial state of the workspace for later diffs, if this is its first agent.
    /// Returns the path of the program inside if it is needed.
    async fn prepare(&self, wants_inside: bool) -> ringback_proto::Result<Option<Utf8PathBuf>> {
        let inside = self.sessions.kernel.config.sessions.inside.clone().filter(|_| wants_inside);
        if wants_inside && inside.is_none() {
            let message = format!("this daemon has no program for `{INSIDE}`");
            return Err(Error::new(ErrorKind::Internal, message));
        }
        let remember = self.sessions.workspaces.remember_start(self.place.workspace);
        let work = move || {
            remember()?;
            let path = inside.map(|inside| inside.path()).transpose();
            path.map_err(|error| {
                let message = format!("cannot write the program for `{INSIDE}`: {error}");
                Error::new(ErrorKind::Internal, message).with_source(error)
            })
        };
        self.sessions.kernel.blocking(work).await
    }

    /// Returns the paths and environment of the session, as its agent sees them.
    fn agent_place(&self, inside: Option<&Utf8Path>, has_network: bool) -> Place {
        let host_workspace = self.sessions.workspaces.workspace_path(self.place.workspace);
        let host_home = self.sessions.workspaces.home_path(self.place.workspace);
        let is_confined = self.sessions.sandboxes.confiner.is_some();
        let VisiblePaths { workspace, home, session_dir, inside } =
            VisiblePaths::of(is_confined, &host_workspace, &host_home, &self.kept.dir, inside);
        let socket = session_dir.join("relay.sock");
        let mut env = BTreeMap::from([
            ("RINGBACK_SOCKET".to_owned(), socket.to_string()),
            ("RINGBACK_SESSION".to_owned(), self.place.id.to_string()),
            // The name that clients older than this daemon expect.
            ("OUBLIETTE_PROJECT_ID".to_owned(), self.place.project.to_string()),
        ]);
        let key = self.kept.key.as_ref().map(|key| key.secret.expose().to_owned());
        let server_env: Vec<_> =
            key.into_iter().map(|key| ("OUBLIETTE_API_KEY".to_owned(), key)).collect();
        env.extend(server_env.clone());
        let model_socket = session_dir.join("model.sock");
        let network_socket = has_network.then(|| session_dir.join("network.sock"));
        Place {
            host_workspace,
            workspace,
            host_home,
            home,
            socket,
            inside,
            model_socket,
            network_socket,
            env,
            server_env,
            toolchains: PlacedToolchains::default(),
        }
    }

    /// Returns what hides the secrets in a call of a tool.
    fn redactor(&self, tool: &str) -> Redactor {
        let keys = lock(&self.sessions.conversations.concealed).of(self.place.id);
        let schema = self.sessions.offers.schema_of(self.place.root, tool);
        Redactor::new(keys, schema.as_deref())
    }

    fn say(&self, event: SessionEventInfo) {
        self.sessions.conversations.say(self.place.id, event);
    }

    async fn hear(&mut self, heard: AgentEvent) {
        let after = EventEffect::of(&heard);
        if let AgentEvent::Conversation { id, .. } = &heard {
            self.conversation = Some(Some(id.clone()));
        }
        let redactor = |tool: &str| self.redactor(tool);
        if let Some(event) = shown(heard, redactor) {
            self.say(event);
        }
        match after {
            EventEffect::GoesOn => {}
            EventEffect::TurnEnded => self.turn_ended().await,
            EventEffect::Gone => {
                self.sessions.conversations.take_questions_back(self.place.id);
                self.rests().await;
            }
        }
    }

    /// Handles the end of a turn.
    async fn turn_ended(&self) {
        let now = self.sessions.kernel.now();
        let settled = lock(&self.sessions.register.table).end_turn(now, self.place.id);
        if let Some(state) = settled {
            self.settled(state).await;
        }
    }

    /// Marks the session idle: the agent is gone. A message starts another.
    async fn rests(&self) {
        let now = self.sessions.kernel.now();
        let settled = lock(&self.sessions.register.table).rest(now, self.place.id);
        if let Some(state) = settled {
            self.settled(state).await;
        }
    }

    async fn settled(&self, state: SessionState) {
        self.sessions.budgets.work_ends(self.place.id);
        self.changed(state).await;
        // The next idle deadline has changed.
        self.sessions.kernel.alarm.ring();
    }

    /// Reports a failed agent. The session stays: a message may start another agent.
    async fn failed(&self, text: String) {
        self.say(SessionEventInfo { text: Some(bounded(text)), ..event("error") });
        self.rests().await;
    }

    async fn changed(&self, state: SessionState) {
        self.store(state).await;
        self.sessions.conversations.say_state(self.place.id, state, None);
    }

    async fn store(&self, state: SessionState) {
        let at = self.sessions.kernel.now().unix;
        let changed = Record::SessionChanged { id: self.place.id, state, at };
        if let Err(error) = self.sessions.kernel.commit_or_later(vec![changed]).await {
            tracing::error!(session = %self.place.id, %error, "cannot store a session's state");
        }
    }
}

/// The effect of an agent event on the session.
enum EventEffect {
    GoesOn,
    TurnEnded,
    /// A message starts another agent.
    Gone,
}

impl EventEffect {
    const fn of(heard: &AgentEvent) -> Self {
        match heard {
            AgentEvent::Error { .. } | AgentEvent::Done | AgentEvent::Completion { .. } => {
                Self::TurnEnded
            }
            AgentEvent::AgentExited { .. } => Self::Gone,
            AgentEvent::Message { .. }
            | AgentEvent::Thought { .. }
            | AgentEvent::ToolCall { .. }
            | AgentEvent::ToolResult { .. }
            | AgentEvent::Plan { .. }
            | AgentEvent::PermissionRequest { .. }
            | AgentEvent::PermissionAnswer { .. }
            | AgentEvent::Conversation { .. }
            | AgentEvent::Log { .. }
            | AgentEvent::AgentGarbage { .. } => Self::GoesOn,
        }
    }
}

/// Returns the next agent event; `None` when the agent is gone. Never resolves without an agent.
async fn next(running: &mut Option<Box<RunningAgent>>) -> Option<AgentEvent> {
    match running {
        Some(running) => running.agent.next().await,
        None => std::future::pending().await,
    }
}
