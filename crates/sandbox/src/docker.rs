//! Sandboxes made with the API of a container engine: Docker, or Podman's service.
//!
//! Each sandbox is a container of its own. Labels identify its owner, so that a daemon finds the
//! containers of a run that was killed.

mod build;
mod container;
mod context;
mod create;
mod engine;
mod exec;
mod pipes;
mod probe;
mod profile;
mod shared_settings;
mod worker;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, ImageInspect};
use bollard::query_parameters::CreateContainerOptions;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use tokio::sync::{OnceCell, mpsc, oneshot};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

pub(crate) use self::container::Container;
use self::engine::{Engine, Owner};
pub(crate) use self::probe::probe;
use self::shared_settings::SharedSettings;
use self::worker::Worker;
use crate::confined_program::{ConfinedProgram, Pipes, SandboxGuard};
use crate::error::{BuildError, EngineError, ExecError, OpenError, StartError};
use crate::exec::{ExecOutput, ExecSpec};
use crate::image::{BuildSpec, BuiltImage};
use crate::leftovers::{Notes, private_dir};
use crate::mounts;
use crate::process::Process;
use crate::sandbox::{DockerSettings, Inner};
use crate::spec::SandboxSpec;
use crate::sweeper::Remains;
use crate::watches::Reason;

/// How long a start waits for the engine's first answer; leftovers are also looked for later.
const GREETING: Duration = Duration::from_secs(10);
/// When to look again for leftovers of an earlier run, once the engine answers. That run may have
/// requested a start just before it was killed, and the engine takes its time.
const SWEEPS: [Duration; 3] =
    [Duration::from_secs(2), Duration::from_secs(10), Duration::from_secs(60)];

/// Makes sandboxes with a container engine.
#[derive(Debug)]
pub(crate) struct Docker {
    shared: Arc<Shared>,
    /// Looks for leftovers of an earlier run for a while.
    _sweeping: AbortOnDropHandle<()>,
    worker: Worker,
}

#[derive(Debug)]
struct Shared {
    settings: DockerSettings,
    state_dir: PathBuf,
    owner: Arc<Owner>,
    /// Set once it has answered.
    engine: OnceCell<Engine>,
}

/// A container that was started.
struct StartedContainer {
    engine: Engine,
    pipes: Pipes,
    id: Option<u32>,
}

impl Docker {
    /// Gets ready, and removes leftovers of an earlier run if the engine answers. May block.
    pub(crate) fn open(settings: DockerSettings, state_dir: &Path) -> Result<Self, OpenError> {
        let owner = Owner {
            instance: instance(state_dir)?,
            run: uuid::Uuid::new_v4().simple().to_string(),
        };
        let worker = Worker::start()?;
        let shared = Arc::new(Shared {
            settings,
            state_dir: state_dir.to_owned(),
            owner: Arc::new(owner),
            engine: OnceCell::new(),
        });
        let first = Arc::clone(&shared);
        let greeted = async move { timeout(GREETING, first.engine()).await.map(|hi| hi.map(drop)) };
        match worker.handle().wait_for(greeted) {
            Some(Ok(Ok(()))) => {}
            Some(Ok(Err(error))) => {
                tracing::debug!(%error, "cannot ask the container engine for leftovers");
            }
            Some(Err(_)) | None => tracing::warn!("the container engine does not answer"),
        }
        let later = Arc::clone(&shared);
        let sweeping = worker.handle().hold(async move { later.sweep_again().await });
        Ok(Self { shared, _sweeping: sweeping, worker })
    }

    /// Returns whether an earlier run may have left anything.
    pub(crate) fn was_used(state_dir: &Path) -> bool {
        instance_path(state_dir).exists()
    }

    /// Starts a program in a container. Blocks.
    pub(crate) fn start(
        &self,
        inner: &Arc<Inner>,
        spec: &SandboxSpec,
    ) -> Result<ConfinedProgram, StartError> {
        let spec = mounts::checked(spec, inner.hidden())?;
        let place = || spec.session_dir.clone().unwrap_or_default();
        mounts::make_place_for_inside(&spec)
            .map_err(|source| StartError::State { path: place(), source })?;
        let name = Notes::new_name();
        let (shared, of) = (Arc::clone(&self.shared), name.clone());
        let handle = self.worker.handle();
        let started = handle.wait_for(async move { shared.start(&of, &spec).await });
        let StartedContainer { engine, pipes, id } = started.ok_or(StartError::Closed)??;
        let remains = Some(Remains::Docker { name: name.clone() });
        let hold = SandboxGuard { sandbox: Arc::clone(inner), name: name.as_str().into(), remains };
        let why = id.and_then(|id| guarded(inner, &hold, id)).unwrap_or_default();
        let container = Container::new(engine, handle.clone(), name, id);
        Ok(ConfinedProgram { pipes, process: Process::docker(container, why), hold })
    }

    /// Ends and removes a sandbox, and signals `done`.
    pub(crate) fn sweep(&self, name: String, done: Option<oneshot::Sender<()>>) {
        let shared = Arc::clone(&self.shared);
        self.worker.handle().hand_over(async move {
            let removed = async { shared.engine().await?.remove(&name).await };
            if let Err(error) = removed.await {
                tracing::error!(%error, name, "cannot remove a container; the next start tries again");
            }
            done.map(|done| done.send(()));
        });
    }

