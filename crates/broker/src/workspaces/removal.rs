//! Deletion of workspaces: from the disk first, then from the records.

use std::sync::Arc;

use camino::Utf8Path;
use ringback_blobs::tree::remove_tree;
use ringback_core::sessions::DeletionTarget;
use ringback_proto::ids::WorkspaceId;
use ringback_proto::{Certainty, Error, Result};

use super::Workspaces;
use super::toolchains::forget_toolchains;
use crate::failure;
use crate::sessions::Register;
use crate::sync::lock;

/// A project or workspace that is being deleted: no session starts in it until this is dropped.
#[derive(Debug)]
pub(crate) struct DeletionGuard {
    register: Arc<Register>,
    what: DeletionTarget,
}

impl Drop for DeletionGuard {
    fn drop(&mut self) {
        lock(&self.register.table).stay(self.what);
    }
}

impl Workspaces {
    /// Keeps sessions from starting in a project or workspace that is about to be deleted.
    ///
    /// # Errors
    /// `conflict` when a session is live in it, or it is already being deleted.
    pub(crate) fn close_for_deletion(&self, what: DeletionTarget) -> Result<DeletionGuard> {
        lock(&self.register.table).leave(what)?;
        Ok(DeletionGuard { register: Arc::clone(&self.register), what })
    }

    /// Removes a workspace from the disk: its files, the home of its agents, and its initial state.
    pub(crate) async fn remove_workspace_dirs(&self, workspace: WorkspaceId) -> Result<()> {
        let (files, home) = (self.workspace_path(workspace), self.home_path(workspace));
        let forget = self.forget_start(workspace);
        let toolchains = self.toolchains_path(workspace);
        self.kernel
            .blocking(move || {
                remove(&files)?;
                remove(&home)?;
                forget()
                    .and_then(|()| forget_toolchains(&toolchains))
                    .map_err(|error| failure::internal(error).with_certainty(Certainty::MayHaveRun))
            })
            .await
    }
}

/// Removes a directory that an agent wrote to. After a failure it can be tried again. Blocks.
pub(crate) fn remove(dir: &Utf8Path) -> Result<(), Error> {
    remove_tree(dir.as_std_path())
        .map_err(|error| failure::tree_left(error).with_certainty(Certainty::MayHaveRun))
}
