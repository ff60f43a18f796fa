//! Errors of tree operations.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::SkipReason;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// Why an entry of a tree was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// The name is taken.
    #[error("`{}` already exists", path.display())]
    Taken {
        /// The path.
        path: PathBuf,
    },
    /// The path is absolute, or has `..` in it.
    #[error("`{}` leads outside; use a relative path without `..`", path.display())]
    Outside {
        /// The path as given.
        path: PathBuf,
    },
    /// A part of the path is a link.
    #[error("`{}` leads through a symbolic link; links are not followed", path.display())]
    Link {
        /// The whole path.
        path: PathBuf,
    },
    /// It does not exist.
    #[error("no such file or directory: `{}`", path.display())]
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// A directory, a link, a pipe, a socket or a device.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// A file has the name of a required directory.
    #[error("`{}` must be a directory, but something else has its name", path.display())]
    NotADirectory {
        /// The required directory.
        path: PathBuf,
    },
    /// A path longer than the system accepts.
    #[error("`{}` is too deep: a path has at most {max} bytes", path.display())]
    TooDeep {
        /// The path.
        path: PathBuf,
        /// The limit.
        max: usize,
    },
    /// More than the limit of entries.
    #[error("too many files and directories: more than {max}")]
    TooManyEntries {
        /// The limit.
        max: usize,
    },
    /// More than the limit of bytes.
    #[error("files too large: more than {} in total", size(*max))]
    TooManyBytes {
        /// The limit.
        max: u64,
    },
    /// An archive entry that is not a file, a directory or a symbolic link.
    #[error(
        "the archive contains `{}`, which is not a file, directory or symbolic link",
        path.display()
    )]
    Unsupported {
        /// Its path in the archive.
        path: PathBuf,
    },
    /// The archive cannot be read, or written.
    #[error("cannot {action} the archive")]
    Archive {
        /// The attempted action.
        action: &'static str,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The system reported an error.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// The attempted action.
        action: &'static str,
        /// The path.
        path: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl TreeError {
    pub(super) fn on<'a>(
        action: &'static str,
        path: &'a Path,
    ) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self::File { action, path: path.to_owned(), source }
    }

    pub(super) fn of(errno: Errno, action: &'static str, path: &Path) -> Self {
        let path = path.to_owned();
        match errno {
            Errno::XDEV => Self::Outside { path },
            Errno::LOOP => Self::Link { path },
            Errno::NOENT | Errno::NOTDIR => Self::NotFound { path },
            Errno::ISDIR | Errno::NXIO => Self::NotAFile { path },
            errno => Self::File { action, path, source: errno.into() },
        }
    }

    /// Returns why an entry can be skipped while the rest is read, if the error is only about that
    /// entry.
    pub(super) fn skip_reason(&self) -> Option<SkipReason> {
        match self {
            Self::TooDeep { .. } => Some(SkipReason::TooDeep),
            Self::File { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                Some(SkipReason::Unreadable)
            }
            Self::File { source, .. } if source.kind() == io::ErrorKind::InvalidFilename => {
                Some(SkipReason::TooDeep)
            }
            Self::Taken { .. }
            | Self::Outside { .. }
            | Self::Link { .. }
            | Self::NotFound { .. }
            | Self::NotAFile { .. }
            | Self::NotADirectory { .. }
            | Self::TooManyEntries { .. }
            | Self::TooManyBytes { .. }
            | Self::Unsupported { .. }
            | Self::Archive { .. }
            | Self::File { .. } => None,
        }
    }

    /// Returns whether it is about an entry that has just disappeared or changed its kind.
    pub(super) const fn is_change(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::Link { .. } | Self::NotAFile { .. })
    }
}

/// Formats a limit for people.
fn size(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= GIB && bytes.is_multiple_of(GIB) => format!("{} GiB", bytes / GIB),
        bytes if bytes >= MIB && bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        bytes => format!("{bytes} bytes"),
    }
}
