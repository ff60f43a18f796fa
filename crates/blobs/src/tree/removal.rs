//! Removes a tree with untrusted content: of any depth, with directories that cannot be read or
//! written, through no link, and no further than its own file system.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode};
use rustix::io::Errno;

use super::descent::{AS_PLACE, Descent};
use super::{PATH_BYTES_MAX, TreeError};

/// Names of directories that are remembered at the same time, on all levels together.
const NAMES_MAX: usize = 65_536;
/// How often entries may appear or move where everything was removed: another process is still
/// writing.
const CHANGES_MAX: usize = 1000;
/// The permissions an owner needs to remove the content of a directory.
const OWNER_ALL: Mode = Mode::RWXU;

/// Removes a directory and everything in it; succeeds if it does not exist. Needs the same stack
/// and the same few descriptors at any depth, and no space on the disk. Blocks.
///
/// # Errors
/// When something cannot be removed: it and everything not yet reached stays, and removal can be
/// retried.
pub fn remove_tree(root: &Path) -> Result<(), TreeError> {
    let open = match rustix::fs::open(root, AS_PLACE, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened.map_err(|errno| TreeError::of(errno, "remove", root))?,
    };
    let mut removal = Removal {
        root,
        descent: Descent::at_root(open),
        levels: vec![Level::default()],
        n_names: 0,
        n_changes: 0,
    };
    removal.run()?;
    match rustix::fs::rmdir(root) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(TreeError::of(errno, "remove", root)),
    }
}

struct Removal<'a> {
    root: &'a Path,
    descent: Descent,
    /// From the root to the current directory.
    levels: Vec<Level>,
    n_names: usize,
    n_changes: usize,
}

#[derive(Default)]
struct Level {
    /// Its name in its parent; the root has no name.
    name: OsString,
    is_read: bool,
    /// The directories found in it.
    inner: Vec<OsString>,
    /// Whether some of them could not be remembered.
    has_more: bool,
}

impl Removal<'_> {
    fn run(&mut self) -> Result<(), TreeError> {
        while let Some(level) = self.levels.last_mut() {
            if let Some(name) = level.inner.pop() {
                self.n_names -= 1;
                self.inner(name)?;
            } else if !level.is_read || level.has_more {
                self.read()?;
            } else if self.levels.len() == 1 {
                return Ok(());
            } else {
                self.leave()?;
            }
        }
        Ok(())
    }

    /// Removes the files here, and remembers the directories.
    fn read(&mut self) -> Result<(), TreeError> {
        self.open_up().map_err(|errno| self.error(errno, None))?;
        let mut has_more = false;
        let mut inner = Vec::new();
        for name in self.descent.entries().map_err(|errno| self.error(errno, None))? {
            let name = name.map_err(|errno| self.error(errno, None))?;
            match rustix::fs::unlinkat(self.descent.dir(), &name, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR) => {
                    if self.n_names >= NAMES_MAX && !inner.is_empty() {
                        has_more = true;
                        break;
                    }
                    self.n_names += 1;
                    inner.push(name);
                }
                Err(errno) => return Err(self.error(errno, Some(&name))),
            }
        }
        if let Some(level) = self.levels.last_mut() {
            (level.is_read, level.has_more, level.inner) = (true, has_more, inner);
        }
        Ok(())
    }

    /// Removes a directory here if it is empty, and enters it otherwise.
    fn inner(&mut self, name: OsString) -> Result<(), TreeError> {
        match rustix::fs::unlinkat(self.descent.dir(), &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST) => match self.descent.enter(&name) {
                Ok(()) => {
                    self.levels.push(Level { name, ..Level::default() });
                    Ok(())
                }
                Err(Errno::NOENT) => Ok(()),
                // It became something else.
                Err(Errno::NOTDIR | Errno::LOOP) => self.read_again(),
                Err(errno) => Err(self.error(errno, Some(&name))),
            },
            Err(Errno::NOTDIR) => self.read_again(),
            Err(errno) => Err(self.error(errno, Some(&name))),
        }
    }

    /// Goes up from an empty directory, and removes it.
    fn leave(&mut self) -> Result<(), TreeError> {
        let is_there = self.descent.leave().map_err(|errno| self.error(errno, None))?;
        let name = self.levels.pop().map(|level| level.name).unwrap_or_default();
        if !is_there {
            self.n_names = 0;
            self.levels.truncate(1);
            self.levels.iter_mut().for_each(|level| level.inner.clear());
            return self.read_again();
        }
        match rustix::fs::unlinkat(self.descent.dir(), &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(Errno::NOTEMPTY | Errno::EXIST | Errno::NOTDIR) => self.read_again(),
            Err(errno) => Err(self.error(errno, Some(&name))),
        }
    }

    /// Handles a change that happened here during removal.
    fn read_again(&mut self) -> Result<(), TreeError> {
        self.n_changes += 1;
        if self.n_changes > CHANGES_MAX {
            let source =
                io::Error::new(io::ErrorKind::ResourceBusy, "another process is writing there");
            return Err(TreeError::File { action: "remove", path: self.path(None), source });
        }
        if let Some(level) = self.levels.last_mut() {
            level.is_read = false;
        }
        Ok(())
    }

    /// Makes a directory readable and writable for its owner. It is reached only through the
    /// kernel's own link to the open directory, so it is the right one whatever happens to its
    /// name.
    fn open_up(&self) -> Result<(), Errno> {
        let dir = self.descent.dir();
        let mode = Mode::from_raw_mode(rustix::fs::fstat(dir)?.st_mode);
        if mode.contains(OWNER_ALL) {
            return Ok(());
        }
        let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
        match rustix::fs::chmod(link, OWNER_ALL) {
            // It belongs to another user; reading will show whether that matters.
            Ok(()) | Err(Errno::PERM) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn error(&self, errno: Errno, name: Option<&OsStr>) -> TreeError {
        TreeError::File { action: "remove", path: self.path(name), source: errno.into() }
    }

    /// Returns the path, as far as it is still accurate.
    fn path(&self, name: Option<&OsStr>) -> PathBuf {
        let mut path = self.root.to_owned();
        let names = self.levels.iter().skip(1).map(|level| level.name.as_os_str()).chain(name);
        for name in names {
            if path.as_os_str().len() + name.len() > PATH_BYTES_MAX {
                break;
            }
            path.push(name);
        }
        path
    }
}
