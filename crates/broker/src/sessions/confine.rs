//! What keeps agents from the rest of this machine, and from each other.

use std::error::Error as _;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_agents::{AgentProcess, AgentSpec, Exiting, Launched, Launcher};
use ringback_proto::ids::SessionId;
use ringback_proto::{Certainty, Error, ErrorKind, Result};
use ringback_sandbox::{
    BackendChoice, BackendKind, Confined, DockerSettings, Hold, Layer, Limits, Network, OpenError,
    Process, ReadOnly, Sandbox, SandboxSettings, SandboxSpec, StartError, Workspace, places,
};
use tokio::runtime::{Handle, RuntimeFlavor};

use super::installed::Programs;
use super::{ELSEWHERE, Sessions};
use crate::shared::Shared;
use crate::sync::lock;

/// Said where an agent is not confined, to everybody who starts one.
const NOT_CONFINED: &str = "the agent runs as the daemon's own user, in its own process group and \
    directory, without further confinement";
/// Said where a server of tools is not confined, of a session whose agent is none of ours.
const SERVER_NOT_CONFINED: &str = "the server of tools runs as the daemon's own user, in its own \
    process group and directory, without further confinement";
/// Said where an agent cannot be confined: what to do if nothing else helps.
const OR_ELSE: &str = "or set `sandbox.backend = \"none\"`, which runs agents unconfined";

/// How agents are confined.
#[derive(Debug, Clone)]
pub enum Confinement {
    /// Not at all: an agent can do what the daemon's user can.
    Unconfined,
    /// In a sandbox, or not started.
    Sandbox(Box<SandboxRules>),
}

/// What the sandboxes of agents are like.
#[derive(Debug, Clone)]
pub struct SandboxRules {
    /// Where the sandbox keeps its own files.
    pub state_dir: Utf8PathBuf,
    /// How far an agent may go.
    pub limits: Limits,
    /// What of this machine an agent can read besides the system.
    pub read_only: Vec<Utf8PathBuf>,
    /// What no agent may see, whatever else is said.
    pub hidden: Vec<PathBuf>,
    /// What makes the sandboxes.
    pub backend: BackendChoice,
    /// Where bubblewrap is, if not where it usually is.
    pub program: Option<Utf8PathBuf>,
    /// Where a container engine is, and the image of agents.
    pub docker: DockerSettings,
}

/// Confines agents.
#[derive(Debug)]
pub(super) struct Confiner {
    rules: SandboxRules,
    sandbox: OnceLock<Sandbox>,
    /// This machine was seen to give all that is promised.
    is_complete: AtomicBool,
}

/// Starts the processes of one session's agent in boxes.
#[derive(Debug)]
pub(super) struct BoxLauncher {
    confiner: Arc<Confiner>,
    session_dir: Utf8PathBuf,
    inside: Option<Utf8PathBuf>,
    /// What the agent's own program needs to read.
    shown: Vec<PathBuf>,
    /// The image of its project, if that has one.
    image: Option<String>,
    /// The boxes there were since nobody looked.
    holds: Mutex<Vec<Hold>>,
}

/// The process of an agent, or of a server of tools, in its box.
#[derive(Debug)]
pub(super) struct BoxProcess(pub(super) Process);

/// Where an agent finds what it is told of.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) workspace: Utf8PathBuf,
    pub(super) home: Utf8PathBuf,
    /// Where its sockets are.
    pub(super) session_dir: Utf8PathBuf,
    /// The program inside.
    pub(super) inside: Option<String>,
}

impl Confiner {
    pub(super) fn new(confinement: &Confinement) -> Option<Arc<Self>> {
        match confinement {
            Confinement::Unconfined => None,
            Confinement::Sandbox(rules) => Some(Arc::new(Self {
                rules: (**rules).clone(),
                sandbox: OnceLock::new(),
                is_complete: AtomicBool::new(false),
            })),
        }
    }

    pub(super) const fn rules(&self) -> &SandboxRules {
        &self.rules
    }

    /// Opens the sandbox, the first time. May block.
    fn open(&self) -> std::result::Result<&Sandbox, OpenError> {
        if let Some(sandbox) = self.sandbox.get() {
            return Ok(sandbox);
        }
        let opened = Sandbox::open(SandboxSettings {
            state_dir: self.rules.state_dir.clone().into(),
            hidden: self.rules.hidden.clone(),
            backend: self.rules.backend,
            program: self.rules.program.clone().map(Into::into),
            docker: self.rules.docker.clone(),
        })?;
        Ok(self.sandbox.get_or_init(|| opened))
    }

    /// Where the programs of agents are. May block.
    pub(super) fn programs(&self, path: OsString) -> std::result::Result<Programs, OpenError> {
        Ok(match self.open()?.backend() {
            BackendKind::Bubblewrap => Programs::Here(path),
            BackendKind::Docker => Programs::Image,
        })
    }
}

impl BoxLauncher {
    pub(super) fn new(
        confiner: Arc<Confiner>,
        session_dir: Utf8PathBuf,
        inside: Option<Utf8PathBuf>,
        shown: Vec<PathBuf>,
        image: Option<String>,
    ) -> Arc<Self> {
        let holds = Mutex::new(Vec::new());
        Arc::new(Self { confiner, session_dir, inside, shown, image, holds })
    }

    /// Ends what is left in the boxes, and returns when they are gone.
    pub(super) async fn gone(&self) {
        let holds = std::mem::take(&mut *lock(&self.holds));
        for hold in holds {
            hold.gone().await;
        }
    }

