//! What can go wrong with a tree.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::SkipReason;

/// Why something in a tree was not read or written.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// Something has the name already.
    #[error("there is a `{}` already", path.display())]
    Taken {
        /// Which.
        path: PathBuf,
    },
    /// The path is absolute, or has `..` in it.
    #[error("`{}` does not stay inside; give a path without `..` from its top", path.display())]
    Outside {
        /// As it was given.
        path: PathBuf,
    },
    /// A part of the path is a link.
    #[error("`{}` leads through a symbolic link, and none is followed", path.display())]
    Link {
        /// The whole path.
        path: PathBuf,
    },
    /// There is nothing of that name.
    #[error("there is nothing at `{}`", path.display())]
    NotFound {
        /// What was looked for.
        path: PathBuf,
    },
    /// A directory, a link, a pipe, a socket or a device.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile {
        /// What was named.
        path: PathBuf,
    },
    /// A file has the name of a directory that is needed.
    #[error("`{}` needs a directory where something else is", path.display())]
    NotADirectory {
        /// The directory that is needed.
        path: PathBuf,
    },
    /// A path longer than the system takes.
    #[error("`{}` is too deep: a path has at most {max} bytes", path.display())]
    TooDeep {
        /// The path.
        path: PathBuf,
        /// The limit.
        max: usize,
    },
    /// More than the limit of entries.
    #[error("there are more than {max} files and directories")]
    TooManyEntries {
        /// The limit.
        max: usize,
    },
    /// More than the limit of bytes.
    #[error("there are more than {max} bytes of files")]
    TooManyBytes {
        /// The limit.
        max: u64,
    },
    /// What is in an archive is neither a file, nor a directory, nor a symbolic link.
    #[error("the archive has `{}`, which is no file, directory or symbolic link", path.display())]
    Unsupported {
        /// Its path in the archive.
        path: PathBuf,
    },
    /// The archive cannot be read, or written.
    #[error("cannot {action} the archive")]
    Archive {
        /// What was attempted.
        action: &'static str,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// The system refused.
    #[error("cannot {action} `{}`", path.display())]
    File {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What it said.
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

    /// Why something can be left out while the rest is looked at, if it is about that alone.
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

    /// Whether it is about something that was there a moment ago, or was another thing.
    pub(super) const fn is_change(&self) -> bool {
        matches!(self, Self::NotFound { .. } | Self::Link { .. } | Self::NotAFile { .. })
    }
}
