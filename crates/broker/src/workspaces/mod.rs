//! Files of workspaces: whose they are, how a workspace was at its start, and what changed since.
//!
//! An agent may be writing there at the same time, and may have written anything: everything goes
//! through a [`Tree`], which follows no link.

mod diff;
mod ignored;
mod remove;
mod start;
mod unified;

use ringback_blobs::Tree;
use ringback_blobs::tree::{EntryKind, Skipped, TreeLimits};
use ringback_core::sessions::Leaving;
use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::{Principal, PrincipalId};
use ringback_proto::record::WorkspaceRecord;
use ringback_proto::request::{FileKind, WorkspaceSkipped};
use ringback_proto::{Error, Result};

pub(crate) use self::diff::{Compared, compare};
pub(crate) use self::remove::remove;
pub use self::start::START_LIMITS;
use crate::failure;
use crate::shared::Shared;
use crate::sync::lock;

/// How much of a workspace is looked at, what is ignored aside: an agent may have made far more than
/// it was given.
pub(crate) const NOW_LIMITS: TreeLimits =
    TreeLimits { entries_max: 100_000, bytes_max: 1024 << 20 };

/// What is told of that could not be looked at: enough to see what it is about.
pub(crate) const SKIPPED_MAX: usize = 1000;

/// What could not be looked at, as others are told of it.
pub(crate) fn told(skipped: &[Skipped]) -> Vec<WorkspaceSkipped> {
    let told = skipped.iter().take(SKIPPED_MAX).map(|Skipped { path, why }| WorkspaceSkipped {
        path: path.to_string_lossy().into_owned(),
        reason: why.as_str().to_owned(),
    });
    told.collect()
}

impl Shared {
    /// A workspace whose files this principal may read and write. The key of a session opens its own
    /// workspace alone: agents of one project do not see each other's.
    pub(crate) async fn files_of(
        &self,
        principal: &Principal,
        project: ProjectId,
        workspace: WorkspaceId,
    ) -> Result<WorkspaceRecord> {
        let missing = || Error::not_found("workspace", workspace);
        lock(&self.sessions.table).check_stays(Leaving::Workspace(workspace))?;
        let project = self.visible_project(principal, project).await?;
        let record = self.workspace_for(&project, Some(workspace), false).await?;
        if let Some(session) = self.session_of_key(principal) {
            let place = lock(&self.sessions.table).find(session).map(|(place, _)| place);
            place.filter(|place| place.workspace == workspace).ok_or_else(missing)?;
        }
        record.ok_or_else(missing)
    }

    /// The session whose own key this is, if it is one.
    pub(crate) fn session_of_key(&self, principal: &Principal) -> Option<SessionId> {
        match principal.id {
            PrincipalId::Local => None,
            PrincipalId::Token(id) => self.tokens.find(id).and_then(|token| token.session()),
        }
    }

    /// The files of a workspace. May block.
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
