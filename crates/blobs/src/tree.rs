//! A directory tree that another process may be writing in, such as an agent's workspace. The
//! kernel resolves every path beneath the tree's root and through no link at all (`openat2` with
//! `RESOLVE_BENEATH` and `RESOLVE_NO_SYMLINKS`), so no link can be swapped in at any moment. A link
//! itself is listed, read and created as text.

mod archive;
mod copy;
mod descent;
mod diff;
mod error;
mod removal;
mod usage;
mod walk;

use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use ringback_proto::ids::BlobHash;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat};
use rustix::io::Errno;

pub use self::archive::{ArchiveSummary, pack, pack_all, unpack};
pub use self::copy::copy_all;
pub use self::diff::{Diff, DiffError, Snapshot, compare};
pub use self::error::TreeError;
pub use self::removal::remove_tree;
pub use self::usage::Usage;
pub use self::walk::{SkipReason, Skipped, TreeLimits, TreeListing};

/// How often to retry when a concurrent rename keeps the kernel from being sure.
const TRIES_MAX: usize = 16;
/// The kernel accepts paths of up to 4096 bytes.
const PATH_BYTES_MAX: usize = 4000;
/// The name prefix of a file that is only half written. No other program uses such names.
const TEMP_PREFIX: &str = ".ringback-half-written-";
const DIR_MODE: Mode = Mode::from_raw_mode(0o755);

/// The kind of a tree entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, whatever its target.
    Symlink,
    /// A pipe, a socket or a device: never opened.
    Other,
}

/// An entry of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path relative to the tree's root. Need not be UTF-8.
    pub path: PathBuf,
    /// Its kind.
    pub kind: EntryKind,
    /// Its length in bytes; 0 if it is not a file.
    pub size: u64,
    /// Whether its owner may run it; false if it is not a file.
    pub executable: bool,
}

/// An open tree.
#[derive(Debug)]
pub struct Tree {
    dir: OwnedFd,
}

