//! The content store: lookups, reads, and the only place where a blob gets its name.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::BlobHash;
use ringback_sync::lock;

use crate::blob_reader::open_verified;
use crate::error::{FileError, OpenBlobsError, ReadBlobError, WriteBlobError};
use crate::layout::{self, Layout, Temp};
use crate::reader::Reader;
use crate::verified::{self, Stamp, Verified};
use crate::writer::{StoredContent, Writer};

/// The type of a blob without a readable sidecar.
const MIME_UNKNOWN: &str = "application/octet-stream";

/// A content store in a directory. Clones share it.
#[derive(Debug, Clone)]
pub struct Blobs(Arc<Inner>);

/// Facts about a blob that need no read of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Its length in bytes.
    pub size: u64,
    /// The type it was first stored with.
    pub mime_type: String,
}

/// The size of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The number of blobs.
    pub blobs: u64,
    /// The number of bytes of content.
    pub bytes: u64,
}

#[derive(Debug)]
struct Inner {
    layout: Layout,
    blobs: AtomicU64,
    bytes: AtomicU64,
    verified: Verified,
    /// Held while a blob gets its name, so that exactly one of two writers of the same content is
    /// first.
    naming: Mutex<()>,
}

impl Blobs {
    /// Opens the store below `root`, creating it if needed; counts it once, and removes what an
    /// earlier process left incomplete.
    pub fn open(root: &Utf8Path) -> Result<Self, OpenBlobsError> {
        let layout = Layout::create(root)?;
        let mut stats = Stats::default();
        for dir in fan_out_dirs(layout.root(), None)? {
            for hash in hashes_in(&dir)? {
                let path = layout.blob(&hash);
                let metadata = fs::metadata(&path).map_err(FileError::on("inspect", &path))?;
                stats.blobs += 1;
                stats.bytes += metadata.len();
            }
        }
        Ok(Self(Arc::new(Inner {
            layout,
            blobs: AtomicU64::new(stats.blobs),
            bytes: AtomicU64::new(stats.bytes),
            verified: Verified::default(),
            naming: Mutex::new(()),
        })))
    }

    /// Starts to store content.
    pub fn writer(&self) -> Writer {
        Writer::new(self.clone())
    }

    /// Stores content that is in memory.
    pub fn put(&self, data: &[u8], mime_type: &str) -> Result<StoredContent, WriteBlobError> {
        let mut writer = self.writer();
        writer.write(data)?;
        writer.finish(mime_type)
    }

    /// Stores the content of an open local file, from its current position to its end. `path` is
    /// for messages; see [`Roots`](crate::Roots) for files that a caller names.
    pub fn ingest(
        &self,
        file: &mut File,
        path: &Utf8Path,
        mime_type: &str,
    ) -> Result<StoredContent, WriteBlobError> {
        let mut writer = self.writer();
        writer.read_from(file, path)?;
        writer.finish(mime_type)
    }

    /// Stores the content of a local file that the daemon itself chose.
    pub fn ingest_file(
        &self,
        path: &Utf8Path,
        mime_type: &str,
    ) -> Result<StoredContent, WriteBlobError> {
        let mut file = File::open(path).map_err(FileError::on("open", path))?;
        self.ingest(&mut file, path, mime_type)
    }

