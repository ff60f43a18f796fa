//! What is in a tree, in order and within limits.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, OFlags};
use rustix::io::Errno;

use super::{Entry, EntryKind, Tree, TreeError, inner};

/// How much of a tree is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Files, directories and whatever else has a name.
    pub entries_max: usize,
    /// Bytes of all files together.
    pub bytes_max: u64,
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
    /// gone before it is looked at is left out; no link is followed, whenever it appears.
    ///
    /// # Errors
    /// Past a limit; when the directory cannot be read.
    pub fn walk(
        &self,
        dir: &Path,
        limits: TreeLimits,
        mut keep: impl FnMut(&Entry) -> bool,
    ) -> Result<Vec<Entry>, TreeError> {
        let TreeLimits { entries_max, bytes_max } = limits;
        let mut found: Vec<Entry> = Vec::new();
        let mut n_bytes = 0_u64;
        // The next one last.
        let mut waiting = self.list(dir, entries_max)?;
        waiting.reverse();
        while let Some(entry) = waiting.pop() {
            if !keep(&entry) {
                continue;
            }
            n_bytes = n_bytes.saturating_add(entry.size);
            if n_bytes > bytes_max {
                return Err(TreeError::TooManyBytes { max: bytes_max });
            }
            if found.len() == entries_max {
                return Err(TreeError::TooManyEntries { max: entries_max });
            }
            if entry.kind == EntryKind::Directory {
                waiting.extend(self.within(&entry.path, entries_max)?.into_iter().rev());
            }
            found.push(entry);
        }
        Ok(found)
    }

    /// What a directory that was just seen has; nothing if it is no directory any more.
    fn within(&self, dir: &Path, entries_max: usize) -> Result<Vec<Entry>, TreeError> {
        match self.list(dir, entries_max) {
            Err(error) if error.is_change() => Ok(Vec::new()),
            listed => listed,
        }
    }
}
