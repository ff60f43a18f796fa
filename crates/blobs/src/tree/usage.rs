//! The disk usage of a tree.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;

use super::descent::{AS_PLACE, Descent};

/// The disk usage of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes on the disk: a hole in a file takes none.
    pub bytes: u64,
    /// The number of files, directories and other entries.
    pub entries: u64,
    /// Whether parts could not be read, so that the real usage may be higher.
    pub is_partial: bool,
}

impl Usage {
    /// Measures a tree, as far as it can be read. Follows no link, and counts a file with several
    /// names once. Stops after `entries_max` names. Blocks.
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

    /// Adds two usages.
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
    /// Files with several names that were already counted.
    several: HashSet<u64>,
    descent: Descent,
    /// The directories still to be read, from the root to the current directory.
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
                // It was moved in the meantime. Continue with what is known from above its old
                // place.
                self.usage.is_partial = true;
                self.descent.restart();
                self.levels.truncate(1);
            }
        }
    }

    /// Counts the entries here, and remembers the directories.
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

    /// Counts an entry; returns whether it is a directory.
    fn count(&mut self, name: &OsStr) -> bool {
        let stat = rustix::fs::statat(self.descent.dir(), name, AtFlags::SYMLINK_NOFOLLOW);
        let Ok(stat) = stat else { return false };
        self.usage.entries += 1;
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if !is_dir && stat.st_nlink > 1 && !self.several.insert(stat.st_ino) {
            return false;
        }
        // The system counts in units of 512 bytes, whatever the block size.
        let own = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
        self.usage.bytes = self.usage.bytes.saturating_add(own);
        is_dir
    }
}
