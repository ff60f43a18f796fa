//! The blobs whose content was verified. A file is hashed when it is first opened, and again if it
//! has changed since; in between, its metadata stands for its content.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, MutexGuard};

use camino::Utf8Path;
use ringback_proto::ids::BlobHash;
use ringback_sync::lock;

use crate::error::{FileError, ReadBlobError};

/// Blobs remembered in each of two generations: about 2 MiB in total. A forgotten blob is only
/// hashed once more.
const REMEMBERED_MAX: usize = 8 << 10;

/// Locks for hashing. Readers of the same blob share a lock, so that a large blob is hashed once
/// even if many request it.
const LOCKS: usize = 16;

/// Enough for wide hashing with few system calls.
const BUFFER_BYTES: usize = 256 << 10;

/// The state of a file: it differs after any write or replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    pub(crate) const fn size(&self) -> u64 {
        self.size
    }
}

/// The files that were found intact.
#[derive(Debug, Default)]
pub(crate) struct Verified {
    remembered: Mutex<Generations>,
    hashing: [Mutex<()>; LOCKS],
}

/// The newer generation fills up; then it becomes the older one, which is dropped.
#[derive(Debug, Default)]
struct Generations {
    newer: HashMap<BlobHash, Stamp>,
    older: HashMap<BlobHash, Stamp>,
}

impl Verified {
    pub(crate) fn has(&self, hash: BlobHash, stamp: Stamp) -> bool {
        let mut remembered = self.remembered();
        if remembered.newer.get(&hash) == Some(&stamp) {
            return true;
        }
        let is_older = remembered.older.get(&hash) == Some(&stamp);
        if is_older {
            remembered.insert(hash, stamp);
        }
        is_older
    }

    pub(crate) fn remember(&self, hash: BlobHash, stamp: Stamp) {
        self.remembered().insert(hash, stamp);
    }

    /// Returns the size of a blob's file when it was last found intact.
    pub(crate) fn size(&self, hash: BlobHash) -> Option<u64> {
        let remembered = self.remembered();
        let stamp = remembered.newer.get(&hash).or_else(|| remembered.older.get(&hash));
        stamp.map(Stamp::size)
    }

    /// Returns the lock held while a blob is hashed.
    pub(crate) fn hashing(&self, hash: BlobHash) -> MutexGuard<'_, ()> {
        let which = usize::from(hash.as_bytes()[0]) % LOCKS;
        lock(&self.hashing[which])
    }

    fn remembered(&self) -> MutexGuard<'_, Generations> {
        lock(&self.remembered)
    }
}

impl Generations {
    fn insert(&mut self, hash: BlobHash, stamp: Stamp) {
        if self.newer.len() >= REMEMBERED_MAX {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(hash, stamp);
    }
}

/// Reads a file to its end and compares its content with its name.
pub(crate) fn check(file: &mut File, path: &Utf8Path, hash: BlobHash) -> Result<(), ReadBlobError> {
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n_read) => {
                hasher.update(&buffer[..n_read]);
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FileError::on("read", path)(error).into()),
        }
    }
    let found = BlobHash::from_bytes(*hasher.finalize().as_bytes());
    if found == hash { Ok(()) } else { Err(ReadBlobError::Damaged { hash, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_bounded_and_what_is_used_stays() {
        let verified = Verified::default();
        let stamp = Stamp { device: 1, inode: 1, size: 1, modified: (0, 0), changed: (0, 0) };
        let name = |n: u32| {
            let mut bytes = [0; 32];
            bytes[..4].copy_from_slice(&n.to_le_bytes());
            BlobHash::from_bytes(bytes)
        };
        let used = name(u32::MAX);
        verified.remember(used, stamp);
        for n in 0..5 * u32::try_from(REMEMBERED_MAX).unwrap() {
            verified.remember(name(n), stamp);
            assert!(verified.has(used, stamp));
        }
        let remembered = verified.remembered();
        assert!(remembered.newer.len() <= REMEMBERED_MAX);
        assert!(remembered.older.len() <= REMEMBERED_MAX);
        drop(remembered);
        assert!(!verified.has(name(0), stamp));
        assert!(!verified.has(used, Stamp { changed: (0, 1), ..stamp }));
    }
}
