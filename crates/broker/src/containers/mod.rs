//! Containers: an optional sandbox per project, next to its sessions, with its own persistent
//! directory; commands in them; and the images of Docker sandboxes.
//!
//! A supervisor task (`keeper`) owns each running container, keeps the end of its output, and stops
//! it. `core::containers` decides who may start what.
//!
//! * `start`: starting and stopping containers; `ring`: the end of their output.
//! * `command`: commands in a container, or in their own sandbox.
//! * `image`, `name`: images, their names and builds.

mod command;
mod image;
mod keeper;
mod lifecycle;
mod name;
mod ring;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use ringback_core::containers::{ContainerState, ContainerTable};
use ringback_proto::ids::{ProjectId, WorkspaceId};
use ringback_proto::request::{ContainerInfo, ContainerStatus};
use ringback_sandbox::BoxHandle;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use self::command::CommandSpec;
pub use self::name::{ImageName, ImageNameError, ImageSource};
use self::ring::Ring;
use crate::confinement::Sandboxes;
use crate::disk::DiskGuard;
use crate::kernel::Kernel;
use crate::rooms::SharedRooms;
use crate::sync::lock;
use crate::workspaces::Workspaces;

/// Enough for a person's projects; each may take as much memory as an agent.
const CONTAINERS_MAX: usize = 8;

/// Settings for containers.
#[derive(Debug, Clone)]
pub struct ContainerSettings {
    /// Maximum running containers and commands in their own sandboxes.
    pub containers_max: usize,
    /// Images that are built here, by name.
    pub images: BTreeMap<ImageName, ImageSource>,
}

impl Default for ContainerSettings {
    fn default() -> Self {
        Self { containers_max: CONTAINERS_MAX, images: BTreeMap::new() }
    }
}

/// The containers of projects, and commands in sandboxes.
#[derive(Debug)]
pub(crate) struct Containers {
    kernel: Arc<Kernel>,
    workspaces: Arc<Workspaces>,
    sandboxes: Arc<Sandboxes>,
    images: Arc<Images>,
    disk: Arc<DiskGuard>,
    table: Mutex<ContainerTable<Arc<RunningContainer>, Arc<EndedContainer>, CancellationToken>>,
    /// Notified when a command ends.
    command_ended: Notify,
}

/// The images of projects.
#[derive(Debug)]
pub(crate) struct Images {
    workspaces: Arc<Workspaces>,
    kernel: Arc<Kernel>,
    sandboxes: Arc<Sandboxes>,
    /// Images that are being built.
    builds: Mutex<HashSet<ImageName>>,
}

/// How a container was created.
#[derive(Debug, Clone)]
struct ContainerOrigin {
    backend: &'static str,
    image: Option<String>,
    /// Its command; `None` for the default program, which only waits.
    command: Option<Vec<String>>,
}

/// A running container.
#[derive(Debug)]
struct RunningContainer {
    make: ContainerOrigin,
    since: u64,
    /// Makes its supervisor stop it.
    stop: CancellationToken,
    /// True once it is gone.
    over: watch::Receiver<bool>,
    ring: Arc<Mutex<Ring>>,
    /// Runs commands in it.
    handle: BoxHandle,
}

/// A container that has ended.
#[derive(Debug)]
struct EndedContainer {
    make: ContainerOrigin,
    since: u64,
    exit_code: Option<i32>,
    ring: Arc<Mutex<Ring>>,
}

impl Containers {
    pub(crate) fn new(shared_rooms: &SharedRooms) -> Self {
        let containers_max = shared_rooms.kernel.config.containers.containers_max;
        Self {
            kernel: shared_rooms.kernel.clone(),
            workspaces: shared_rooms.workspaces.clone(),
            sandboxes: shared_rooms.sandboxes.clone(),
            images: shared_rooms.images.clone(),
            disk: shared_rooms.disk.clone(),
            table: Mutex::new(ContainerTable::new(containers_max)),
            command_ended: Notify::new(),
        }
    }

    /// Returns the number of containers and commands.
    pub(crate) fn n_live(&self) -> usize {
        lock(&self.table).n_live()
    }

    /// Returns the state of a project's container, if it had one.
    pub(crate) fn info(&self, project: ProjectId) -> Option<ContainerInfo> {
        match lock(&self.table).find(project)? {
            ContainerState::Starting => None,
            ContainerState::Running(live) => Some(live.info()),
            ContainerState::Ended(ended) => Some(ended.info()),
        }
    }

    /// Returns the last lines of output of a project's container, if it had one, and whether there
    /// were more.
    pub(crate) fn logs(&self, project: ProjectId, lines_max: usize) -> Option<(String, bool)> {
        let ring = match lock(&self.table).find(project)? {
            ContainerState::Starting => return None,
            ContainerState::Running(live) => Arc::clone(&live.ring),
            ContainerState::Ended(ended) => Arc::clone(&ended.ring),
        };
        let lines = lock(&ring).last_lines(lines_max);
        Some(lines)
    }

    /// Returns whether a command runs in this workspace.
    pub(crate) fn is_used(&self, workspace: WorkspaceId) -> bool {
        lock(&self.table).is_used(workspace)
    }
}

impl RunningContainer {
    fn info(&self) -> ContainerInfo {
        let (status, since) = (ContainerStatus::Running, self.since);
        ContainerInfo { exit_code: None, ..self.make.info(status, since) }
    }
}

impl EndedContainer {
    fn info(&self) -> ContainerInfo {
        let (status, since) = (ContainerStatus::Stopped, self.since);
        ContainerInfo { exit_code: self.exit_code, ..self.make.info(status, since) }
    }
}

impl ContainerOrigin {
    fn info(&self, status: ContainerStatus, since: u64) -> ContainerInfo {
        let (backend, image) = (self.backend.to_owned(), self.image.clone());
        ContainerInfo { status, backend, image, since, exit_code: None }
    }
}
