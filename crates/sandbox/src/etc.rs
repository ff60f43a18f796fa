//! The few files of `/etc` that a box has: those that programs need to run, none that says anything
//! about this machine or its users.
//!
//! They lie in one directory, because every mount costs a box a part of a millisecond. What is this
//! machine's own is a copy, which is made again when the original has changed.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::OpenError;
use crate::spec::ReadOnly;

/// The user in a box.
pub(crate) const UID: &str = "1000";

/// Where the files are in a box.
const ETC: &str = "/etc";

/// Files that every box has, with what is in them.
const WRITTEN: &[(&str, &str)] = &[
    ("passwd", "agent:x:1000:1000:agent:/home/agent:/bin/sh\n"),
    ("group", "agent:x:1000:\n"),
    ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ("resolv.conf", ""),
];

/// Small files of this machine, where it has them: how to find libraries, what time it is, how
/// certificates are used.
const COPIED: &[&str] =
    &["ld.so.cache", "ld.so.conf", "localtime", "ssl/openssl.cnf", "ca-certificates.conf"];

/// A directory of such files.
const COPIED_DIR: &str = "ld.so.conf.d";

/// Large directories of this machine, where it has them: which of several programs a name stands for,
/// and certificates.
const SHARED: &[&str] = &["alternatives", "ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted"];

/// The files that every box has.
#[derive(Debug)]
pub(crate) struct Etc {
    dir: PathBuf,
    /// Those that are copies, with what their originals were like; `None` if there was none.
    copied: Mutex<Vec<(PathBuf, Option<Stamp>)>>,
    /// Directories that are there as well.
    shared: Vec<&'static str>,
}

/// Differs whenever a file has been replaced or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    n_bytes: u64,
    modified: (i64, i64),
}

impl Etc {
    /// Writes the files.
    pub(crate) fn write(state_dir: &Path) -> Result<Self, OpenError> {
        let dir = state_dir.join("etc");
        let failed = |source| OpenError::State { path: dir.clone(), source };
        // One that an earlier run has left may show what this machine has no more.
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => fs::create_dir_all(&dir).map_err(failed)?,
        }
        for (name, content) in WRITTEN {
            fs::write(dir.join(name), content).map_err(failed)?;
        }
        let is_there = |name: &&&str| Path::new(ETC).join(name).is_dir();
        let shared: Vec<_> = SHARED.iter().filter(is_there).copied().collect();
        for name in &shared {
            fs::create_dir_all(dir.join(name)).map_err(failed)?;
        }
        let copied = COPIED.iter().map(PathBuf::from).chain(files_of(COPIED_DIR));
        let copied = Mutex::new(copied.map(|name| (name, None)).collect());
        let etc = Self { dir, copied, shared };
        etc.refresh().map_err(|source| OpenError::State { path: etc.dir.clone(), source })?;
        Ok(etc)
    }

    /// Copies again what has changed.
    pub(crate) fn refresh(&self) -> io::Result<()> {
        for (name, stamp) in self.copied().iter_mut() {
            let original = Path::new(ETC).join(&*name);
            let now = original.metadata().ok().filter(Metadata::is_file).map(|now| Stamp::of(&now));
            if now != *stamp {
                copy(&original, &self.dir.join(&*name), now.is_some())?;
                *stamp = now;
            }
        }
        Ok(())
    }

    /// What has to be mounted for them. Their directory as a whole has no place for anything else, so
    /// they come one by one where something of `/etc` is shown besides.
    pub(crate) fn mounts(&self, besides: &[ReadOnly]) -> Vec<(PathBuf, PathBuf)> {
        let etc = Path::new(ETC);
        let shared = self.shared.iter().map(|name| (etc.join(name), etc.join(name)));
        if !besides.iter().any(|shown| shown.inside.starts_with(etc)) {
            return [(self.dir.clone(), etc.to_owned())].into_iter().chain(shared).collect();
        }
        let written = WRITTEN.iter().map(|(name, _)| PathBuf::from(name));
        let copied = self.copied();
        let copied = copied.iter().filter(|(_, stamp)| stamp.is_some());
        let files = written.chain(copied.map(|(name, _)| name.clone()));
        files.map(|name| (self.dir.join(&name), etc.join(&name))).chain(shared).collect()
    }

    fn copied(&self) -> MutexGuard<'_, Vec<(PathBuf, Option<Stamp>)>> {
        // Whatever was copied before a panic is noted.
        self.copied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            n_bytes: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Of a directory of this machine, which it may not have.
fn files_of(dir: &'static str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(Path::new(ETC).join(dir)).into_iter().flatten().flatten();
    entries.map(move |entry| Path::new(dir).join(entry.file_name()))
}

/// Replaces a copy at once: whoever reads it has the old one or the new one.
fn copy(original: &Path, to: &Path, is_there: bool) -> io::Result<()> {
    if !is_there {
        return match fs::remove_file(to) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        };
    }
    fs::create_dir_all(to.parent().unwrap_or(to))?;
    let new = to.with_extension("new");
    fs::copy(original, &new)?;
    fs::rename(new, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a copy follows its original, also when that comes and goes, and whoever reads never finds
    /// half of it.
    #[test]
    fn a_copy_is_as_its_original() {
        let dir = tempfile::tempdir().unwrap();
        let etc = Etc::write(dir.path()).unwrap();
        let copy = dir.path().join("etc/ld.so.cache");
        let original = Path::new("/etc/ld.so.cache");
        let is_same = || fs::read(&copy).ok() == fs::read(original).ok();
        assert!(is_same());
        let before = copy.metadata().ok().map(|copy| copy.ino());
        etc.refresh().unwrap();
        assert_eq!(copy.metadata().ok().map(|copy| copy.ino()), before, "nothing has changed");
        // As if the original had been another one.
        for (_, stamp) in etc.copied().iter_mut() {
            *stamp = Some(Stamp { inode: 0, n_bytes: 0, modified: (0, 0) });
        }
        fs::write(&copy, "of another one").unwrap();
        etc.refresh().unwrap();
        assert!(is_same());
        let left = walk(&dir.path().join("etc"));
        assert!(left.iter().all(|name| !name.ends_with(".new")), "{left:?}");
    }

    /// Rule: what an earlier run has left there is not in a box.
    #[test]
    fn nothing_of_an_earlier_run_is_left() {
        let dir = tempfile::tempdir().unwrap();
        Etc::write(dir.path()).unwrap();
        fs::write(dir.path().join("etc/old"), "old").unwrap();
        Etc::write(dir.path()).unwrap();
        assert!(!dir.path().join("etc/old").exists());
        assert!(dir.path().join("etc/passwd").exists());
    }

    fn walk(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
        let below = |path: PathBuf| match path.is_dir() {
            true => walk(&path),
            false => vec![path.display().to_string()],
        };
        entries.flat_map(below).collect()
    }
}
