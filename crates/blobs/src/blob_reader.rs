//! Reading a content store that another process owns.

use std::io::Seek;
use std::sync::Arc;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::BlobHash;

use crate::blobs::open_file;
use crate::error::{FileError, ReadBlobError};
use crate::layout;
use crate::reader::Reader;
use crate::verified::{self, Stamp, Verified};

/// A content store that is only read: the daemon owns it, and may be writing. Nothing below the root
/// is created, changed or removed. Clones share what is known to be intact.
#[derive(Debug, Clone)]
pub struct BlobReader {
    root: Utf8PathBuf,
    verified: Arc<Verified>,
}

impl BlobReader {
    /// Opens the store below `root`.
    ///
    /// # Errors
    /// If the root does not exist or may not be read.
    pub fn open(root: &Utf8Path) -> Result<Self, FileError> {
        root.read_dir_utf8().map_err(FileError::on("read", root))?;
        Ok(Self { root: root.to_owned(), verified: Arc::default() })
    }

    /// Opens a blob. As in the daemon, its whole file is compared with its name first, unless it
    /// was before.
    ///
    /// # Errors
    /// If it does not exist, cannot be read, or is damaged.
    pub fn open_blob(&self, hash: BlobHash) -> Result<Reader, ReadBlobError> {
        open_verified(&layout::blob(&self.root, &hash), hash, &self.verified)
    }
}

/// Opens a blob whose content matches its name. The first time, and after every change of its file,
/// the whole file is hashed.
pub(crate) fn open_verified(
    path: &Utf8Path,
    hash: BlobHash,
    verified: &Verified,
) -> Result<Reader, ReadBlobError> {
    let mut file = open_file(path, hash)?;
    let metadata = file.metadata().map_err(FileError::on("inspect", path))?;
    let stamp = Stamp::of(&metadata);
    if !verified.has(hash, stamp) {
        let _alone = verified.hashing(hash);
        // Another thread may have hashed it in the meantime.
        if !verified.has(hash, stamp) {
            verified::check(&mut file, path, hash)?;
            file.rewind().map_err(FileError::on("read", path))?;
            verified.remember(hash, stamp);
        }
    }
    Ok(Reader::new(file, stamp.size()))
}
