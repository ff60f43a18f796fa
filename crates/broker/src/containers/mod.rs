//! Containers: a sandbox for each project that wants one, beside its sessions, with a directory of its own
//! that is kept; commands in them; and the images that Docker makes sandboxes of.
//!
//! A container that runs has a *keeper*, a task that owns it, keeps the last of what it wrote, and ends it.
//! Who may start what is decided by `core::containers`.

mod command;
mod image;
mod keeper;
mod name;
mod ring;
mod start;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex};

use ringback_core::containers::{ContainerTable, Found};
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
use crate::rooms::Ground;
use crate::sync::lock;
use crate::workspaces::Workspaces;

/// Enough for a person's projects; each may take as much memory as an agent.
const CONTAINERS_MAX: usize = 8;

/// What containers are told.
#[derive(Debug, Clone)]
pub struct ContainerSettings {
    /// Containers that run at the same time, and commands in boxes of their own besides.
    pub containers_max: usize,
    /// The images that are built here, by name.
    pub images: BTreeMap<ImageName, ImageSource>,
}

impl Default for ContainerSettings {
    fn default() -> Self {
        Self { containers_max: CONTAINERS_MAX, images: BTreeMap::new() }
    }
}

/// The containers of projects, and the commands that run in sandboxes.
#[derive(Debug)]
pub(crate) struct Containers {
    kernel: Arc<Kernel>,
    workspaces: Arc<Workspaces>,
    sandboxes: Arc<Sandboxes>,
    images: Arc<Images>,
    disk: Arc<DiskGuard>,
    table: Mutex<ContainerTable<Arc<Live>, Arc<Ended>, CancellationToken>>,
    /// A command has ended.
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

/// What a container is made of.
#[derive(Debug, Clone)]
struct Make {
    backend: &'static str,
    image: Option<String>,
    /// What was to run in it; what waits if nothing was said.
    command: Option<Vec<String>>,
}

/// A container that runs.
#[derive(Debug)]
struct Live {
    make: Make,
    since: u64,
    /// Tells its keeper to end it.
    stop: CancellationToken,
    /// True once it is gone.
    over: watch::Receiver<bool>,
    ring: Arc<Mutex<Ring>>,
    /// To run commands in it.
    handle: BoxHandle,
}

/// A container that has ended.
#[derive(Debug)]
struct Ended {
    make: Make,
    since: u64,
    exit_code: Option<i32>,
    ring: Arc<Mutex<Ring>>,
}

impl Containers {
    pub(crate) fn new(ground: &Ground) -> Self {
        let containers_max = ground.kernel.config.containers.containers_max;
        Self {
            kernel: ground.kernel.clone(),
            workspaces: ground.workspaces.clone(),
            sandboxes: ground.sandboxes.clone(),
            images: ground.images.clone(),
            disk: ground.disk.clone(),
            table: Mutex::new(ContainerTable::new(containers_max)),
            command_ended: Notify::new(),
        }
    }

    /// How the container of a project is, if it had one.
    pub(crate) fn info(&self, project: ProjectId) -> Option<ContainerInfo> {
        match lock(&self.table).find(project)? {
            Found::Starting => None,
            Found::Running(live) => Some(live.info()),
            Found::Ended(ended) => Some(ended.info()),
        }
    }

    /// The last lines that the program of a project's container wrote, if it had one, and whether there
    /// were more.
    pub(crate) fn logs(&self, project: ProjectId, lines_max: usize) -> Option<(String, bool)> {
        let ring = match lock(&self.table).find(project)? {
            Found::Starting => return None,
            Found::Running(live) => Arc::clone(&live.ring),
            Found::Ended(ended) => Arc::clone(&ended.ring),
        };
        let lines = lock(&ring).last_lines(lines_max);
        Some(lines)
    }

    /// Whether a command runs in this workspace.
    pub(crate) fn is_used(&self, workspace: WorkspaceId) -> bool {
        lock(&self.table).is_used(workspace)
    }
}

impl Live {
    fn info(&self) -> ContainerInfo {
        let (status, since) = (ContainerStatus::Running, self.since);
        ContainerInfo { exit_code: None, ..self.make.info(status, since) }
    }
}

impl Ended {
    fn info(&self) -> ContainerInfo {
        let (status, since) = (ContainerStatus::Stopped, self.since);
        ContainerInfo { exit_code: self.exit_code, ..self.make.info(status, since) }
    }
}

impl Make {
    fn info(&self, status: ContainerStatus, since: u64) -> ContainerInfo {
        let (backend, image) = (self.backend.to_owned(), self.image.clone());
        ContainerInfo { status, backend, image, since, exit_code: None }
    }
}
