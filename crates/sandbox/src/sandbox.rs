//! Makes boxes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::bubblewrap::Bubblewrap;
use crate::cgroups::Homes;
use crate::confined::Confined;
use crate::docker::{self, Docker};
use crate::error::{BuildError, EngineError, ExecError, OpenError, StartError};
use crate::etc;
use crate::exec::{ExecSpec, Executed};
use crate::image::{BuildSpec, BuiltImage};
use crate::leftovers::Notes;
use crate::mounts;
use crate::probe::{self, Probe};
use crate::spec::{Limits, SandboxSpec};
use crate::sweeper::Remains;
use crate::watches::Guard;

/// Where a container engine usually is.
const SOCKET: &str = "/var/run/docker.sock";

/// How boxes are made.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Where the sandbox keeps its own files. One process at a time.
    pub state_dir: PathBuf,
    /// What no box may see, whatever it is told to mount.
    pub hidden: Vec<PathBuf>,
    /// What makes the boxes.
    pub backend: BackendChoice,
    /// Where bubblewrap is, if not where it usually is.
    pub program: Option<PathBuf>,
    /// The container engine.
    pub docker: DockerSettings,
}

/// Where a container engine is, and what its boxes are made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DockerSettings {
    /// Its socket on this machine: a path, or `unix://` and a path.
    pub socket: String,
    /// The image of boxes that name none.
    pub image: Option<String>,
}

/// What is to make the boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BackendChoice {
    /// Bubblewrap if it gives all that is promised, otherwise a container engine if that does.
    #[default]
    Auto,
    /// Bubblewrap.
    Bubblewrap,
    /// A container engine.
    Docker,
}

/// What makes the boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendKind {
    /// The program `bwrap`.
    Bubblewrap,
    /// A container engine, by its API.
    Docker,
}

/// Makes boxes. A handle: clones are the same.
#[derive(Debug, Clone)]
pub struct Sandbox(pub(crate) Arc<Inner>);

#[derive(Debug)]
pub(crate) struct Inner {
    choice: BackendChoice,
    /// What `Auto` has come to.
    chosen: OnceLock<BackendKind>,
    hidden: Vec<PathBuf>,
    notes: Notes,
    guard: Guard,
    pub(crate) bubblewrap: Bubblewrap,
    /// Where it makes boxes, may come to, or has made some before.
    docker: Option<Docker>,
}

impl SandboxSettings {
    /// With everything where it usually is.
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
    /// The path of the socket.
    ///
    /// # Errors
    /// When it is not on this machine, where the workspaces are.
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
    /// Gets ready, and ends what an earlier run left. May block.
    ///
    /// # Errors
    /// When the sandbox's own files cannot be written. That bubblewrap is missing is none: what a
    /// machine cannot give is told by [`Self::probe`], and when something is started.
    pub fn open(settings: SandboxSettings) -> Result<Self, OpenError> {
        // First: it makes the directory for this user alone, whatever the mask is.
        let notes = Notes::open(&settings.state_dir)?;
        let etc = settings.state_dir.join("etc");
        etc::write(&etc).map_err(|source| OpenError::State { path: etc, source })?;
        let n_swept = notes.sweep()?;
        if n_swept > 0 {
            tracing::warn!(n_swept, "sandboxes of an earlier run were cleaned up");
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

    /// Starts a program in a box of its own.
    ///
    /// # Errors
    /// When a layer cannot be given, or something to mount is not there. Then nothing runs. What is
    /// wrong only inside of the box, such as a program that it does not have, ends the program and is
    /// in its error output.
    ///
    /// # Cancel safety
    /// Nothing is left.
    pub async fn start(&self, spec: SandboxSpec) -> Result<Confined, StartError> {
        self.start_in(self.backend(), spec).await
    }

    pub(crate) async fn start_in(
        &self,
        backend: BackendKind,
        spec: SandboxSpec,
    ) -> Result<Confined, StartError> {
        let inner = Arc::clone(&self.0);
        let runtime = Handle::current();
        // Cancelled halfway, it goes on to its end here, and what it made is dropped then.
        tokio::task::spawn_blocking(move || inner.start(backend, &spec, &runtime))
            .await
            .map_err(|_| StartError::Closed)?
    }

    /// The same where it may block, within a runtime.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_blocking(&self, spec: &SandboxSpec) -> Result<Confined, StartError> {
        self.0.start(self.backend(), spec, &Handle::current())
    }

    /// What this machine can give of what a box with these limits needs. Starts a box to find out, and
    /// where that is left to it, decides what makes the boxes from now on.
    pub async fn probe(&self, limits: &Limits) -> Probe {
        match self.0.choice {
            BackendChoice::Bubblewrap => probe::probe(self, limits).await,
            BackendChoice::Docker => self.probe_docker(limits).await,
            BackendChoice::Auto => self.choose(limits).await,
        }
    }

    /// Probes both if need be, and remembers which of them is whole.
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

    /// What makes the boxes. Where that is to be found out it is bubblewrap, until [`Self::probe`] has
    /// seen that only a container engine gives all that is promised.
    #[must_use]
    pub fn backend(&self) -> BackendKind {
        self.0.backend()
    }

    /// Whether the container engine has an image of this name.
    ///
    /// # Errors
    /// When there is no engine, or it does not say.
    pub async fn image_exists(&self, image: &str) -> Result<bool, EngineError> {
        self.0.engine()?.image_exists(image).await
    }

    /// Builds an image from a directory, and tells line by line what the engine says. A log that is
    /// full is waited for, one that is closed is done without.
    ///
    /// # Errors
    /// When there is no engine, the directory cannot be handed over, or a step fails.
    ///
    /// # Cancel safety
    /// The build is ended, and there is no image of it.
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

    pub(crate) fn homes(&self) -> &Homes {
        self.0.bubblewrap.homes()
    }

    /// Where bubblewrap is.
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
    ) -> Result<Confined, StartError> {
        match backend {
            BackendKind::Bubblewrap => self.bubblewrap.start(self, spec, runtime),
            BackendKind::Docker => self.docker()?.start(self, spec),
        }
    }

    /// Ends a box and removes what it has; tells when that is done.
    pub(crate) fn sweep(&self, remains: Remains, done: Option<oneshot::Sender<()>>) {
        match (remains, &self.docker) {
            (Remains::Bubblewrap(swept), _) => self.bubblewrap.sweep(swept, done),
            (Remains::Docker { name }, Some(docker)) => docker.sweep(name, done),
            (Remains::Docker { .. }, None) => {}
        }
    }

    pub(crate) async fn exec(&self, name: &str, spec: ExecSpec) -> Result<Executed, ExecError> {
        match self.backend() {
            BackendKind::Bubblewrap => Err(ExecError::NotPossible),
            BackendKind::Docker => self.docker()?.exec(name, spec).await,
        }
    }

    /// The container engine, where it makes the boxes.
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
