//! A path through a tree of any depth: one descriptor for the current directory, and the identities
//! of its parents. Neither the stack nor the number of open files grows with the depth.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{Dir, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use super::TRIES_MAX;

/// Opens a directory without reading it, so that even an unreadable one can be opened.
pub(super) const AS_PLACE: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The identity of a directory, whatever its name is by now.
type Identity = (u64, u64);

/// A position in a tree.
#[derive(Debug)]
pub(super) struct Descent {
    root: OwnedFd,
    /// `None` at the root.
    at: Option<OwnedFd>,
    above: Vec<Identity>,
}

impl Descent {
    pub(super) const fn at_root(root: OwnedFd) -> Self {
        Self { root, at: None, above: Vec::new() }
    }

    /// Returns the current directory.
    pub(super) fn dir(&self) -> BorrowedFd<'_> {
        self.at.as_ref().unwrap_or(&self.root).as_fd()
    }

    /// Enters a directory: through no link, and into no other file system.
    pub(super) fn enter(&mut self, name: &OsStr) -> Result<(), Errno> {
        let inner = open_within(self.dir(), name)?;
        self.above.push(identity(&rustix::fs::fstat(self.dir())?));
        self.at = Some(inner);
        Ok(())
    }

    /// Goes back up. `false` if the directory was moved in the meantime: then the position is the
    /// root.
    pub(super) fn leave(&mut self) -> Result<bool, Errno> {
        let Some(above) = self.above.pop() else { return Ok(true) };
        let up = rustix::fs::openat(self.dir(), "..", AS_PLACE, Mode::empty())?;
        if identity(&rustix::fs::fstat(&up)?) != above {
            self.restart();
            return Ok(false);
        }
        self.at = if self.above.is_empty() { None } else { Some(up) };
        Ok(true)
    }

    /// Goes to the root.
    pub(super) fn restart(&mut self) {
        self.at = None;
        self.above.clear();
    }

    /// Returns the entries of the directory. The kernel reads it again each time.
    pub(super) fn entries(&self) -> Result<impl Iterator<Item = Result<OsString, Errno>>, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = rustix::fs::openat(self.dir(), ".", flags, Mode::empty())?;
        let names = Dir::new(open)?.map(|entry| {
            entry.map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
        });
        let is_own = |name: &OsString| name == "." || name == "..";
        Ok(names.filter(move |name| !name.as_ref().is_ok_and(is_own)))
    }
}

fn open_within(dir: BorrowedFd<'_>, name: &OsStr) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(dir, Path::new(name), AS_PLACE, Mode::empty(), resolve) {
            Err(Errno::AGAIN | Errno::INTR) if tries < TRIES_MAX => tries += 1,
            opened => return opened,
        }
    }
}

const fn identity(stat: &Stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}
