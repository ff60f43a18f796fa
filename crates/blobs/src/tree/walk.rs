//! Lists the entries of a tree, in order and within limits.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, OFlags};
use rustix::io::Errno;

use super::{Entry, EntryKind, PATH_BYTES_MAX, Tree, TreeError, inner};

/// The maximum total length of the paths of a walk: many deep entries would fill the memory with
/// the names of their parent directories.
const PATHS_BYTES_MAX: usize = 128 << 20;

/// Limits of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Files, directories and all other entries.
    pub entries_max: usize,
    /// Bytes of all files together.
    pub bytes_max: u64,
}

/// The result of a walk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeListing {
    /// The entries, a directory before its content, including directories that were not read.
    pub entries: Vec<Entry>,
    /// Entries that were not read, in the same order.
    pub skipped: Vec<Skipped>,
}

/// An entry that was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub why: SkipReason,
}

/// Why an entry was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// Its permissions do not allow it.
    Unreadable,
    /// Its content has longer paths than the system accepts.
    TooDeep,
    /// It would exceed the limit of bytes.
    TooLarge,
}

impl SkipReason {
    /// Returns the reason for people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "it cannot be read",
            Self::TooDeep => "its path is too long",
            Self::TooLarge => "it is over the size limit",
        }
    }
}

impl Tree {
    /// Returns the entries of a directory, sorted by name.
    ///
    /// # Errors
    /// `TooManyEntries` past the limit; when it is not a directory, or the path leads outside or
    /// through a link.
    pub fn list(&self, dir: &Path, entries_max: usize) -> Result<Vec<Entry>, TreeError> {
        let dir = inner(dir)?;
        let here = if dir.as_os_str().is_empty() { Path::new(".") } else { &dir };
        let fd = self.resolve(here, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let failed = |errno| TreeError::of(errno, "read the directory", here);
        let mut entries = Vec::new();
        for read in Dir::read_from(&fd).map_err(failed)? {
            let read = read.map_err(failed)?;
            let name = read.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let stat = match rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Err(Errno::NOENT) => continue,
                stat => stat.map_err(failed)?,
            };
            if entries.len() == entries_max {
                return Err(TreeError::TooManyEntries { max: entries_max });
            }
            let name = OsString::from_vec(name.to_bytes().to_vec());
            entries.push(Entry::of(dir.join(name), &stat));
        }
        entries.sort_by(|a, b| a.path.as_os_str().cmp(b.path.as_os_str()));
        Ok(entries)
    }

    /// Returns everything below a directory that `keep` accepts, a directory before its content.
    /// Entries that disappear before they are read are left out; no link is followed, whenever it
    /// appears. Unreadable directories, paths that are too long, and files beyond the limit are
    /// reported as skipped, and the rest is returned.
    ///
    /// # Errors
    /// `TooManyEntries` past the limit; when the directory itself cannot be read.
    pub fn walk(
        &self,
        dir: &Path,
        limits: TreeLimits,
        mut keep: impl FnMut(&Entry) -> bool,
    ) -> Result<TreeListing, TreeError> {
        let TreeLimits { entries_max, bytes_max } = limits;
        let mut walked = TreeListing::default();
        let (mut bytes_left, mut path_bytes_left) = (bytes_max, PATHS_BYTES_MAX);
        // In reverse order, so that the next one is last.
        let mut waiting = self.list(dir, entries_max)?;
        waiting.reverse();
        while let Some(entry) = waiting.pop() {
            if !keep(&entry) {
                continue;
            }
            let taken = path_bytes_left.checked_sub(entry.path.as_os_str().len());
            if walked.entries.len() + walked.skipped.len() >= entries_max || taken.is_none() {
                return Err(TreeError::TooManyEntries { max: entries_max });
            }
            path_bytes_left = taken.unwrap_or_default();
            let left = bytes_left.checked_sub(entry.size);
            let why = match left {
                _ if entry.path.as_os_str().len() > PATH_BYTES_MAX => Some(SkipReason::TooDeep),
                None => Some(SkipReason::TooLarge),
                Some(_) => None,
            };
            if let Some(why) = why {
                walked.skipped.push(Skipped { path: entry.path, why });
                continue;
            }
            bytes_left = left.unwrap_or_default();
            if entry.kind == EntryKind::Directory {
                match self.within(&entry.path, entries_max) {
                    Ok(inner) => waiting.extend(inner.into_iter().rev()),
                    Err(error) => {
                        let why = error.skip_reason().ok_or(error)?;
                        walked.skipped.push(Skipped { path: entry.path.clone(), why });
                    }
                }
            }
            walked.entries.push(entry);
        }
        Ok(walked)
    }

    /// Returns the entries of a directory that was just found; empty if it is no longer a
    /// directory.
    fn within(&self, dir: &Path, entries_max: usize) -> Result<Vec<Entry>, TreeError> {
        match self.list(dir, entries_max) {
            Err(error) if error.is_change() => Ok(Vec::new()),
            listed => listed,
        }
    }
}