    pub(crate) async fn exec(&self, name: &str, spec: ExecSpec) -> Result<ExecOutput, ExecError> {
        let engine = self.shared.engine().await?.clone();
        exec::exec(engine, self.worker.handle().clone(), name, spec).await
    }

    pub(crate) async fn image_exists(&self, image: &str) -> Result<bool, EngineError> {
        Ok(self.shared.engine().await?.image(image).await?.is_some())
    }

    pub(crate) async fn build_image(
        &self,
        spec: BuildSpec,
        log: mpsc::Sender<String>,
    ) -> Result<BuiltImage, BuildError> {
        let engine = self.shared.engine().await?.clone();
        let scratch_dir = self.shared.state_dir.clone();
        // If cancelled, the build is ended there, whatever happens to this runtime.
        let building = self.worker.handle().hold(build::build(engine, scratch_dir, spec, log));
        building.await.map_err(|_| EngineError::Closed)?
    }
}

impl Shared {
    /// Returns the engine; leftovers are removed when it answers for the first time.
    async fn engine(&self) -> Result<&Engine, EngineError> {
        let connect = || async {
            let socket = self.settings.path()?;
            let engine = Engine::connect(socket, Arc::clone(&self.owner)).await?;
            sweep(&engine).await?;
            Ok(engine)
        };
        self.engine.get_or_try_init(connect).await
    }

    /// Looks again for leftovers of an earlier run.
    async fn sweep_again(&self) {
        for pause in SWEEPS {
            tokio::time::sleep(pause).await;
            let swept = async { sweep(self.engine().await?).await };
            if let Err(error) = swept.await {
                tracing::debug!(%error, "cannot ask the container engine for leftovers");
            }
        }
    }

    async fn start(&self, name: &str, spec: &SandboxSpec) -> Result<StartedContainer, StartError> {
        let engine = self.engine().await?;
        probe::refuse_missing(&engine.facts, &spec.limits)?;
        let image = self.image(engine, spec.image.as_deref()).await?;
        let home = SharedSettings::new(engine, &self.state_dir, name)?;
        let started = run(engine, name, create::body(spec, &home, &image)?).await;
        if started.is_err()
            && let Err(error) = engine.remove(name).await
        {
            tracing::error!(%error, name, "cannot remove a container; the next start tries again");
        }
        Ok(started?)
    }

    /// Returns the image of a sandbox, which has to exist.
    async fn image(
        &self,
        engine: &Engine,
        wanted: Option<&str>,
    ) -> Result<ImageInspect, StartError> {
        let Some(name) = wanted.or(self.settings.image.as_deref()) else {
            return Err(probe::no_image_named());
        };
        engine.image(name).await?.ok_or_else(|| probe::no_image(name))
    }
}

async fn sweep(engine: &Engine) -> Result<(), EngineError> {
    let n_swept = engine.sweep().await?;
    if n_swept > 0 {
        tracing::warn!(n_swept, "removed containers of an earlier run");
    }
    Ok(())
}

/// Creates and starts a container. It is attached first, so that no output is lost.
async fn run(
    engine: &Engine,
    name: &str,
    body: ContainerCreateBody,
) -> Result<StartedContainer, EngineError> {
    let options = CreateContainerOptions { name: Some(name.to_owned()), ..Default::default() };
    let created = engine.client().create_container(Some(options), body).await;
    created.map_err(engine.told("make a container"))?;
    let pipes = pipes::attach(engine, name).await?;
    let started = engine.client().start_container(name, None).await;
    started.map_err(engine.told("start a container"))?;
    let found = engine.client().inspect_container(name, None).await;
    let found = found.map_err(engine.told("look at a container"))?;
    let id = found.state.and_then(|state| state.pid).and_then(|pid| u32::try_from(pid).ok());
    Ok(StartedContainer { engine: engine.clone(), pipes, id: id.filter(|id| *id > 0) })
}

/// Adds a container to the watch list, unless it has ended already.
fn guarded(inner: &Inner, hold: &SandboxGuard, id: u32) -> Option<Reason> {
    let first = Pid::from_raw(i32::try_from(id).ok()?)?;
    let held = pidfd_open(first, PidfdFlags::empty()).ok()?;
    Some(inner.guard().add(Arc::clone(&hold.name), first, held))
}

fn instance_path(state_dir: &Path) -> PathBuf {
    state_dir.join("instance")
}

/// Returns the ID by which this daemon recognizes its containers; it is created once.
fn instance(state_dir: &Path) -> Result<String, OpenError> {
    let path = instance_path(state_dir);
    if let Ok(name) = fs::read_to_string(&path)
        && !name.trim().is_empty()
    {
        return Ok(name.trim().to_owned());
    }
    let name = uuid::Uuid::new_v4().simple().to_string();
    let failed = |source| OpenError::State { path: path.clone(), source };
    private_dir(state_dir).map_err(failed)?;
    fs::write(&path, &name).map_err(failed)?;
    Ok(name)
}
