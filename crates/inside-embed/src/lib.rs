//! The program for sandboxes, `ringback-inside`, embedded as bytes in the binary that links this
//! crate, and unpacked to a file: one per build, named by its hash.
//!
//! Main types:
//!
//! * [`BYTES`]: the program, a static executable.
//! * [`Unpacked`]: the program in a directory, written if it is missing; [`UnpackError`] says why
//!   it cannot be written.
//!
//! Invariants:
//!
//! * A file of the name is complete and has the hash in its name, or it is replaced.
//! * Two processes that unpack at the same time both end up with the file.
//! * Nothing is started here.

use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ringback_sync::lock;

/// The program.
pub const BYTES: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ringback-inside"));

/// The prefix of the file's name.
const NAME: &str = "ringback-inside";
/// Enough of the hash that two builds do not share it.
const HASH_DIGITS: usize = 16;
/// Anyone who can see the directory may run it.
const MODE: u32 = 0o755;

/// Why the program cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot {attempted} `{path}`")]
pub struct UnpackError {
    attempted: &'static str,
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// The program in a directory.
#[derive(Debug)]
pub struct Unpacked {
    directory: PathBuf,
    /// The file that was verified, with its stamp at that time.
    whole: Mutex<Option<(PathBuf, Stamp)>>,
}

/// Differs whenever a file has been replaced, written or given other permissions.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    n_bytes: u64,
    mode: u32,
    changed: (i64, i64),
}

impl Unpacked {
    /// Writes nothing until the path is requested.
    pub const fn new(directory: PathBuf) -> Self {
        Self { directory, whole: Mutex::new(None) }
    }

    /// Returns the path of the file. It is written, with the directory, if it is missing or
    /// incomplete; a complete one is read only once.
    ///
    /// # Errors
    /// When the directory cannot be written.
    pub fn path(&self) -> Result<PathBuf, UnpackError> {
        // What was known before a panic is still true.
        let mut whole = lock(&self.whole);
        if let Some((path, stamp)) = &*whole
            && Stamp::of(path).as_ref() == Some(stamp)
        {
            return Ok(path.clone());
        }
        let path = unpack(&self.directory)?;
        *whole = Stamp::of(&path).map(|stamp| (path.clone(), stamp));
        Ok(path)
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = path.symlink_metadata().ok()?;
        Some(Self {
            inode: metadata.ino(),
            n_bytes: metadata.len(),
            mode: metadata.mode(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

fn unpack(directory: &Path) -> Result<PathBuf, UnpackError> {
    let hash = blake3::hash(BYTES);
    let path = directory.join(format!("{NAME}-{}", &hash.to_hex()[..HASH_DIGITS]));
    if is_whole(&path, hash) {
        return Ok(path);
    }
    let failed = |attempted, path: &Path| {
        let path = path.to_owned();
        move |source| UnpackError { attempted, path, source }
    };
    std::fs::create_dir_all(directory).map_err(failed("create the directory", directory))?;
    let mut file = tempfile::Builder::new()
        .prefix(NAME)
        .permissions(std::fs::Permissions::from_mode(MODE))
        .tempfile_in(directory)
        .map_err(failed("create a file in", directory))?;
    let written = file.write_all(BYTES).and_then(|()| {
        // The umask may have removed bits.
        file.as_file().set_permissions(std::fs::Permissions::from_mode(MODE))?;
        file.as_file().sync_all()
    });
    written.map_err(failed("write", file.path()))?;
    file.persist(&path).map_err(|error| failed("rename a file to", &path)(error.error))?;
    let synced = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(failed("sync the directory", directory))?;
    Ok(path)
}

fn is_whole(path: &Path, hash: blake3::Hash) -> bool {
    let is_executable =
        path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & MODE == MODE);
    is_executable && std::fs::read(path).is_ok_and(|bytes| blake3::hash(&bytes) == hash)
}