impl Tree {
    /// Opens a tree at a directory, which may itself not be a link.
    ///
    /// # Errors
    /// When it does not exist, or is not a directory.
    pub fn open(root: &Path) -> Result<Self, TreeError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::open(root, flags, Mode::empty())
            .map_err(|errno| TreeError::of(errno, "open", root))?;
        Ok(Self { dir })
    }

    /// Returns the entry at a path; a link is not followed.
    ///
    /// # Errors
    /// When it does not exist, or the path leads outside or through a link.
    pub fn entry(&self, path: &Path) -> Result<Entry, TreeError> {
        let path = inner(path)?;
        if path.as_os_str().is_empty() {
            let kind = EntryKind::Directory;
            return Ok(Entry { path, kind, size: 0, executable: false });
        }
        let fd = self.resolve(&path, OFlags::PATH)?;
        let stat =
            rustix::fs::fstat(&fd).map_err(|errno| TreeError::of(errno, "inspect", &path))?;
        Ok(Entry::of(path, &stat))
    }

    /// Opens a regular file for reading. Anything that would block is never opened.
    ///
    /// # Errors
    /// When it does not exist or is not a file, or the path leads outside or through a link.
    pub fn open_file(&self, path: &Path) -> Result<File, TreeError> {
        let path = inner(path)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        // Opening a device can have effects, so its kind is checked first; the kind after opening
        // counts.
        let is_file = self.entry(&path)?.kind == EntryKind::File;
        let file = if is_file { Some(File::from(self.resolve(&path, flags)?)) } else { None };
        file.filter(|file| file.metadata().is_ok_and(|metadata| metadata.is_file()))
            .ok_or(TreeError::NotAFile { path })
    }

    /// Returns the hash of a file's content.
    ///
    /// # Errors
    /// As [`Tree::open_file`], and when it cannot be read.
    pub fn hash(&self, path: &Path) -> Result<BlobHash, TreeError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(self.open_file(path)?).map_err(TreeError::on("read", path))?;
        Ok(BlobHash::from_bytes(*hasher.finalize().as_bytes()))
    }

    /// Returns the target of a link.
    ///
    /// # Errors
    /// When it is not a link, or the path to it leads outside or through another.
    pub fn read_link(&self, path: &Path) -> Result<PathBuf, TreeError> {
        let path = inner(path)?;
        let fd = self.resolve(&path, OFlags::PATH)?;
        let target = rustix::fs::readlinkat(&fd, "", Vec::new())
            .map_err(|errno| TreeError::of(errno, "read the link", &path))?;
        Ok(std::ffi::OsString::from_vec(target.into_bytes()).into())
    }

    /// Writes a file, and creates its directories. Whatever had the name before, even a link, is
    /// replaced atomically; the read and write permissions of a file are kept. Returns its size in
    /// bytes.
    ///
    /// # Errors
    /// When a directory has the name, the path leads outside or through a link, or the system
    /// reports an error.
    pub fn write(
        &self,
        path: &Path,
        content: &mut dyn Read,
        executable: bool,
    ) -> Result<u64, TreeError> {
        let path = inner(path)?;
        let (dir, name) = self.parent(&path)?;
        let temp = temp_name();
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(if executable { 0o755 } else { 0o644 });
        let fd = rustix::fs::openat(&dir, &temp, flags, mode)
            .map_err(|errno| TreeError::of(errno, "write", &path))?;
        let half = TemporaryFile { dir: dir.as_fd(), name: &temp, done: false };
        let mut file = File::from(fd);
        if let Some(mode) = kept_mode(dir.as_fd(), name, executable) {
            rustix::fs::fchmod(&file, mode)
                .map_err(|errno| TreeError::of(errno, "write", &path))?;
        }
        let n_bytes = io::copy(content, &mut file).map_err(TreeError::on("write", &path))?;
        half.finish(name).map_err(|errno| TreeError::of(errno, "write", &path))?;
        Ok(n_bytes)
    }

    /// Writes a file whose name is free, and creates its directories; otherwise like
    /// [`Tree::write`].
    ///
    /// # Errors
    /// As [`Tree::write`], and when the name is taken.
    pub fn write_new(&self, path: &Path, content: &mut dyn Read) -> Result<u64, TreeError> {
        let path = inner(path)?;
        let (dir, name) = self.parent(&path)?;
        let temp = temp_name();
        let failed = |errno| TreeError::of(errno, "write", &path);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let fd = rustix::fs::openat(&dir, &temp, flags, mode).map_err(failed)?;
        let half = TemporaryFile { dir: dir.as_fd(), name: &temp, done: false };
        let copied = io::copy(content, &mut File::from(fd));
        let n_bytes = copied.map_err(TreeError::on("write", &path))?;
        half.finish_new(name).map_err(|errno| match errno {
            Errno::EXIST => TreeError::Taken { path: path.clone() },
            errno => failed(errno),
        })?;
        Ok(n_bytes)
    }

    /// Creates a link and its directories, like [`Tree::write`].
    ///
    /// # Errors
    /// As [`Tree::write`].
    pub fn link(&self, path: &Path, target: &Path) -> Result<(), TreeError> {
        let path = inner(path)?;
        let failed = |errno| TreeError::of(errno, "create the link", &path);
        let (dir, name) = self.parent(&path)?;
        let temp = temp_name();
        rustix::fs::symlinkat(target, &dir, &temp).map_err(failed)?;
        TemporaryFile { dir: dir.as_fd(), name: &temp, done: false }.finish(name).map_err(failed)
    }

    /// Creates a directory and its parents, where they are missing.
    ///
    /// # Errors
    /// When something else has the name, or the path leads outside or through a link.
    pub fn make_dir(&self, path: &Path) -> Result<(), TreeError> {
        self.directory(&inner(path)?).map(drop)
    }

    /// Removes a file or a link, and the directories that become empty.
    ///
    /// # Errors
    /// When it is a directory or does not exist, or the path leads outside or through a link.
    pub fn remove(&self, path: &Path) -> Result<(), TreeError> {
        let path = inner(path)?;
        let failed = |errno| TreeError::of(errno, "remove", &path);
        let (dir, name) = self.existing_parent(&path)?;
        rustix::fs::unlinkat(&dir, name, AtFlags::empty()).map_err(failed)?;
        let mut above = path.parent();
        while let Some(empty) = above.filter(|path| !path.as_os_str().is_empty()) {
            let (dir, name) = self.existing_parent(empty)?;
            // A directory that is not empty stays, and so do its parents.
            if rustix::fs::unlinkat(&dir, name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
            above = empty.parent();
        }
        Ok(())
    }

    /// Opens the entry at a path, without following a link.
    fn resolve(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, TreeError> {
        open_beneath(self.dir.as_fd(), path, flags)
            .map_err(|errno| TreeError::of(errno, "open", path))
    }

    /// Returns the directory of a name, created if it is missing.
    fn parent<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), TreeError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(TreeError::NotAFile { path: path.to_owned() });
        };
        Ok((self.directory(parent)?, name))
    }

    fn existing_parent<'a>(&self, path: &'a Path) -> Result<(OwnedFd, &'a OsStr), TreeError> {
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(TreeError::NotAFile { path: path.to_owned() });
        };
        let here = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        Ok((self.resolve(here, OFlags::PATH | OFlags::DIRECTORY)?, name))
    }

    /// Returns a directory, created step by step if it is missing.
    fn directory(&self, path: &Path) -> Result<OwnedFd, TreeError> {
        let failed = |errno| TreeError::of(errno, "create the directory", path);
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let mut dir = open_beneath(self.dir.as_fd(), Path::new("."), flags).map_err(failed)?;
        for part in path.components() {
            let name: &Path = part.as_ref();
            dir = match open_beneath(dir.as_fd(), name, flags) {
                Err(Errno::NOENT) => {
                    match rustix::fs::mkdirat(&dir, name, DIR_MODE) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(errno) => return Err(failed(errno)),
                    }
                    open_beneath(dir.as_fd(), name, flags).map_err(failed)?
                }
                Err(Errno::NOTDIR) => return Err(in_the_way(dir.as_fd(), name, path)),
                opened => opened.map_err(failed)?,
            };
        }
        Ok(dir)
    }
}

