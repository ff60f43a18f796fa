//! Workspaces and their files: who may see them, and their initial state.
//!
//! * `start`: the recorded initial state, which `blobs` compares with the current files.
//! * `remove`: deletion.
//! * `toolchains`: the toolchains of its user, and the caches of its project.
//!
//! An agent may be writing at the same time, and may have written anything: all access goes through
//! a [`Tree`], which follows no links.

mod initial_state;
mod removal;
mod toolchains;

use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_blobs::Tree;
use ringback_blobs::tree::{EntryKind, Skipped, TreeLimits};
use ringback_core::policy;
use ringback_core::sessions::DeletionTarget;
use ringback_proto::ids::{ProjectId, WorkspaceId};
use ringback_proto::principal::Principal;
use ringback_proto::record::{ProjectRecord, WorkspaceRecord};
use ringback_proto::request::{FileKind, WorkspaceSkipped};
use ringback_proto::{Error, Result};

pub use self::initial_state::START_LIMITS;
pub(crate) use self::removal::remove;
pub(crate) use self::toolchains::Tooling;
use crate::failure;
use crate::kernel::Kernel;
use crate::sessions::Register;
use crate::sync::lock;

/// How much of a workspace is read, without ignored files: an agent may have created far more than
/// it was given.
pub(crate) const NOW_LIMITS: TreeLimits = TreeLimits { entries_max: 400_000, bytes_max: 10 << 30 };

/// Skipped files that are reported: enough to see the problem.
const SKIPPED_MAX: usize = 1000;

/// Converts skipped files for an answer.
pub(crate) fn told(skipped: &[Skipped]) -> Vec<WorkspaceSkipped> {
    let told = skipped.iter().take(SKIPPED_MAX).map(|Skipped { path, why }| WorkspaceSkipped {
        path: path.to_string_lossy().into_owned(),
        reason: why.as_str().to_owned(),
    });
    told.collect()
}

/// Projects and workspaces: visibility, paths and content.
#[derive(Debug)]
pub(crate) struct Workspaces {
    pub(crate) kernel: Arc<Kernel>,
    register: Arc<Register>,
}

impl Workspaces {
    pub(crate) const fn new(kernel: Arc<Kernel>, register: Arc<Register>) -> Self {
        Self { kernel, register }
    }

    /// Returns the directory of a workspace.
    pub(crate) fn workspace_path(&self, workspace: WorkspaceId) -> Utf8PathBuf {
        self.kernel.config.data_dir.join("workspaces").join(workspace.to_string())
    }

    /// Returns the home of the agents in a workspace, for their own files such as conversations. It
    /// is outside the workspace, so that it is not part of the agents' work.
    pub(crate) fn home_path(&self, workspace: WorkspaceId) -> Utf8PathBuf {
        self.kernel.config.data_dir.join("homes").join(workspace.to_string())
    }

    /// Returns a project, if this principal may see it.
    pub(crate) async fn visible_project(
        &self,
        principal: &Principal,
        id: ProjectId,
    ) -> Result<ProjectRecord> {
        let sight = policy::sight_of_projects(principal);
        self.kernel
            .read(move |store| store.project(id))
            .await?
            .filter(|project| sight.includes(project.owner, Some(project.id)))
            .ok_or_else(|| Error::not_found("project", id))
    }

    /// Returns the workspace for a session: the named one, the last used one, or none yet.
    pub(crate) async fn workspace_for(
        &self,
        principal: &Principal,
        project: &ProjectRecord,
        named: Option<WorkspaceId>,
        create: bool,
    ) -> Result<Option<WorkspaceRecord>> {
        if let Some(named) = named {
            return self.workspace_of(principal, project, named).await.map(Some);
        }
        if create {
            return Ok(None);
        }
        let all = self.workspaces_of(principal, project.id).await?;
        let used =
            |workspace: &WorkspaceRecord| workspace.last_session_at.unwrap_or(workspace.created_at);
        Ok(all.into_iter().max_by_key(used))
    }

    /// Returns a workspace by id, for a principal that may see its project. Every lookup by id uses
    /// this one rule: a session key does not see the workspaces of other sessions.
    pub(crate) async fn workspace_of(
        &self,
        principal: &Principal,
        project: &ProjectRecord,
        id: WorkspaceId,
    ) -> Result<WorkspaceRecord> {
        let (tree, project) = (policy::tree(principal), project.id);
        let found = self.kernel.read(move |store| {
            let is_open = match tree {
                Some(session) => store.workspaces_of_tree(session)?.contains(&id),
                None => true,
            };
            if is_open { store.workspace(id) } else { Ok(None) }
        });
        let found = found.await?.filter(|workspace| workspace.project == project);
        found.ok_or_else(|| Error::not_found("workspace", id))
    }

    /// Returns the workspaces of a project that a principal may see, newest first.
    pub(crate) async fn workspaces_of(
        &self,
        principal: &Principal,
        project: ProjectId,
    ) -> Result<Vec<WorkspaceRecord>> {
        let tree = policy::tree(principal);
        let found = self.kernel.read(move |store| {
            let mut all = store.workspaces(project)?;
            if let Some(session) = tree {
                let open = store.workspaces_of_tree(session)?;
                all.retain(|workspace| open.contains(&workspace.id));
            }
            Ok(all)
        });
        found.await
    }

    /// Returns a workspace whose files this principal may read and write.
    pub(crate) async fn files_of(
        &self,
        principal: &Principal,
        project: ProjectId,
        workspace: WorkspaceId,
    ) -> Result<WorkspaceRecord> {
        lock(&self.register.table).check_stays(DeletionTarget::Workspace(workspace))?;
        let project = self.visible_project(principal, project).await?;
        self.workspace_of(principal, &project, workspace).await
    }

    /// Opens the files of a workspace. May block.
    pub(crate) fn tree(&self, workspace: WorkspaceId) -> Result<Tree> {
        Tree::open(self.workspace_path(workspace).as_std_path()).map_err(failure::tree)
    }
}

pub(crate) const fn kind(kind: EntryKind) -> FileKind {
    match kind {
        EntryKind::File => FileKind::File,
        EntryKind::Directory => FileKind::Directory,
        EntryKind::Symlink => FileKind::Symlink,
        EntryKind::Other => FileKind::Other,
    }
}
