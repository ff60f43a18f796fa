//! The layout on disk: `ab/cd/<hash>` with its sidecar `<hash>.meta`, and `tmp/` for incomplete
//! files. Directories are durable before anything in them is acknowledged.

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::num::NonZeroU64;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::BlobHash;
use ringback_sync::lock;
use rustix::fs::Advice;

use crate::error::FileError;

/// Content is private to the daemon's user.
const DIR_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// The start of a sidecar's text, to recognise later formats.
const META_FORM: &str = "1";

/// Larger writes would make the kernel look for large free areas of memory, which on a freshly
/// started machine have never been touched and are slow.
const WRITE_BYTES: usize = 64 << 10;

/// How much is buffered in memory before the disk starts to write it.
const HAND_OVER_BYTES: u64 = 8 << 20;

/// The directories below one root.
#[derive(Debug)]
pub(crate) struct Layout {
    root: Utf8PathBuf,
    temp_next: AtomicU64,
    /// Fan-out directories whose entries in their parents this process has synced. Those of an
    /// earlier process may still be only in the page cache, so this starts empty.
    durable: Mutex<HashSet<[u8; 2]>>,
}

/// A file that is removed unless it is moved into place.
#[derive(Debug)]
pub(crate) struct Temp {
    path: Utf8PathBuf,
    file: File,
    size: u64,
    /// How much of it the system has been asked to write to the disk.
    handed_over: u64,
    moved: bool,
}

impl Layout {
    /// Creates the root and an empty `tmp/`: files in there belong to a process that is gone.
    pub(crate) fn create(root: &Utf8Path) -> Result<Self, FileError> {
        let tmp = root.join("tmp");
        make_dir(&tmp).map_err(FileError::on("create", &tmp))?;
        // An earlier build left it open to others; a private root protects everything below it.
        let private = Permissions::from_mode(DIR_MODE);
        fs::set_permissions(root, private).map_err(FileError::on("protect", root))?;
        for entry in fs::read_dir(&tmp).map_err(FileError::on("read", &tmp))? {
            let entry = entry.map_err(FileError::on("read", &tmp))?;
            fs::remove_file(entry.path()).map_err(FileError::on("clean up in", &tmp))?;
        }
        if let Some(parent) = root.parent() {
            sync_dir(parent)?;
        }
        sync_dir(root)?;
        Ok(Self {
            root: root.to_owned(),
            temp_next: AtomicU64::new(0),
            durable: Mutex::new(HashSet::new()),
        })
    }

    pub(crate) fn root(&self) -> &Utf8Path {
        &self.root
    }

    pub(crate) fn blob(&self, hash: &BlobHash) -> Utf8PathBuf {
        blob(&self.root, hash)
    }

    pub(crate) fn meta(&self, hash: &BlobHash) -> Utf8PathBuf {
        self.blob(hash).with_extension("meta")
    }

    pub(crate) fn temp(&self) -> Result<Temp, FileError> {
        let number = self.temp_next.fetch_add(1, Ordering::Relaxed);
        let path = self.root.join("tmp").join(number.to_string());
        let opened = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(&path);
        let file = opened.map_err(FileError::on("create", &path))?;
        Ok(Temp { path, file, size: 0, handed_over: 0, moved: false })
    }

    /// Creates the blob's directory so that it survives a power failure.
    pub(crate) fn durable_dir(&self, hash: &BlobHash) -> Result<Utf8PathBuf, FileError> {
        let blob = self.blob(hash);
        let inner = blob.parent().unwrap_or(&self.root).to_owned();
        let outer = inner.parent().unwrap_or(&self.root).to_owned();
        let [first, second, ..] = *hash.as_bytes();
        // Held during the syncs: a second writer must not continue while the first is still
        // creating it.
        let mut durable = lock(&self.durable);
        if !durable.contains(&[first, second]) {
            make_dir(&inner).map_err(FileError::on("create", &inner))?;
            sync_dir(&outer)?;
            sync_dir(&self.root)?;
            durable.insert([first, second]);
        }
        Ok(inner)
    }

    /// Writes a sidecar under a temporary name.
    pub(crate) fn temp_meta(&self, size: u64, mime: &str) -> Result<Temp, FileError> {
        let mut temp = self.temp()?;
        let text = format!("{META_FORM} {size} {mime}\n");
        temp.write(text.as_bytes())?;
        temp.sync()?;
        Ok(temp)
    }

    /// Returns the MIME type in a sidecar; `None` if the sidecar is missing or malformed.
    pub(crate) fn read_mime(&self, hash: &BlobHash) -> Result<Option<String>, FileError> {
        let path = self.meta(hash);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(FileError::on("read", &path)(error)),
        };
        let mut words = text.trim_end_matches('\n').splitn(3, ' ');
        Ok(match (words.next(), words.next(), words.next()) {
            (Some(META_FORM), Some(_size), Some(mime)) => Some(mime.to_owned()),
            _ => None,
        })
    }
}

fn make_dir(path: &Utf8Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR_MODE).create(path)
}

/// Returns the path of a blob below a root.
pub(crate) fn blob(root: &Utf8Path, hash: &BlobHash) -> Utf8PathBuf {
    let name = hash.to_string();
    let mut path = root.join(&name[..2]);
    path.push(&name[2..4]);
    path.push(name);
    path
}

impl Temp {
    pub(crate) fn write(&mut self, data: &[u8]) -> Result<(), FileError> {
        for part in data.chunks(WRITE_BYTES) {
            self.file.write_all(part).map_err(FileError::on("write", &self.path))?;
            self.size += part.len() as u64;
        }
        if self.size - self.handed_over >= HAND_OVER_BYTES {
            self.hand_over();
        }
        Ok(())
    }

    /// Makes the system start writing buffered data to the disk, without waiting for it, so that
    /// the sync at the end has little left to do. Only advice: a refusal changes nothing.
    fn hand_over(&mut self) {
        let length = NonZeroU64::new(self.size - self.handed_over);
        let advised = rustix::fs::fadvise(&self.file, self.handed_over, length, Advice::DontNeed);
        if let Err(error) = advised {
            tracing::debug!(path = %self.path, %error, "cannot start writing to the disk early");
        }
        self.handed_over = self.size;
    }

    pub(crate) fn sync(&self) -> Result<(), FileError> {
        self.file.sync_data().map_err(FileError::on("sync", &self.path))
    }

    pub(crate) fn move_to(mut self, path: &Utf8Path) -> Result<(), FileError> {
        fs::rename(&self.path, path).map_err(FileError::on("move a complete file to", path))?;
        self.moved = true;
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.moved
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(path = %self.path, %error, "cannot remove a temporary file");
        }
    }
}

pub(crate) fn sync_dir(path: &Utf8Path) -> Result<(), FileError> {
    let dir = if path.as_str().is_empty() { Utf8Path::new(".") } else { path };
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(FileError::on("sync the directory", dir))
}