    fn spec(&self, agent: &AgentSpec) -> SandboxSpec {
        let rules = &self.confiner.rules;
        let named = rules.read_only.iter().map(ReadOnly::same);
        SandboxSpec {
            program: agent.command.clone(),
            args: agent.args.clone(),
            env: agent.env.clone(),
            workspace: Workspace::Write(agent.workspace.clone()),
            working_dir: None,
            home: Some(agent.home.clone()),
            session_dir: Some(self.session_dir.clone().into()),
            inside: self.inside.clone().map(Into::into),
            read_only: named.chain(self.shown.iter().map(ReadOnly::same)).collect(),
            limits: rules.limits,
            network: Network::None,
            image: self.image.clone(),
        }
    }
}

impl Launcher for BoxLauncher {
    fn launch(
        &self,
        spec: &AgentSpec,
    ) -> std::result::Result<Launched, Box<dyn std::error::Error + Send + Sync>> {
        let sandbox = self.confiner.open()?;
        let spec = self.spec(spec);
        let start = || sandbox.start_blocking(&spec);
        // An agent that is started for each message is started where its events are waited for:
        // others on this thread go on elsewhere.
        let can_step_aside = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        let confined = if can_step_aside { tokio::task::block_in_place(start) } else { start() };
        let Confined { pipes, process, hold } = confined?;
        // An agent has one process at a time: the boxes before this one are over.
        let before = std::mem::replace(&mut *lock(&self.holds), vec![hold]);
        drop(before);
        Ok(Launched {
            stdin: pipes.stdin,
            stdout: pipes.stdout,
            stderr: pipes.stderr,
            process: Box::new(BoxProcess(process)),
        })
    }
}

impl AgentProcess for BoxProcess {
    fn id(&self) -> Option<u32> {
        self.0.id()
    }

    fn wait(&mut self) -> Exiting<'_> {
        Box::pin(self.0.wait())
    }

    fn terminate(&self) {
        self.0.terminate();
    }

    fn kill(&self) {
        self.0.kill();
    }

    fn ended_because(&self) -> Option<String> {
        self.0.ended_because().map(str::to_owned)
    }
}

impl Seen {
    /// As they are in a box, or on this machine.
    pub(super) fn of(
        is_confined: bool,
        workspace: &Utf8Path,
        home: &Utf8Path,
        session_dir: &Utf8Path,
        inside: Option<&Utf8Path>,
    ) -> Self {
        let [workspace, home, session_dir] = if is_confined {
            [places::WORKSPACE, places::HOME, places::SESSION].map(Utf8Path::new)
        } else {
            [workspace, home, session_dir]
        };
        let inside = inside.map(|at| if is_confined { Utf8Path::new(places::INSIDE) } else { at });
        Self {
            workspace: workspace.to_owned(),
            home: home.to_owned(),
            session_dir: session_dir.to_owned(),
            inside: inside.map(Utf8Path::to_string),
        }
    }
}

impl Sessions {
    /// Whether an agent is confined here. One that runs elsewhere is not ours to confine.
    pub(crate) fn confines(&self, agent: &str) -> bool {
        self.confiner.is_some() && agent != ELSEWHERE
    }

    /// What everybody who starts a session with this agent should know.
    pub(crate) fn notice(&self, session: SessionId, agent: &str) -> Option<&'static str> {
        let has_server = || self.live(session).is_some_and(|live| !lock(&live.servers).is_empty());
        if self.confiner.is_some() {
            None
        } else if agent != ELSEWHERE {
            Some(NOT_CONFINED)
        } else {
            has_server().then_some(SERVER_NOT_CONFINED)
        }
    }
}

impl Shared {
    /// Whether agents are confined as they should be; if they cannot be, none is started. One that has an
    /// image of its own needs no other.
    pub(crate) async fn check_confinement(&self, has_image: bool) -> Result<()> {
        let Some(confiner) = self.sessions.confiner.clone() else { return Ok(()) };
        match self.missing_layer(&confiner, has_image).await? {
            None => Ok(()),
            Some(missing) => Err(refused(&missing)),
        }
    }

    /// What is missing of what is promised, if something is.
    pub(super) async fn missing_layer(
        &self,
        confiner: &Arc<Confiner>,
        has_image: bool,
    ) -> Result<Option<StartError>> {
        if confiner.is_complete.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let sandbox = self.open_sandbox(confiner).await?;
        let missing = sandbox.probe(&confiner.rules.limits).await.first_missing();
        match missing {
            // What is missing may be installed at any time; what is there stays.
            None => confiner.is_complete.store(true, Ordering::Relaxed),
            Some(StartError::Layer { layer: Layer::Image, .. }) if has_image => return Ok(None),
            Some(_) => {}
        }
        Ok(missing)
    }

    /// Ends agents that outlived a daemon that was killed.
    pub(crate) async fn end_leftover_agents(&self) {
        if let Some(confiner) = self.sessions.confiner.clone()
            && let Err(error) = self.open_sandbox(&confiner).await
        {
            tracing::error!(%error, "agents cannot be confined, and none will be started");
        }
    }

    pub(super) async fn open_sandbox(&self, confiner: &Arc<Confiner>) -> Result<Sandbox> {
        let confiner = Arc::clone(confiner);
        self.kernel
            .blocking(move || {
                confiner.open().cloned().map_err(|error| {
                    let message = told(&error, error.source());
                    Error::new(ErrorKind::Internal, message).with_source(error)
                })
            })
            .await
    }
}

fn refused(missing: &StartError) -> Error {
    let why = told(missing, missing.source());
    let message = format!("agents cannot be confined here, so none is started: {why}; {OR_ELSE}");
    Error::new(ErrorKind::ToolFailed, message).with_certainty(Certainty::NotStarted)
}

fn told(
    error: &dyn std::error::Error,
    source: Option<&(dyn std::error::Error + 'static)>,
) -> String {
    let cause = source.map(|cause| format!(": {cause}"));
    format!("{error}{}", cause.unwrap_or_default())
}
