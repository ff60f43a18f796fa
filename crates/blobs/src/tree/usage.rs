//! What a tree takes of the disk.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::descent::{AS_PLACE, Descent};

/// What a tree takes of the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes, as the disk has them: a hole in a file takes none.
    pub bytes: u64,
    /// Names: files, directories and everything else.
    pub entries: u64,
    /// Whether some of it could not be looked at, so that there may be more.
    pub is_partial: bool,
}

impl Usage {
    /// What a tree takes, as far as it can be looked into. Follows no link, and counts a file with
    /// several names once. Looks at so many names at most. Blocks.
    #[must_use]
    pub fn of(root: &Path, entries_max: u64) -> Self {
        let Ok(root) = rustix::fs::open(root, AS_PLACE, Mode::empty()) else {
            return Self::default();
        };
        let usage = Self::default();
        let mut count = Count {
            usage,
            entries_max,
            several: HashSet::new(),
            descent: Descent::at_root(root),
            levels: Vec::new(),
        };
        count.run();
        count.usage
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_add(other.bytes),
            entries: self.entries.saturating_add(other.entries),
            is_partial: self.is_partial || other.is_partial,
        }
    }
}

struct Count {
    usage: Usage,
    entries_max: u64,
    /// Files with several names that were counted.
    several: HashSet<u64>,
    descent: Descent,
    /// The directories that are still to be looked into, from the root to where the descent is.
    levels: Vec<Vec<OsString>>,
}

impl Count {
    fn run(&mut self) {
        self.read();
        while let Some(inner) = self.levels.last_mut() {
            if let Some(name) = inner.pop() {
                match self.descent.enter(&name) {
                    Ok(()) => self.read(),
                    // Gone, or something else by now.
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => {}
                    Err(_) => self.usage.is_partial = true,
                }
                continue;
            }
            self.levels.pop();
            if !self.descent.leave().unwrap_or(false) {
                // It was moved meanwhile. What is known from above the place it was in goes on.
                self.usage.is_partial = true;
                self.descent.restart();
                self.levels.truncate(1);
            }
        }
    }

    /// Counts what is here, and remembers the directories.
    fn read(&mut self) {
        let mut inner = Vec::new();
        let found: Vec<_> = match self.descent.entries() {
            Ok(entries) => {
                let left = self.entries_max.saturating_sub(self.usage.entries);
                entries.flatten().take(usize::try_from(left).unwrap_or(usize::MAX)).collect()
            }
            Err(_) => {
                self.usage.is_partial = true;
                Vec::new()
            }
        };
        for name in found {
            if self.count(&name) {
                inner.push(name);
            }
        }
        self.usage.is_partial |= self.usage.entries >= self.entries_max;
        self.levels.push(inner);
    }

    /// Counts what has a name, and says whether it is a directory.
    fn count(&mut self, name: &OsStr) -> bool {
        let stat = rustix::fs::statat(self.descent.dir(), name, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(stat) = stat else { return false };
        self.usage.entries += 1;
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if !is_dir && stat.st_nlink > 1 && !self.several.insert(stat.st_ino) {
            return false;
        }
        // The system counts in halves of a kilobyte, whatever the size of a block is.
        let own = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
        self.usage.bytes = self.usage.bytes.saturating_add(own);
        is_dir
    }
}
