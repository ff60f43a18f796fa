//! The disk reserve: a file that is deleted when the store needs space to record ends and
//! deletions, and created again when there is enough space.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::record::Record;
use ringback_store::{CommitError, QueueFull, WriteOutcome};
use rustix::fs::FallocateFlags;

use super::Kernel;

/// The file's name in the data directory.
const NAME: &str = "reserve";

/// Disk space kept for recording ends and deletions.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: Utf8PathBuf,
    bytes: u64,
}

impl Reserve {
    pub(crate) fn new(data_dir: &Utf8Path, bytes: u64) -> Self {
        Self { path: data_dir.join(NAME), bytes }
    }

    /// Returns its size.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Releases the space. Returns whether there was any.
    pub(crate) fn give_up(&self) -> bool {
        match fs::remove_file(&self.path) {
            Ok(()) => {
                tracing::warn!(bytes = self.bytes, "releasing the disk reserve: the disk is full");
                true
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(%error, "cannot release the disk reserve");
                }
                false
            }
        }
    }

    /// Takes the space, unless it is taken already. Without it everything works as long as the disk
    /// has space.
    pub(crate) fn take(&self) {
        if self.bytes == 0 {
            self.give_up();
        } else if fs::metadata(&self.path).map(|found| found.len()).ok() != Some(self.bytes)
            && let Err(error) = self.allocate()
        {
            tracing::info!(%error, "running without a disk reserve");
            drop(fs::remove_file(&self.path));
        }
    }

    fn allocate(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file: File =
            options.write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
        // Allocate real blocks: a hole reserves nothing.
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, self.bytes)?;
        Ok(())
    }
}

impl Kernel {
    /// Writes records of ends and deletions, using the reserve if the disk is full.
    pub(crate) async fn commit_with_reserve(
        &self,
        records: Vec<Record>,
    ) -> Result<Result<Vec<WriteOutcome>, CommitError>, QueueFull> {
        let written = self.store.commit_async(records.clone()).await;
        if !matches!(written, Ok(Err(CommitError::DiskFull))) || !self.reserve.give_up() {
            return written;
        }
        self.store.commit_async(records).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: the reserve takes real space, is released once, and is taken again.
    #[test]
    fn a_reserve_is_taken_given_up_and_taken_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap();
        let reserve = Reserve::new(path, 1 << 20);
        assert!(!reserve.give_up());
        for _ in 0..2 {
            reserve.take();
            reserve.take();
            let taken = fs::metadata(path.join(NAME)).unwrap();
            assert!(std::os::unix::fs::MetadataExt::blocks(&taken) * 512 >= 1 << 20);
            assert!(reserve.give_up() && !reserve.give_up());
        }
        reserve.take();
        Reserve::new(path, 0).take();
        assert!(!path.join(NAME).exists(), "a reserve of 0 bytes makes no file");
    }
}
