//! Makes sandboxes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::bubblewrap::Bubblewrap;
use crate::cgroups::CgroupRoots;
use crate::confined_program::ConfinedProgram;
use crate::docker::{self, Docker};
use crate::error::{BuildError, EngineError, ExecError, OpenError, StartError};
use crate::etc;
use crate::exec::{ExecOutput, ExecSpec};
use crate::image::{BuildSpec, BuiltImage};
use crate::leftovers::Notes;
use crate::mounts;
use crate::probe::{self, Probe};
use crate::spec::{Limits, SandboxSpec};
use crate::sweeper::Remains;
use crate::watches::Guard;

/// The usual socket of a container engine.
const SOCKET: &str = "/var/run/docker.sock";

/// How sandboxes are made.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// The directory for the sandbox's own files. For one process at a time.
    pub state_dir: PathBuf,
    /// What no sandbox may see, whatever it mounts.
    pub hidden: Vec<PathBuf>,
    /// What makes the sandboxes.
    pub backend: BackendChoice,
    /// The path of bubblewrap, if it is not in a usual place.
    pub program: Option<PathBuf>,
    /// The container engine.
    pub docker: DockerSettings,
}

/// The socket of a container engine, and its default image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DockerSettings {
    /// Its socket on this machine: a path, or `unix://` and a path.
    pub socket: String,
    /// The image of sandboxes that name none.
    pub image: Option<String>,
}

/// The configured backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendChoice {
    /// Bubblewrap if it provides every promised layer, otherwise a container engine if that does.
    #[default]
    Auto,
    /// Bubblewrap.
    Bubblewrap,
    /// A container engine.
    Docker,
}

/// The backend in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendKind {
    /// The program `bwrap`.
    Bubblewrap,
    /// A container engine, through its API.
    Docker,
}

/// Makes sandboxes. A handle: clones are the same.
#[derive(Debug, Clone)]
pub struct Sandbox(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    choice: BackendChoice,
    /// The result of `Auto`.
    chosen: OnceLock<BackendKind>,
    hidden: Vec<PathBuf>,
    notes: Notes,
    guard: Guard,
    pub(crate) bubblewrap: Bubblewrap,
    /// Set if it makes sandboxes, may be chosen to, or has made some before.
    docker: Option<Docker>,
}

impl SandboxSettings {
    /// Returns settings with everything in its usual place.
    #[must_use]
    pub fn in_dir(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            state_dir: state_dir.into(),
            hidden: Vec::new(),
            backend: BackendChoice::default(),
            program: None,
            docker: DockerSettings::default(),
        }
    }
}

impl DockerSettings {
    /// Returns the path of the socket.
    ///
    /// # Errors
    /// If it is not on this machine, where the workspaces are.
    pub fn path(&self) -> Result<PathBuf, EngineError> {
        let elsewhere = || EngineError::Elsewhere { address: self.socket.clone() };
        let path = Path::new(self.socket.strip_prefix("unix://").unwrap_or(&self.socket));
        if path.is_absolute() { Ok(path.to_owned()) } else { Err(elsewhere()) }
    }
}

impl Default for DockerSettings {
    fn default() -> Self {
        Self { socket: SOCKET.to_owned(), image: None }
    }
}

impl Sandbox {
    /// Gets ready, and ends leftovers of an earlier run. May block.
    ///
    /// # Errors
    /// If the sandbox's own files cannot be written. A missing bubblewrap is not an error here:
    /// [`Self::probe`] reports missing layers, and so does starting a program.
    pub fn open(settings: SandboxSettings) -> Result<Self, OpenError> {
        // First: it makes the directory for this user alone, whatever the umask is.
        let notes = Notes::open(&settings.state_dir)?;
        let etc = settings.state_dir.join("etc");
        etc::write(&etc).map_err(|source| OpenError::State { path: etc, source })?;
        let n_swept = notes.sweep()?;
        if n_swept > 0 {
            tracing::warn!(n_swept, "cleaned up sandboxes of an earlier run");
        }
        let wants_docker = match settings.backend {
            BackendChoice::Auto | BackendChoice::Docker => true,
            BackendChoice::Bubblewrap => Docker::was_used(&settings.state_dir),
        };
        let docker = wants_docker.then(|| Docker::open(settings.docker, &settings.state_dir));
        Ok(Self(Arc::new(Inner {
            choice: settings.backend,
            chosen: OnceLock::new(),
            hidden: settings.hidden,
            bubblewrap: Bubblewrap::open(settings.program, &notes)?,
            notes,
            guard: Guard::start()?,
            docker: docker.transpose()?,
        })))
    }

    /// Starts a program in a sandbox of its own.
    ///
    /// # Errors
    /// If a layer is missing, or something to mount does not exist. Then nothing runs. An error
    /// inside the sandbox, such as a missing program, ends the program and appears in its error
    /// output.
    ///
    /// # Cancel safety
    /// Nothing is left.
    pub async fn start(&self, spec: SandboxSpec) -> Result<ConfinedProgram, StartError> {
        self.start_in(self.backend(), spec).await
    }

    pub(crate) async fn start_in(
        &self,
        backend: BackendKind,
        spec: SandboxSpec,
    ) -> Result<ConfinedProgram, StartError> {
        let inner = Arc::clone(&self.0);
        let runtime = Handle::current();
        // If cancelled, the start still completes here, and its result is dropped.
        tokio::task::spawn_blocking(move || inner.start(backend, &spec, &runtime))
            .await
            .map_err(|_| StartError::Closed)?
    }

