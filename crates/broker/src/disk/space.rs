//! Free disk space, and how much of it must stay free.

use std::fmt;
use std::io;
use std::sync::Arc;

use camino::Utf8Path;

/// Disk limits.
#[derive(Debug, Clone)]
pub struct DiskLimits {
    /// Space for an agent: its workspace, its home and the content it stored. A container has the
    /// same limit. Unlimited if absent.
    pub workspace_bytes: Option<u64>,
    /// Space to keep free.
    pub keep_free: DiskReserve,
    /// Inodes to keep free.
    pub keep_free_inodes: DiskReserve,
    /// Space reserved for ends and deletions on a full disk; 0 for none.
    pub reserve_bytes: u64,
    /// The source of free space.
    pub disk: Arc<dyn Disk>,
}

/// How much of the disk to keep free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskReserve {
    /// A twentieth, but at most a gigabyte or a hundred thousand files.
    Usual,
    /// This number of bytes or files.
    Bytes(u64),
}

/// A disk.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Returns how full the disk of a directory is. May block.
    ///
    /// # Errors
    /// When the system does not report it.
    fn space(&self, path: &Utf8Path) -> io::Result<Space>;
}

/// How full a disk is, in bytes and in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes that can still be written.
    pub free: u64,
    /// Bytes in total.
    pub total: u64,
    /// Files; absent where the file system allocates inodes dynamically.
    pub inodes: Option<Inodes>,
}

/// Inodes of a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Inodes {
    /// Files that can still be created.
    pub free: u64,
    /// In total.
    pub total: u64,
}

/// A resource that runs short on a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    /// Bytes.
    Bytes { free: u64, keep: u64 },
    /// Files.
    Inodes { free: u64, keep: u64 },
}

/// The disk of this system.
#[derive(Debug)]
struct SystemDisk;

impl Default for DiskLimits {
    fn default() -> Self {
        Self {
            // Room for sources, build output and package caches.
            workspace_bytes: Some(10 << 30),
            keep_free: DiskReserve::Usual,
            keep_free_inodes: DiskReserve::Usual,
            // Room for the records of some hundred thousand ends.
            reserve_bytes: 64 << 20,
            disk: Arc::new(SystemDisk),
        }
    }
}

impl DiskLimits {
    /// Returns what runs short of the space to keep free, if anything.
    pub(super) fn shortage(&self, space: Space) -> Option<Shortage> {
        let keep = self.keep_free.of(space.total);
        if space.free < keep {
            return Some(Shortage::Bytes { free: space.free, keep });
        }
        let inodes = space.inodes?;
        let keep = self.keep_free_inodes.of_inodes(inodes.total);
        (inodes.free < keep).then_some(Shortage::Inodes { free: inodes.free, keep })
    }
}

impl DiskReserve {
    /// Returns the bytes to keep free on a disk of this size.
    pub(super) const fn of(self, total: u64) -> u64 {
        match self {
            Self::Usual if total / 20 < 1 << 30 => total / 20,
            Self::Usual => 1 << 30,
            Self::Bytes(bytes) => bytes,
        }
    }

    /// Returns the inodes to keep free on a disk with this number of them.
    pub(super) const fn of_inodes(self, total: u64) -> u64 {
        match self {
            Self::Usual if total / 20 < 100_000 => total / 20,
            Self::Usual => 100_000,
            Self::Bytes(files) => files,
        }
    }
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes { free, keep } => {
                let (free, keep) = (shown(*free), shown(*keep));
                write!(f, "has {free} left, but {keep} must stay free (`sandbox.keep_free`)")
            }
            Self::Inodes { free, keep } => write!(
                f,
                "has room for {free} more files, but {keep} must stay free \
                 (`sandbox.keep_free_inodes`)"
            ),
        }
    }
}

impl Disk for SystemDisk {
    fn space(&self, path: &Utf8Path) -> io::Result<Space> {
        let found = rustix::fs::statvfs(path.as_std_path())?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        let inodes = Inodes { free: found.f_favail, total: found.f_files };
        Ok(Space {
            free: bytes(found.f_bavail),
            total: bytes(found.f_blocks),
            inodes: Some(inodes).filter(|inodes| inodes.total > 0),
        })
    }
}

/// Formats a number of bytes for people.
pub(super) fn shown(bytes: u64) -> String {
    const UNITS: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = UNITS.into_iter().find(|(size, _)| bytes >= *size);
    match unit {
        Some((size, name)) => {
            let tenths = bytes.saturating_mul(10) / size;
            format!("{}.{} {name}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn a_gigabyte_is_kept_free_or_a_twentieth_if_that_is_less() {
        assert_eq!(DiskReserve::Usual.of(100 * GIB), GIB);
        assert_eq!(DiskReserve::Usual.of(GIB), GIB / 20);
        assert_eq!(DiskReserve::Bytes(7).of(GIB), 7);
        assert_eq!(DiskReserve::Usual.of_inodes(8000), 400);
        assert_eq!(DiskReserve::Usual.of_inodes(1 << 40), 100_000);
        assert_eq!((shown(1536 << 20), shown(900)), ("1.5 GiB".to_owned(), "900 bytes".to_owned()));
    }

    /// Rule: a shortage names its configuration key.
    #[test]
    fn a_shortage_names_its_key() {
        let limits = DiskLimits::default();
        let inodes = Some(Inodes { free: 10, total: 8000 });
        let short = |space| limits.shortage(space).map(|short| short.to_string());
        let space = Space { free: GIB, total: 2 * GIB, inodes: None };
        assert_eq!(short(space), None);
        assert!(short(Space { free: 0, ..space }).unwrap().contains("`sandbox.keep_free`"));
        assert!(short(Space { inodes, ..space }).unwrap().contains("`sandbox.keep_free_inodes`"));
    }
}
