//! The sandboxes of agents: their rules, how they start, and what an agent sees in them.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_agents::{AgentProcess, AgentSpec, ExitFuture, LaunchedProcess, Launcher, Programs};
use ringback_sandbox::{
    BackendChoice, BackendKind, ConfinedProgram, DockerSettings, Limits, Network, OpenError,
    Process, ReadOnly, Sandbox, SandboxGuard, SandboxSettings, SandboxSpec, Workspace, places,
};
use tokio::runtime::{Handle, RuntimeFlavor};

use crate::sync::lock;

/// How agents are confined.
#[derive(Debug, Clone)]
pub enum Confinement {
    /// Not at all: an agent has all rights of the daemon's user.
    Unconfined,
    /// In a sandbox; an agent that cannot be confined is not started.
    Sandbox(Box<SandboxRules>),
}

/// Rules for the sandboxes of agents.
#[derive(Debug, Clone)]
pub struct SandboxRules {
    /// Directory of the sandbox's own files.
    pub state_dir: Utf8PathBuf,
    /// Resource limits of an agent.
    pub limits: Limits,
    /// Read-only paths: what an agent can read besides the system.
    pub read_only: Vec<Utf8PathBuf>,
    /// Paths that no agent may see, whatever the other rules allow.
    pub hidden: Vec<PathBuf>,
    /// The home of the daemon's user: of what is in it, agents may see toolchains.
    pub home: Option<PathBuf>,
    /// The backend to use.
    pub backend: BackendChoice,
    /// Path of bubblewrap, if not the usual one.
    pub program: Option<Utf8PathBuf>,
    /// Address of the container engine, and the image of agents.
    pub docker: DockerSettings,
}

/// The sandbox of agents, opened on first use, with its rules.
#[derive(Debug)]
pub(crate) struct Confiner {
    rules: SandboxRules,
    sandbox: OnceLock<Sandbox>,
    /// All layers of confinement were found on this machine.
    pub(super) is_complete: AtomicBool,
}

/// The launcher that starts the processes of one session's agent in sandboxes.
#[derive(Debug)]
pub(crate) struct BoxLauncher {
    confiner: Arc<Confiner>,
    session_dir: Utf8PathBuf,
    inside: Option<Utf8PathBuf>,
    /// Paths that the agent's own program needs to read.
    shown: Vec<PathBuf>,
    /// The toolchains of its user.
    equipment: Equipment,
    /// The image of its project, if it has one.
    image: Option<String>,
    /// The sandboxes that were not ended yet.
    holds: Mutex<Vec<SandboxGuard>>,
}

/// What a sandbox has of its user's toolchains.
#[derive(Debug, Default)]
pub(crate) struct Equipment {
    pub(crate) read_only: Vec<ReadOnly>,
    pub(crate) masked: Vec<PathBuf>,
    /// The caches of its project.
    pub(crate) cache: Option<PathBuf>,
}

/// The process of an agent or a tool server in its sandbox.
#[derive(Debug)]
pub(crate) struct BoxProcess(pub(crate) Process);

/// The paths of a session, as its agent sees them.
#[derive(Debug)]
pub(crate) struct VisiblePaths {
    pub(crate) workspace: Utf8PathBuf,
    pub(crate) home: Utf8PathBuf,
    /// Directory of its sockets.
    pub(crate) session_dir: Utf8PathBuf,
    /// Path of the program inside.
    pub(crate) inside: Option<String>,
}

impl Confiner {
    pub(crate) fn new(confinement: &Confinement) -> Option<Arc<Self>> {
        match confinement {
            Confinement::Unconfined => None,
            Confinement::Sandbox(rules) => Some(Arc::new(Self {
                rules: (**rules).clone(),
                sandbox: OnceLock::new(),
                is_complete: AtomicBool::new(false),
            })),
        }
    }

    pub(crate) const fn rules(&self) -> &SandboxRules {
        &self.rules
    }

    /// Opens the sandbox on first use. May block.
    pub(super) fn open(&self) -> Result<&Sandbox, OpenError> {
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

    /// Returns where to search for agent programs. May block.
    pub(crate) fn programs(&self, path: OsString) -> Result<Programs, OpenError> {
        Ok(match self.open()?.backend() {
            BackendKind::Bubblewrap => Programs::Here(path),
            BackendKind::Docker => Programs::Image,
        })
    }
}

impl BoxLauncher {
    pub(crate) fn new(
        confiner: Arc<Confiner>,
        session_dir: Utf8PathBuf,
        inside: Option<Utf8PathBuf>,
        shown: Vec<PathBuf>,
        equipment: Equipment,
        image: Option<String>,
    ) -> Arc<Self> {
        let holds = Mutex::new(Vec::new());
        Arc::new(Self { confiner, session_dir, inside, shown, equipment, image, holds })
    }

    /// Ends all processes in the sandboxes, and returns when they are gone.
    pub(crate) async fn gone(&self) {
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
            read_only: named
                .chain(self.shown.iter().map(ReadOnly::same))
                .chain(self.equipment.read_only.iter().cloned())
                .collect(),
            masked: self.equipment.masked.clone(),
            cache: self.equipment.cache.clone(),
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
    ) -> Result<LaunchedProcess, Box<dyn std::error::Error + Send + Sync>> {
        let sandbox = self.confiner.open()?;
        let spec = self.spec(spec);
        let start = || sandbox.start_blocking(&spec);
        // An agent that is started per message starts on a thread that waits for events: let the
        // runtime move other tasks to another thread.
        let can_step_aside = Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread;
        let confined = if can_step_aside { tokio::task::block_in_place(start) } else { start() };
        let ConfinedProgram { pipes, process, hold } = confined?;
        // An agent has one process at a time: the earlier sandboxes are done.
        let before = std::mem::replace(&mut *lock(&self.holds), vec![hold]);
        drop(before);
        Ok(LaunchedProcess {
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

    fn wait(&mut self) -> ExitFuture<'_> {
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

impl VisiblePaths {
    /// Returns the paths in the sandbox, or on the host if not confined.
    pub(crate) fn of(
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
