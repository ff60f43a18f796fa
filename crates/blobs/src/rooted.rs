//! Local files that a caller names. The kernel itself opens a path beneath an allowed root
//! (`openat2` with `RESOLVE_BENEATH`), so no link can be swapped in between a check and the
//! opening.

use std::fs::File;
use std::os::fd::OwnedFd;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// How often to retry when a concurrent rename keeps the kernel from being sure.
const TRIES_MAX: usize = 16;

/// The directories whose files a caller may name.
#[derive(Debug)]
pub struct Roots(Vec<Root>);

#[derive(Debug)]
struct Root {
    /// As configured, and with links resolved: a caller may use either.
    names: [Utf8PathBuf; 2],
    dir: OwnedFd,
}

/// A root that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the allowed root `{path}`; it must be an existing directory")]
pub struct RootsError {
    path: Utf8PathBuf,
    #[source]
    source: std::io::Error,
}

/// Why a named file cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenRootedError {
    /// Not beneath a root, or it leaves it through `..` or a link.
    #[error("`{path}` is not inside an allowed root")]
    Outside {
        /// The path as given by the caller.
        path: Utf8PathBuf,
    },
    /// It does not exist.
    #[error("no such file: `{path}`")]
    NotFound {
        /// The path as given by the caller.
        path: Utf8PathBuf,
    },
    /// A directory, a pipe, a device, a socket, or a link.
    #[error("`{path}` is not a regular file")]
    NotAFile {
        /// The path as given by the caller.
        path: Utf8PathBuf,
    },
    /// The system reported an error.
    #[error("cannot open `{path}`")]
    Open {
        /// The path as given by the caller.
        path: Utf8PathBuf,
        /// The error of the system.
        #[source]
        source: std::io::Error,
    },
}

impl Roots {
    /// Opens the roots. Without any, no local file may be named.
    pub fn open<'a>(paths: impl IntoIterator<Item = &'a Utf8Path>) -> Result<Self, RootsError> {
        paths.into_iter().map(Root::open).collect::<Result<_, _>>().map(Self)
    }

    /// Opens a regular file inside one of the roots. A relative path is tried in each root in turn.
    pub fn open_file(&self, path: &Utf8Path) -> Result<File, OpenRootedError> {
        let outside = || OpenRootedError::Outside { path: path.to_owned() };
        if path.components().any(|part| part == Utf8Component::ParentDir) {
            return Err(outside());
        }
        let mut refusal = outside();
        for root in &self.0 {
            let Some(inner) = root.strip(path) else { continue };
            match root.open_file(inner) {
                Ok(fd) => return regular(fd, path),
                Err(errno) => refusal = refused(errno, path),
            }
        }
        Err(refusal)
    }
}

impl Root {
    fn open(path: &Utf8Path) -> Result<Self, RootsError> {
        let failed = |source| RootsError { path: path.to_owned(), source };
        let canonical = path.canonicalize_utf8().map_err(failed)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let dir = rustix::fs::open(canonical.as_str(), flags, Mode::empty())
            .map_err(|errno| failed(errno.into()))?;
        Ok(Self { names: [path.to_owned(), canonical], dir })
    }

    /// Returns the path relative to the root, if it can be beneath it.
    fn strip<'a>(&self, path: &'a Utf8Path) -> Option<&'a Utf8Path> {
        if path.is_relative() {
            return Some(path);
        }
        self.names.iter().find_map(|name| path.strip_prefix(name).ok())
    }

    fn open_file(&self, inner: &Utf8Path) -> Result<OwnedFd, Errno> {
        // Non-blocking, because opening a pipe would otherwise wait for its other end.
        let flags =
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut tries = 0;
        loop {
            match rustix::fs::openat2(&self.dir, inner.as_str(), flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) if tries < TRIES_MAX => tries += 1,
                opened => return opened,
            }
        }
    }
}

fn regular(fd: OwnedFd, path: &Utf8Path) -> Result<File, OpenRootedError> {
    let file = File::from(fd);
    match file.metadata() {
        Ok(metadata) if metadata.is_file() => Ok(file),
        Ok(_) => Err(OpenRootedError::NotAFile { path: path.to_owned() }),
        Err(source) => Err(OpenRootedError::Open { path: path.to_owned(), source }),
    }
}

fn refused(errno: Errno, path: &Utf8Path) -> OpenRootedError {
    let path = path.to_owned();
    match errno {
        Errno::XDEV => OpenRootedError::Outside { path },
        Errno::NOENT | Errno::NOTDIR => OpenRootedError::NotFound { path },
        // A link as the last part, or a socket.
        Errno::LOOP | Errno::NXIO => OpenRootedError::NotAFile { path },
        _ => OpenRootedError::Open { path, source: errno.into() },
    }
}
