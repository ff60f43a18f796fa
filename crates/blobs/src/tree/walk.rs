//! What is in a tree, in order and within limits.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, OFlags};
use rustix::io::Errno;

use super::{Entry, EntryKind, PATH_BYTES_MAX, Tree, TreeError, inner};

/// What the paths of a walk have together at most: many entries deep down would fill the memory with
/// the names of the directories above them.
const PATHS_BYTES_MAX: usize = 64 << 20;

/// How much of a tree is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Files, directories and whatever else has a name.
    pub entries_max: usize,
    /// Bytes of all files together.
    pub bytes_max: u64,
}

/// What was found below a directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Walked {
    /// What there is, a directory before what is in it, and also one that was not looked into.
    pub entries: Vec<Entry>,
    /// What is there and was not looked at, in the same order.
    pub skipped: Vec<Skipped>,
}

/// Something that was not looked at, or not looked into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Where it is.
    pub path: PathBuf,
    /// Why not.
    pub why: SkipReason,
}

/// Why something was not looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkipReason {
    /// Whoever made it lets nobody read it.
    Unreadable,
    /// What is in it has longer paths than the system takes.
    TooDeep,
    /// With it there would be more bytes than the limit.
    TooLarge,
}

impl SkipReason {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unreadable => "it cannot be read",
            Self::TooDeep => "its path is too long",
            Self::TooLarge => "it is larger than what is looked at",
        }
    }
}

impl Tree {
    /// What a directory has, in the order of its names.
    ///
    /// # Errors
    /// `TooManyEntries` past the limit; when it is no directory, or the path leads outside or
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

    /// Everything below a directory that `keep` lets in, a directory before what is in it. What is
    /// gone before it is looked at is left out; no link is followed, whenever it appears. A directory
    /// that cannot be read, a path that is too long, and a file that there is no room for are named as
    /// skipped, and the rest is there.
    ///
    /// # Errors
    /// `TooManyEntries` past the limit; when the directory itself cannot be read.
    pub fn walk(
        &self,
        dir: &Path,
        limits: TreeLimits,
        mut keep: impl FnMut(&Entry) -> bool,
    ) -> Result<Walked, TreeError> {
        let TreeLimits { entries_max, bytes_max } = limits;
        let mut walked = Walked::default();
        let (mut bytes_left, mut path_bytes_left) = (bytes_max, PATHS_BYTES_MAX);
        // The next one last.
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

    /// What a directory that was just seen has; nothing if it is no directory any more.
    fn within(&self, dir: &Path, entries_max: usize) -> Result<Vec<Entry>, TreeError> {
        match self.list(dir, entries_max) {
            Err(error) if error.is_change() => Ok(Vec::new()),
            listed => listed,
        }
    }
}