    /// Does the same as [`Self::start`], blocking, within a runtime.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_blocking(&self, spec: &SandboxSpec) -> Result<ConfinedProgram, StartError> {
        self.0.start(self.backend(), spec, &Handle::current())
    }

    /// Reports which layers for a sandbox with these limits this machine provides. Starts a sandbox
    /// to find out, and with `Auto` decides on the backend from now on.
    pub async fn probe(&self, limits: &Limits) -> Probe {
        match self.0.choice {
            BackendChoice::Bubblewrap => probe::probe(self, limits).await,
            BackendChoice::Docker => self.probe_docker(limits).await,
            BackendChoice::Auto => self.choose(limits).await,
        }
    }

    /// Probes both if necessary, and remembers which of them is complete.
    async fn choose(&self, limits: &Limits) -> Probe {
        let chosen = |kind| *self.0.chosen.get_or_init(|| kind);
        if self.0.chosen.get() == Some(&BackendKind::Docker) {
            return self.probe_docker(limits).await;
        }
        let first = probe::probe(self, limits).await;
        if first.is_complete() {
            chosen(BackendKind::Bubblewrap);
            return first;
        }
        let second = self.probe_docker(limits).await;
        if second.is_complete() {
            chosen(BackendKind::Docker);
            return second;
        }
        Probe { instead: second.layers, ..first }
    }

    async fn probe_docker(&self, limits: &Limits) -> Probe {
        match &self.0.docker {
            Some(docker) => docker::probe(self, docker, limits).await,
            None => Probe::of(Vec::new()),
        }
    }

    /// Returns the backend. With `Auto` it is bubblewrap, until [`Self::probe`] has found that only
    /// a container engine provides every promised layer.
    #[must_use]
    pub fn backend(&self) -> BackendKind {
        self.0.backend()
    }

    /// Returns whether the container engine has an image of this name.
    ///
    /// # Errors
    /// If no engine is available, or it does not answer.
    pub async fn image_exists(&self, image: &str) -> Result<bool, EngineError> {
        self.0.engine()?.image_exists(image).await
    }

    /// Builds an image from a directory, and logs the engine's output by line. Waits for a full
    /// log; ignores a closed one.
    ///
    /// # Errors
    /// If no engine is available, the directory cannot be sent, or a step fails.
    ///
    /// # Cancel safety
    /// The build is ended and leaves no image.
    pub async fn build_image(
        &self,
        spec: BuildSpec,
        log: mpsc::Sender<String>,
    ) -> Result<BuiltImage, BuildError> {
        let engine = self.0.engine()?;
        if let Some(hidden) = mounts::hidden_in(&spec.dir, &self.0.hidden) {
            return Err(BuildError::Hidden { dir: spec.dir, hidden });
        }
        engine.build_image(spec, log).await
    }

    pub(crate) fn cgroup_roots(&self) -> &CgroupRoots {
        self.0.bubblewrap.cgroup_roots()
    }

    /// Returns the path of bubblewrap.
    pub(crate) fn program(&self) -> Option<&Path> {
        self.0.bubblewrap.program()
    }

    pub(crate) fn state_dir(&self) -> &Path {
        self.0.notes.state_dir()
    }
}

impl Inner {
    pub(crate) fn hidden(&self) -> &[PathBuf] {
        &self.hidden
    }

    pub(crate) const fn notes(&self) -> &Notes {
        &self.notes
    }

    pub(crate) const fn guard(&self) -> &Guard {
        &self.guard
    }

    fn backend(&self) -> BackendKind {
        match self.choice {
            BackendChoice::Auto => *self.chosen.get().unwrap_or(&BackendKind::Bubblewrap),
            BackendChoice::Bubblewrap => BackendKind::Bubblewrap,
            BackendChoice::Docker => BackendKind::Docker,
        }
    }

    fn start(
        self: &Arc<Self>,
        backend: BackendKind,
        spec: &SandboxSpec,
        runtime: &Handle,
    ) -> Result<ConfinedProgram, StartError> {
        match backend {
            BackendKind::Bubblewrap => self.bubblewrap.start(self, spec, runtime),
            BackendKind::Docker => self.docker()?.start(self, spec),
        }
    }

    /// Ends a sandbox, removes its remains, and signals `done`.
    pub(crate) fn sweep(&self, remains: Remains, done: Option<oneshot::Sender<()>>) {
        match (remains, &self.docker) {
            (Remains::Bubblewrap(swept), _) => self.bubblewrap.sweep(swept, done),
            (Remains::Docker { name }, Some(docker)) => docker.sweep(name, done),
            (Remains::Docker { .. }, None) => {}
        }
    }

    pub(crate) async fn exec(&self, name: &str, spec: ExecSpec) -> Result<ExecOutput, ExecError> {
        match self.backend() {
            BackendKind::Bubblewrap => Err(ExecError::NotPossible),
            BackendKind::Docker => self.docker()?.exec(name, spec).await,
        }
    }

    /// Returns the container engine, if it makes the sandboxes.
    fn docker(&self) -> Result<&Docker, EngineError> {
        self.docker.as_ref().ok_or(EngineError::NotUsed)
    }

    fn engine(&self) -> Result<&Docker, EngineError> {
        match self.backend() {
            BackendKind::Bubblewrap => Err(EngineError::NotUsed),
            BackendKind::Docker => self.docker(),
        }
    }
}
