//! The keeper of a session: owns its agent, passes messages to it, and turns what it says into
//! events.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_agents::{
    AgentEvent, AgentHandle, Attached, Driver, Launcher, Permissions, Programs, SharedPolicy,
};
use ringback_core::sessions::Where;
use ringback_proto::record::{ProjectRecord, Record, SessionState};
use ringback_proto::request::{PermissionAnswer, SessionEventInfo};
use ringback_proto::{Error, ErrorKind};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use crate::confinement::{BoxLauncher, Seen};
use crate::disk::Watch;
use crate::failure::causes;
use crate::sessions::conversation::events::{bounded, event};
use crate::sessions::conversation::heard::shown;
use crate::sessions::lifecycle::agent::{Answers, INSIDE, Place, Ready};
use crate::sessions::offers::Served;
use crate::sessions::{ELSEWHERE, Key, Sessions};
use crate::sync::lock;

/// Messages that may wait for the keeper.
pub(in crate::sessions) const ORDERS_MAX: usize = 64;

/// What servers may take beyond the grace, to notice that it has begun.
const SERVERS_SLACK: Duration = Duration::from_secs(1);

/// What a keeper is told.
#[derive(Debug)]
pub(in crate::sessions) enum Order {
    /// A message for the agent, with files that are in its workspace.
    Message(String, Vec<Attached>),
    /// The answer to what the agent asked permission for; without an option it is taken back.
    Answer(Box<PermissionAnswer>),
    /// Stop what the agent does, and forget what it was told.
    Abort,
    /// Keep a server that is a caller.
    Serve(Box<Served>),
    /// End the agent, and yourself.
    End,
}

/// An agent under way.
#[derive(Debug)]
struct Running {
    agent: Driver,
    handle: AgentHandle,
    /// Where it runs, if it is confined.
    launcher: Option<Arc<BoxLauncher>>,
    /// Keeps it from filling the disk.
    _watch: Watch,
}

/// What belongs to one session's agent.
#[derive(Debug)]
pub(in crate::sessions) struct Keeper {
    sessions: Arc<Sessions>,
    place: Where,
    agent: String,
    kept: Kept,
    done: watch::Sender<bool>,
    /// The conversation that the next agent goes on with; `None` if that was not looked up.
    conversation: Option<Option<String>>,
}

/// What a keeper has for its agents.
#[derive(Debug)]
pub(in crate::sessions) struct Kept {
    /// Whether it has never run before: then there is no conversation to go on with.
    pub(in crate::sessions) is_new: bool,
    /// Where the session's sockets are.
    pub(in crate::sessions) dir: Utf8PathBuf,
    pub(in crate::sessions) key: Option<Key>,
    /// What they are answered that ask for permission.
    pub(in crate::sessions) permissions: SharedPolicy,
}

impl Keeper {
    pub(in crate::sessions) fn new(
        sessions: Arc<Sessions>,
        place: Where,
        agent: &str,
        kept: Kept,
        done: watch::Sender<bool>,
    ) -> Self {
        let agent = agent.to_owned();
        let conversation = kept.is_new.then_some(None);
        Self { sessions, place, agent, kept, done, conversation }
    }

    pub(in crate::sessions) async fn run(mut self, mut inbox: mpsc::Receiver<Order>) {
        let mut running: Option<Box<Running>> = None;
        let mut servers = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                order = inbox.recv() => match order {
                    None | Some(Order::End) => break,
                    // Boxed, as is all that is seldom under way: most sessions rest, and many may.
                    Some(Order::Message(text, attached)) => {
                        Box::pin(self.tell(&mut running, text, attached)).await;
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
                // One that has ended stays so: its calls fail at once.
                Some(_) = servers.join_next() => {}
            }
        }
        Box::pin(self.end(running, servers)).await;
        self.sessions.budgets.work_ends(self.place.id);
        self.done.send_replace(true);
    }

    /// Ends the agent, and the servers that are callers.
    async fn end(&self, running: Option<Box<Running>>, mut servers: JoinSet<()>) {
        let grace = self.sessions.kernel.config.sessions.end_grace;
        if let Some(running) = running {
            let Running { mut agent, handle, launcher, _watch } = *running;
            handle.terminate(grace);
            while agent.next().await.is_some() {}
            if let Some(launcher) = launcher {
                launcher.gone().await;
            }
        }
        self.sessions.conversations.take_questions_back(self.place.id);
        // Their streams have ended with the session, and so do they; each has the grace of an agent.
        let ended = async { while servers.join_next().await.is_some() {} };
        if tokio::time::timeout(grace + SERVERS_SLACK, ended).await.is_err() {
            servers.shutdown().await;
        }
    }

