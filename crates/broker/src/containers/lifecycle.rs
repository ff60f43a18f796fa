//! Starting and stopping containers.

use std::os::unix::fs::DirBuilderExt as _;
use std::sync::{Arc, Mutex};

use camino::Utf8PathBuf;
use ringback_core::containers::{ContainerState, Refusal};
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::Principal;
use ringback_proto::record::ProjectRecord;
use ringback_proto::request::ContainerInfo;
use ringback_proto::{Error, ErrorKind, Result};
use ringback_sandbox::{ConfinedProgram, SandboxSpec, Workspace, places};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::keeper::Keeper;
use super::ring::Ring;
use super::{ContainerOrigin, Containers, RunningContainer};
use crate::confinement::Boxes;
use crate::disk::{BoxEnd, Watch};
use crate::failure;
use crate::sync::lock;
use crate::workspaces::remove;

/// Default command of a container: the program inside, in the mode that only waits.
const WAIT: [&str; 2] = [places::INSIDE, "wait"];
/// `PATH` in a sandbox.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The content of a project's sandbox.
#[derive(Debug)]
pub(super) struct Interior {
    pub(super) command: Vec<String>,
    pub(super) dir: Utf8PathBuf,
    pub(super) image: Option<String>,
    pub(super) working_dir: Option<String>,
}

/// The slot of a starting container; released if the start fails.
struct Claim<'a> {
    containers: &'a Containers,
    project: ProjectId,
    is_running: bool,
}

/// A project that is being deleted. Dropped without `gone`, the project stays.
#[derive(Debug)]
pub(crate) struct ProjectDeletion {
    containers: Arc<Containers>,
    project: ProjectId,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        if !self.is_running {
            lock(&self.containers.table).release(self.project);
        }
    }
}

impl Drop for ProjectDeletion {
    fn drop(&mut self) {
        lock(&self.containers.table).stay(self.project);
    }
}

impl ProjectDeletion {
    /// Removes the directory of its container.
    pub(crate) async fn remove_dir(&self) -> Result<()> {
        let dir = self.containers.container_path(self.project);
        self.containers.kernel.blocking(move || remove(&dir)).await
    }

    /// Forgets the container: the project is deleted.
    pub(crate) fn gone(self) {
        lock(&self.containers.table).forget(self.project);
    }
}

impl Containers {
    /// Returns the directory of a project's container, which is kept as long as the project.
    pub(super) fn container_path(&self, project: ProjectId) -> Utf8PathBuf {
        self.kernel.config.data_dir.join("containers").join(project.to_string())
    }