impl Entry {
    fn of(path: PathBuf, stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Directory,
            FileType::Symlink => EntryKind::Symlink,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => EntryKind::Other,
        };
        let is_file = kind == EntryKind::File;
        let size = if is_file { u64::try_from(stat.st_size).unwrap_or(0) } else { 0 };
        Self { path, kind, size, executable: is_file && stat.st_mode & 0o100 != 0 }
    }
}

/// A temporary name that is removed unless it is renamed.
struct TemporaryFile<'a> {
    dir: BorrowedFd<'a>,
    name: &'a str,
    done: bool,
}

impl TemporaryFile<'_> {
    /// Takes over a name, whatever had it. Renaming follows no link.
    fn finish(mut self, name: &OsStr) -> Result<(), Errno> {
        rustix::fs::renameat(self.dir, self.name, self.dir, name)?;
        self.done = true;
        Ok(())
    }
}

impl TemporaryFile<'_> {
    /// Takes a free name.
    fn finish_new(mut self, name: &OsStr) -> Result<(), Errno> {
        let flags = RenameFlags::NOREPLACE;
        rustix::fs::renameat_with(self.dir, self.name, self.dir, name, flags)?;
        self.done = true;
        Ok(())
    }
}

impl Drop for TemporaryFile<'_> {
    fn drop(&mut self) {
        if !self.done
            && let Err(error) = rustix::fs::unlinkat(self.dir, self.name, AtFlags::empty())
        {
            tracing::warn!(%error, "cannot remove a half-written file");
        }
    }
}

fn open_beneath(dir: BorrowedFd<'_>, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // The last part of a path may be a link if it is only inspected; it is never followed.
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < TRIES_MAX => tries += 1,
            opened => return opened,
        }
    }
}

/// Returns the error for a part of a path that is not a directory.
fn in_the_way(dir: BorrowedFd<'_>, name: &Path, path: &Path) -> TreeError {
    let path = path.to_owned();
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
            TreeError::Link { path }
        }
        Ok(_) | Err(_) => TreeError::NotADirectory { path },
    }
}

/// Returns the permissions of a file to be replaced, with or without the right to run it.
fn kept_mode(dir: BorrowedFd<'_>, name: &OsStr, executable: bool) -> Option<Mode> {
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let read_write = stat.st_mode & 0o666;
    // Everyone who can read it can run it.
    let run = if executable { (read_write & 0o444) >> 2 } else { 0 };
    is_file.then(|| Mode::from_raw_mode(read_write | run))
}

/// Returns a name that cannot be guessed.
fn temp_name() -> String {
    format!("{TEMP_PREFIX}{:016x}", RandomState::new().hash_one(std::process::id()))
}

/// Normalizes a path relative to a root: no `..`, nothing absolute, `.` removed.
fn inner(path: &Path) -> Result<PathBuf, TreeError> {
    let outside = || TreeError::Outside { path: path.to_owned() };
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(part) if part.as_bytes().contains(&0) => return Err(outside()),
            Component::Normal(part) => parts.push(part),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                return Err(outside());
            }
        }
    }
    if parts.as_os_str().len() > PATH_BYTES_MAX {
        return Err(TreeError::TooDeep { path: parts, max: PATH_BYTES_MAX });
    }
    Ok(parts)
}