    /// Passes a message on, to an agent that is started for it if there is none.
    async fn tell(
        &mut self,
        running: &mut Option<Box<Running>>,
        text: String,
        attached: Vec<Attached>,
    ) {
        if self.agent == ELSEWHERE {
            // Whoever is at the URL finds it among the events.
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

    /// Passes something on to the agent, if there is one.
    fn pass(
        &self,
        running: &Option<Box<Running>>,
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

    async fn start(&mut self) -> Result<Running, String> {
        let settings = &self.sessions.kernel.config.sessions;
        let usual = settings.agents.get(&self.agent).cloned();
        let usual = usual.ok_or_else(|| format!("unknown agent `{}`", self.agent))?;
        self.sessions.disk.check_disk().await.map_err(|error| error.to_string())?;
        let has_network = self.has_network();
        let is_wanted = usual.wants_inside(settings.inside.is_some(), has_network);
        let inside = self.prepare(is_wanted).await.map_err(|error| error.to_string())?;
        let (overall, project) = self.permissions().await?;
        let conversation = self.conversation().await;
        let place = self.agent_place(inside.as_deref(), has_network);
        let permissions = Answers { overall, policy: self.kept.permissions.clone() };
        let image = self.sessions.images.image_of_sessions(&project).await;
        let image = image.map_err(|error| error.to_string())?;
        let (confiner, dir) = (self.sessions.sandboxes.confiner.clone(), self.kept.dir.clone());
        let path = self.sessions.kernel.config.sessions.path.clone();
        let begin = move || {
            let programs = match &confiner {
                None => Programs::Here(path),
                Some(confiner) => confiner.programs(path).map_err(|error| causes(&error))?,
            };
            let Ready { mut spec, shown, protocol, files } =
                usual.ready(place, &programs, &permissions, conversation)?;
            let launcher =
                confiner.map(|confiner| BoxLauncher::new(confiner, dir, inside, shown, image));
            spec.launcher = launcher.clone().map(|launcher| launcher as Arc<dyn Launcher>);
            let begun = Driver::start(spec, protocol, files).map_err(|error| causes(&error))?;
            Ok::<_, String>((begun, launcher))
        };
        let before = self.sessions.disk.measured_before(self.place).await;
        let begun = self.sessions.kernel.blocking(move || Ok(begin())).await;
        let ((agent, handle), launcher) = begun.map_err(|error| error.to_string())??;
        let watch = self.sessions.disk.watch(self.place, &handle, before);
        Ok(Running { agent, handle, launcher, _watch: watch })
    }

    /// Sets what the agent is answered, and says what holds whatever it asks for, and in which project.
    async fn permissions(&self) -> Result<(Permissions, ProjectRecord), String> {
        let id = self.place.project;
        let mut known = None;
        loop {
            let project = self.sessions.kernel.read(move |store| store.project(id)).await;
            let project = project.map_err(|error| error.to_string())?;
            let project = project.ok_or_else(|| format!("project {id} no longer exists"))?;
            let policy = self.sessions.policy_for(project.permissions.as_ref(), &self.agent);
            let policy = policy.map_err(|error| causes(&error))?;
            let overall = policy.overall();
            // A change that came after this was read sets its own.
            if known.as_ref() == Some(&project.permissions) {
                return Ok((overall, project));
            }
            self.kept.permissions.set(policy);
            known = Some(project.permissions);
        }
    }

    /// Whether there is a door to the network now.
    fn has_network(&self) -> bool {
        let network = self.sessions.register.live(self.place.id).and_then(|live| live.network());
        network.is_some_and(|network| network.mode.has_door())
    }

    /// The conversation to go on with: of this agent's predecessor, or of an earlier run.
    async fn conversation(&mut self) -> Option<String> {
        if self.conversation.is_none() {
            self.conversation =
                Some(self.sessions.conversations.conversation_of(self.place.id).await);
        }
        self.conversation.clone().flatten()
    }

    /// Remembers how the workspace is, with which what an agent does is compared if it is the first
    /// there, and gives the path of the program inside if that is wanted.
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

    /// What belongs to the session, as its agent sees it.
    fn agent_place(&self, inside: Option<&Utf8Path>, has_network: bool) -> Place {
        let host_workspace = self.sessions.workspaces.workspace_path(self.place.workspace);
        let host_home = self.sessions.workspaces.home_path(self.place.workspace);
        let is_confined = self.sessions.sandboxes.confiner.is_some();
        let Seen { workspace, home, session_dir, inside } =
            Seen::of(is_confined, &host_workspace, &host_home, &self.kept.dir, inside);
        let socket = session_dir.join("relay.sock");
        let mut env = BTreeMap::from([
            ("RINGBACK_SOCKET".to_owned(), socket.to_string()),
            ("RINGBACK_SESSION".to_owned(), self.place.id.to_string()),
            // By this name the clients that came before this daemon know what to greet with.
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
        }
    }

    fn say(&self, event: SessionEventInfo) {
        self.sessions.conversations.say(self.place.id, event);
    }

    async fn hear(&mut self, heard: AgentEvent) {
        let after = After::of(&heard);
        if let AgentEvent::Conversation { id, .. } = &heard {
            self.conversation = Some(Some(id.clone()));
        }
        if let Some(event) = shown(heard) {
            self.say(event);
        }
        match after {
            After::GoesOn => {}
            After::TurnEnded => self.turn_ended().await,
            After::Gone => {
                self.sessions.conversations.take_questions_back(self.place.id);
                self.rests().await;
            }
        }
    }

    /// The agent is done with a message.
    async fn turn_ended(&self) {
        let now = self.sessions.kernel.now();
        let settled = lock(&self.sessions.register.table).end_turn(now, self.place.id);
        if let Some(state) = settled {
            self.settled(state).await;
        }
    }

    /// The agent has nothing to do any more. A message starts another.
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
        // There is another moment now at which a session is idle for too long.
        self.sessions.kernel.alarm.ring();
    }

    /// The agent is of no use any more. The session stays: a message may start another agent.
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

/// What an event means for the session.
enum After {
    GoesOn,
    TurnEnded,
    /// A message starts another agent.
    Gone,
}

impl After {
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

/// The next thing an agent says; `None` when it is gone, never if there is none.
async fn next(running: &mut Option<Box<Running>>) -> Option<AgentEvent> {
    match running {
        Some(running) => running.agent.next().await,
        None => std::future::pending().await,
    }
}
