//! Room on the disk that nobody has: a file that is given up when the store needs room for what ends,
//! and made again when there is enough.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::record::Record;
use ringback_store::{Applied, CommitError, Full};
use rustix::fs::FallocateFlags;

use super::Kernel;

/// What it is called in the data directory.
const NAME: &str = "reserve";

/// Room that is kept for ends and deletions.
#[derive(Debug)]
pub(crate) struct Reserve {
    path: Utf8PathBuf,
    bytes: u64,
}

impl Reserve {
    pub(crate) fn new(data_dir: &Utf8Path, bytes: u64) -> Self {
        Self { path: data_dir.join(NAME), bytes }
    }

    /// How much it is.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Gives the room up. Whether there was any.
    pub(crate) fn give_up(&self) -> bool {
        match fs::remove_file(&self.path) {
            Ok(()) => {
                tracing::warn!(bytes = self.bytes, "the disk is full: the reserve is given up");
                true
            }
            Err(error) => {
                if error.kind() != io::ErrorKind::NotFound {
                    tracing::warn!(%error, "the reserve cannot be given up");
                }
                false
            }
        }
    }

    /// Takes the room, unless it is there. Without it everything works as long as the disk has room.
    pub(crate) fn take(&self) {
        if self.bytes == 0 {
            self.give_up();
        } else if fs::metadata(&self.path).map(|found| found.len()).ok() != Some(self.bytes)
            && let Err(error) = self.allocate()
        {
            tracing::info!(%error, "there is no reserve on the disk");
            drop(fs::remove_file(&self.path));
        }
    }

    fn allocate(&self) -> io::Result<()> {
        let mut options = OpenOptions::new();
        let file: File =
            options.write(true).create(true).truncate(true).mode(0o600).open(&self.path)?;
        // Blocks that are really taken: a hole would be no reserve.
        rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, self.bytes)?;
        Ok(())
    }
}

impl Kernel {
    /// Writes records of what ends or is deleted: where the disk is full, the reserve is for them.
    pub(crate) async fn commit_with_reserve(
        &self,
        records: Vec<Record>,
    ) -> Result<Result<Vec<Applied>, CommitError>, Full> {
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

    /// Rule: the reserve is room that is really taken, given up once, and taken again.
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
        assert!(!path.join(NAME).exists(), "who wants none has none");
    }
}
