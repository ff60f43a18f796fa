//! The initial state of a workspace, before its first agent started: an archive outside the
//! workspace, deleted with it.

use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::{fs, io};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_blobs::Tree;
use ringback_blobs::tree::{Entry, SkipReason, Snapshot, TreeError, TreeLimits, TreeListing, pack};
use ringback_proto::ids::WorkspaceId;
use ringback_proto::{Error, ErrorKind, Result};

use super::Workspaces;
use crate::failure;
use crate::kernel::Kernel;

/// Maximum size of a recorded initial state, and of an archive that is unpacked into a workspace.
/// Large repositories have 100,000 files; a list of three times as many takes about 50 MB.
pub const START_LIMITS: TreeLimits = TreeLimits { entries_max: 300_000, bytes_max: 8 << 30 };

/// The directory of a repository.
const GIT: &str = ".git";

impl Workspaces {
    /// Records the initial state of a workspace, unless already recorded. If it is too large, only
    /// that is recorded: its agent can start, but changes cannot be shown. May block.
    pub(crate) fn remember_start(
        &self,
        workspace: WorkspaceId,
    ) -> impl FnOnce() -> Result<()> + use<> {
        let (root, starts) = (self.workspace_path(workspace), Starts::of(&self.kernel, workspace));
        move || starts.remember(&root)
    }

    /// Deletes the initial state of a workspace. May block.
    pub(crate) fn forget_start(
        &self,
        workspace: WorkspaceId,
    ) -> impl FnOnce() -> io::Result<()> + use<> {
        let starts = Starts::of(&self.kernel, workspace);
        move || {
            for path in [&starts.archive, &starts.refusal] {
                match fs::remove_file(path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    Ok(()) | Err(_) => {}
                }
            }
            Ok(())
        }
    }

    /// Returns the initial state of a workspace. May block.
    pub(crate) fn start_of(&self, workspace: WorkspaceId) -> Result<Snapshot> {
        let starts = Starts::of(&self.kernel, workspace);
        if let Ok(why) = fs::read_to_string(&starts.refusal) {
            let message = format!("the initial state of {workspace} was not recorded: {why}");
            return Err(Error::new(ErrorKind::TooLarge, message));
        }
        match Snapshot::open(starts.archive.as_std_path()) {
            Ok(start) => Ok(start),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let message = format!(
                    "no agent has started in {workspace} yet, so there is nothing to compare with"
                );
                Err(Error::new(ErrorKind::NotFound, message))
            }
            Err(error) => Err(failure::internal(error)),
        }
    }
}

/// The files of a recorded state.
struct Starts {
    archive: Utf8PathBuf,
    /// Written instead of the archive, with the reason.
    refusal: Utf8PathBuf,
}

impl Starts {
    fn of(kernel: &Kernel, workspace: WorkspaceId) -> Self {
        let dir = kernel.config.data_dir.join("starts");
        Self {
            archive: dir.join(format!("{workspace}.tar")),
            refusal: dir.join(format!("{workspace}.refused")),
        }
    }

    fn remember(&self, root: &Utf8Path) -> Result<()> {
        if self.archive.exists() || self.refusal.exists() {
            return Ok(());
        }
        let dir = self.archive.parent().unwrap_or(root);
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(failure::internal)?;
        let tree = Tree::open(root.as_std_path()).map_err(failure::tree)?;
        let entries = tree.walk(Path::new(""), START_LIMITS, is_compared).and_then(within_limits);
        if entries.as_ref().is_ok_and(Vec::is_empty) {
            // An empty archive needs no bytes, so it is never half written.
            let mut private = fs::OpenOptions::new();
            private.write(true).create(true).truncate(true).mode(0o600);
            return private.open(&self.archive).map(drop).map_err(failure::internal);
        }
        let temp = tempfile::NamedTempFile::new_in(dir).map_err(failure::internal)?;
        let path = match entries.and_then(|entries| pack(&tree, &entries, temp.as_file())) {
            Ok(_) => &self.archive,
            Err(error @ (TreeError::TooManyEntries { .. } | TreeError::TooManyBytes { .. })) => {
                temp.as_file().set_len(0).map_err(failure::internal)?;
                fs::write(temp.path(), error.to_string()).map_err(failure::internal)?;
                &self.refusal
            }
            Err(error) => return Err(failure::tree(error)),
        };
        temp.persist(path).map_err(failure::internal)?;
        Ok(())
    }
}

/// Returns whether changes of an entry are shown: a repository's own files are not part of the work.
fn is_compared(entry: &Entry) -> bool {
    entry.path.file_name().is_none_or(|name| name != GIT)
}

/// Returns the entries to pack, unless they are too large. Unreadable files are left out.
fn within_limits(TreeListing { entries, skipped }: TreeListing) -> Result<Vec<Entry>, TreeError> {
    if skipped.iter().any(|skipped| skipped.why == SkipReason::TooLarge) {
        return Err(TreeError::TooManyBytes { max: START_LIMITS.bytes_max });
    }
    Ok(entries)
}