    /// Returns facts about a blob, or `None` if it does not exist.
    pub fn inspect(&self, hash: BlobHash) -> Result<Option<Info>, ReadBlobError> {
        let size = match self.open_blob(hash) {
            Ok(reader) => reader.size(),
            Err(ReadBlobError::NotFound { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        let mime_type = self.layout().read_mime(&hash)?.unwrap_or_else(|| MIME_UNKNOWN.to_owned());
        Ok(Some(Info { size, mime_type }))
    }

    /// Opens a blob for reading. The first time, and after every change of its file, the whole file
    /// is hashed, so that a reader always gets the requested content.
    pub fn open_blob(&self, hash: BlobHash) -> Result<Reader, ReadBlobError> {
        open_verified(&self.layout().blob(&hash), hash, &self.0.verified)
    }

    /// Reads up to `length` bytes from `offset`; fewer at the end of the blob.
    pub fn read_range(
        &self,
        hash: BlobHash,
        offset: u64,
        length: u64,
    ) -> Result<Bytes, ReadBlobError> {
        let reader = self.open_blob(hash)?;
        let size = reader.size();
        let Some(available) = size.checked_sub(offset) else {
            return Err(ReadBlobError::OutOfRange { offset, size });
        };
        let length = usize::try_from(length.min(available)).unwrap_or(usize::MAX);
        let mut data = vec![0; length];
        let path = self.layout().blob(&hash);
        reader.file().read_exact_at(&mut data, offset).map_err(FileError::on("read", &path))?;
        Ok(data.into())
    }

    /// Returns the first characters of a blob that is text, or `None` for other content.
    pub fn preview(
        &self,
        hash: BlobHash,
        bytes_max: usize,
    ) -> Result<Option<String>, ReadBlobError> {
        let head = self.read_range(hash, 0, bytes_max as u64)?;
        let text = match std::str::from_utf8(&head) {
            Ok(text) => text,
            // The cut may be inside a character; anything else is not text.
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return Ok(None),
        };
        let is_text = |c: char| !c.is_control() || matches!(c, '\n' | '\r' | '\t');
        Ok(text.chars().all(is_text).then(|| text.to_owned()))
    }

    /// Reads a whole blob, even if it was verified before, and checks that its content still
    /// matches its name.
    pub fn verify(&self, hash: BlobHash) -> Result<(), ReadBlobError> {
        let path = self.layout().blob(&hash);
        verified::check(&mut open_file(&path, hash)?, &path, hash)
    }

    /// Returns the size of the store, without looking at the disk.
    #[must_use]
    pub fn stats(&self) -> Stats {
        Stats {
            blobs: self.0.blobs.load(Ordering::Relaxed),
            bytes: self.0.bytes.load(Ordering::Relaxed),
        }
    }

    /// Returns at most `limit` names that follow `after`, in order.
    pub fn list(
        &self,
        after: Option<BlobHash>,
        limit: usize,
    ) -> Result<Vec<BlobHash>, OpenBlobsError> {
        let mut hashes = Vec::new();
        for dir in fan_out_dirs(self.layout().root(), after)? {
            let mut here = hashes_in(&dir)?;
            here.retain(|hash| after.is_none_or(|after| *hash > after));
            here.sort_unstable();
            hashes.extend(here);
            if hashes.len() >= limit {
                hashes.truncate(limit);
                break;
            }
        }
        Ok(hashes)
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Returns the blob, if it exists and is intact; it is then synced, because the writer that
    /// named it may still be about to. A blob that is damaged or unreadable counts as missing: the
    /// content stored now replaces it.
    pub(crate) fn existing(
        &self,
        hash: BlobHash,
        mime_type: &str,
    ) -> Result<Option<StoredContent>, WriteBlobError> {
        let size = match self.open_blob(hash) {
            Ok(reader) => reader.size(),
            Err(ReadBlobError::NotFound { .. }) => return Ok(None),
            Err(error) => {
                tracing::warn!(%hash, %error, "replacing a blob that does not match its name");
                return Ok(None);
            }
        };
        let dir = self.layout().durable_dir(&hash)?;
        layout::sync_dir(&dir)?;
        Ok(Some(StoredContent { hash, size, mime_type: mime_type.to_owned(), new: false }))
    }

    /// Gives complete content its name: content and sidecar are synced first, the sidecar is in
    /// place before the blob, and the directory is synced before the blob is reported.
    pub(crate) fn publish(
        &self,
        temp: Temp,
        hash: BlobHash,
        size: u64,
        mime_type: &str,
    ) -> Result<StoredContent, WriteBlobError> {
        if let Some(stored) = self.existing(hash, mime_type)? {
            return Ok(stored);
        }
        temp.sync()?;
        let meta = self.layout().temp_meta(size, mime_type)?;
        let dir = self.layout().durable_dir(&hash)?;
        let naming = lock(&self.0.naming);
        if let Some(stored) = self.existing(hash, mime_type)? {
            return Ok(stored);
        }
        let path = self.layout().blob(&hash);
        // The counted size of a damaged blob: its size while it was intact, or what was found at
        // the start.
        let damaged = fs::symlink_metadata(&path).ok().map(|metadata| metadata.len());
        let damaged = damaged.map(|size| self.0.verified.size(hash).unwrap_or(size));
        meta.move_to(&self.layout().meta(&hash))?;
        temp.move_to(&path)?;
        self.count(damaged, size);
        // It was hashed on its way here, and need not be hashed again.
        if let Ok(metadata) = fs::symlink_metadata(&path) {
            self.0.verified.remember(hash, Stamp::of(&metadata));
        }
        drop(naming);
        layout::sync_dir(&dir)?;
        let new = damaged.is_none();
        Ok(StoredContent { hash, size, mime_type: mime_type.to_owned(), new })
    }

    /// Counts a blob that got its name, possibly replacing a damaged one.
    fn count(&self, damaged: Option<u64>, size: u64) {
        self.0.bytes.fetch_add(size, Ordering::Relaxed);
        match damaged {
            None => self.0.blobs.fetch_add(1, Ordering::Relaxed),
            Some(size) => self.0.bytes.fetch_sub(size, Ordering::Relaxed),
        };
    }
}

pub(crate) fn open_file(path: &Utf8Path, hash: BlobHash) -> Result<File, ReadBlobError> {
    File::open(path).map_err(|error| {
        if error.kind() == io::ErrorKind::NotFound {
            ReadBlobError::NotFound { hash }
        } else {
            FileError::on("open", path)(error).into()
        }
    })
}

/// Returns the directories that hold blobs, sorted by name, starting with that of `after`.
pub(crate) fn fan_out_dirs(
    root: &Utf8Path,
    after: Option<BlobHash>,
) -> Result<Vec<Utf8PathBuf>, OpenBlobsError> {
    let after = after.map(|hash| hash.to_string()).unwrap_or_default();
    let first = after.get(..4).unwrap_or_default();
    let mut dirs = Vec::new();
    for outer in names_in(root)?.into_iter().filter(|name| is_fan_out(name)) {
        let path = root.join(&outer);
        for inner in names_in(&path)?.into_iter().filter(|name| is_fan_out(name)) {
            if format!("{outer}{inner}").as_str() >= first {
                dirs.push(path.join(inner));
            }
        }
    }
    dirs.sort_unstable();
    Ok(dirs)
}

fn is_fan_out(name: &str) -> bool {
    name.len() == 2 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn hashes_in(dir: &Utf8Path) -> Result<Vec<BlobHash>, OpenBlobsError> {
    Ok(names_in(dir)?.iter().filter_map(|name| name.parse().ok()).collect())
}

fn names_in(dir: &Utf8Path) -> Result<Vec<String>, OpenBlobsError> {
    let mut names = Vec::new();
    for entry in dir.read_dir_utf8().map_err(FileError::on("read", dir))? {
        match entry {
            Ok(entry) => names.push(entry.file_name().to_owned()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(OpenBlobsError::NotUtf8 { path: dir.to_owned() });
            }
            Err(error) => return Err(FileError::on("read", dir)(error).into()),
        }
    }
    Ok(names)
}