    /// Starts the container of a project, unless it is running.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub(crate) async fn start_container(
        self: &Arc<Self>,
        principal: &Principal,
        project: ProjectId,
        command: Option<Vec<String>>,
    ) -> Result<ContainerInfo> {
        let record = self.workspaces.visible_project(principal, project).await?;
        let boxes = self.sandboxes.boxes("a container").await?;
        self.sandboxes.check_boxes(&record).await?;
        let claimed = lock(&self.table).claim(project);
        if let Some(live) = claimed.map_err(|refusal| refused(project, refusal))? {
            return running(&live, command.as_ref(), project);
        }
        let mut claim = Claim { containers: self, project, is_running: false };
        // Check again: a deletion in between would not have seen it.
        let record = self.workspaces.visible_project(principal, project).await?;
        let end = BoxEnd::default();
        let dir = self.container_dir(project).await?;
        let watch = self.disk.watch_box(project, dir, end.clone()).await;
        let (make, confined) = self.make_container(&boxes, &record, command).await?;
        let info = self.keep_container(project, make, confined, (end, watch))?;
        claim.is_running = true;
        Ok(info)
    }

    async fn make_container(
        &self,
        boxes: &Boxes,
        project: &ProjectRecord,
        command: Option<Vec<String>>,
    ) -> Result<(ContainerOrigin, ConfinedProgram)> {
        let image = self.images.ready_image(boxes, project).await?;
        let words = command.clone().unwrap_or_else(|| WAIT.map(str::to_owned).into());
        let dir = self.container_dir(project.id).await?;
        let interior = Interior { command: words, dir, image: image.clone(), working_dir: None };
        let spec = self.box_spec(boxes, interior, command.is_none()).await?;
        let confined = boxes.sandbox.start(spec).await.map_err(|error| not_started(&error))?;
        let image = image.or_else(|| boxes.default_image());
        Ok((ContainerOrigin { backend: boxes.backend(), image, command }, confined))
    }

    /// Hands a container to its supervisor.
    fn keep_container(
        self: &Arc<Self>,
        project: ProjectId,
        make: ContainerOrigin,
        confined: ConfinedProgram,
        (end, watch): (BoxEnd, Watch),
    ) -> Result<ContainerInfo> {
        let ring = Arc::new(Mutex::new(Ring::default()));
        let (done, over) = watch::channel(false);
        let live = Arc::new(RunningContainer {
            make: make.clone(),
            since: self.kernel.now().unix,
            stop: end.stop.clone(),
            over,
            ring: Arc::clone(&ring),
            handle: confined.hold.handle(),
        });
        let info = live.info();
        if !lock(&self.table).run(project, live) {
            return Err(refused(project, Refusal::Closed));
        }
        let containers = Arc::clone(self);
        let keeper = Keeper { containers, project, make, end, watch, ring, over: done };
        drop(self.kernel.tasks.spawn(keeper.run(confined)));
        Ok(info)
    }

    /// Returns the specification of a project's sandbox, with full isolation.
    pub(super) async fn box_spec(
        &self,
        boxes: &Boxes,
        interior: Interior,
        wants_inside: bool,
    ) -> Result<SandboxSpec> {
        let inside = if wants_inside { Some(self.inside_program().await?.into()) } else { None };
        let mut words = interior.command.into_iter();
        let env = [("PATH", PATH), ("HOME", places::WORKSPACE), ("LANG", "C.UTF-8")];
        Ok(SandboxSpec {
            program: words.next().unwrap_or_default().into(),
            args: words.map(Into::into).collect(),
            env: env.map(|(name, value)| (name.into(), value.into())).into(),
            workspace: Workspace::Write(interior.dir.into()),
            working_dir: interior.working_dir.map(Into::into),
            inside,
            image: interior.image,
            ..boxes.plain()
        })
    }

    /// Creates the directory of a project's container, accessible to this user only.
    pub(super) async fn container_dir(&self, project: ProjectId) -> Result<Utf8PathBuf> {
        let dir = self.container_path(project);
        let made = dir.clone();
        self.kernel
            .blocking(move || {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&made).map_err(
                    |error| {
                        let message =
                            format!("cannot create the directory of a container: {error}");
                        Error::new(ErrorKind::Internal, message).with_source(error)
                    },
                )
            })
            .await?;
        Ok(dir)
    }

    async fn inside_program(&self) -> Result<Utf8PathBuf> {
        let Some(inside) = self.kernel.config.sessions.inside.clone() else {
            let message = "this daemon has no default program for containers; set `command`";
            return Err(Error::invalid_field("command", message));
        };
        self.kernel.blocking(move || inside.path().map_err(failure::internal)).await
    }

    /// Stops the container of a project, and returns when nothing of it is left. Returns its final
    /// state; `None` if it was never started.
    ///
    /// # Cancel safety
    /// The container stops in any case.
    pub(crate) async fn stop_container(&self, project: ProjectId) -> Result<Option<ContainerInfo>> {
        let live = match lock(&self.table).find(project) {
            Some(ContainerState::Starting) => return Err(refused(project, Refusal::Starting)),
            Some(ContainerState::Running(live)) => live,
            Some(ContainerState::Ended(ended)) => return Ok(Some(ended.info())),
            None => return Ok(None),
        };
        live.end(project).await;
        Ok(self.info(project))
    }

    /// Ends the container and the commands of a project that is about to be deleted, and lets none
    /// start meanwhile.
    pub(crate) async fn leave_container(
        self: &Arc<Self>,
        project: ProjectId,
    ) -> Result<ProjectDeletion> {
        let marked = lock(&self.table).leave(project);
        marked.map_err(|refusal| refused(project, refusal))?;
        let leaving = ProjectDeletion { containers: Arc::clone(self), project };
        loop {
            let ended = self.command_ended.notified();
            let commands = lock(&self.table).commands_of(project);
            if commands.is_empty() {
                break;
            }
            commands.iter().for_each(CancellationToken::cancel);
            ended.await;
        }
        self.stop_container(project).await?;
        Ok(leaving)
    }

    /// Ends all containers because the daemon stops.
    pub(crate) async fn end_containers(&self) {
        let running = lock(&self.table).close();
        for live in &running {
            live.stop.cancel();
        }
        for live in running {
            live.gone().await;
        }
    }
}

impl RunningContainer {
    async fn end(&self, project: ProjectId) {
        self.stop.cancel();
        self.gone().await;
        tracing::debug!(%project, "container stopped");
    }

    async fn gone(&self) {
        let mut over = self.over.clone();
        if over.wait_for(|over| *over).await.is_err() {
            tracing::error!("a container's supervisor ended unexpectedly");
        }
    }
}

/// Returns a container that is already running, unless it runs another command than requested.
fn running(
    live: &RunningContainer,
    command: Option<&Vec<String>>,
    project: ProjectId,
) -> Result<ContainerInfo> {
    if command.is_none() || command == live.make.command.as_ref() {
        return Ok(live.info());
    }
    let message = format!(
        "the container of {project} already runs another command; stop it first with \
         `container_stop`"
    );
    Err(Error::new(ErrorKind::Conflict, message))
}

pub(super) fn refused(project: ProjectId, refusal: Refusal) -> Error {
    let message = match refusal {
        Refusal::Starting => format!("the container of {project} is starting"),
        Refusal::Leaving => {
            let message = format!("{project} is being deleted");
            return Error::new(ErrorKind::Conflict, message);
        }
        Refusal::Full { max } => format!(
            "{max} are running, which is the limit (sandbox.containers_max); stop one with \
             `container_stop`, or wait until one ends"
        ),
        Refusal::Closed => "the daemon is stopping".to_owned(),
    };
    Error::new(ErrorKind::Busy, message)
}

/// Returns the error for a sandbox that could not be created.
pub(super) fn not_started(error: &ringback_sandbox::StartError) -> Error {
    let message = format!("cannot create the sandbox: {}", failure::chain(error));
    Error::new(ErrorKind::ToolFailed, message).with_certainty(ringback_proto::Certainty::NotStarted)
}
