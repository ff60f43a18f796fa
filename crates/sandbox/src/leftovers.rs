//! Notes on what a sandbox has outside of itself, for the start after a crash.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cgroups;
use crate::error::OpenError;

/// The prefix of the names of our cgroups; a random part follows.
const PREFIX: &str = "ringback-";
/// How long leftovers of a killed daemon may take to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// The directories of notes: a file for each sandbox, with a line of text for each cgroup, and one
/// for the pre-started sandbox.
#[derive(Debug, Clone)]
pub(crate) struct Notes {
    state_dir: PathBuf,
    dir: PathBuf,
    next_dir: PathBuf,
}

/// Makes a directory and its parents, for this user alone.
pub(crate) fn private_dir(dir: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)
}

impl Notes {
    pub(crate) fn open(state_dir: &Path) -> Result<Self, OpenError> {
        let (dir, next_dir) = (state_dir.join("boxes"), state_dir.join("next"));
        for dir in [&state_dir.to_owned(), &dir, &next_dir] {
            private_dir(dir).map_err(|source| OpenError::State { path: dir.clone(), source })?;
        }
        Ok(Self { state_dir: state_dir.to_owned(), dir, next_dir })
    }

    /// Returns an unused name.
    pub(crate) fn new_name() -> String {
        format!("{PREFIX}{}", uuid::Uuid::new_v4().simple())
    }

    pub(crate) fn state_dir(&self) -> &Path {
        &self.state_dir
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Returns the path of the note of a pre-started sandbox.
    pub(crate) fn next_path(&self, name: &str) -> PathBuf {
        self.next_dir.join(name)
    }

    /// Writes the note of a pre-started sandbox, before anything of it is made.
    pub(crate) fn write_next(&self, name: &str, groups: &[PathBuf]) -> io::Result<()> {
        fs::write(self.next_path(name), lines(groups))
    }

    /// Marks a pre-started sandbox as used.
    pub(crate) fn has_come(&self, name: &str) -> io::Result<()> {
        fs::rename(self.next_path(name), self.path(name))
    }

    /// Ends and removes leftovers of an earlier run, and returns the number of sandboxes.
    pub(crate) fn sweep(&self) -> Result<usize, OpenError> {
        sweep_all(&self.next_dir)?;
        sweep_all(&self.dir)
    }
}

fn lines(groups: &[PathBuf]) -> String {
    groups.iter().map(|dir| format!("{}\n", dir.display())).collect()
}

fn sweep_all(dir: &Path) -> Result<usize, OpenError> {
    let failed = |source| OpenError::State { path: dir.to_owned(), source };
    let mut n_swept = 0;
    for entry in fs::read_dir(dir).map_err(failed)? {
        let note = entry.map_err(failed)?.path();
        if let Err(error) = sweep_one(&note) {
            tracing::warn!(note = %note.display(), %error, "cannot remove a sandbox of an earlier run");
        }
        n_swept += 1;
    }
    Ok(n_swept)
}

fn sweep_one(note: &Path) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    for dir in fs::read_to_string(note)?.lines().map(Path::new).filter(|dir| is_ours(dir)) {
        cgroups::remove(dir, until)?;
    }
    fs::remove_file(note)
}

/// Whatever a note contains, nothing else is removed.
fn is_ours(dir: &Path) -> bool {
    let name = dir.file_name().and_then(|name| name.to_str());
    dir.is_absolute() && name.is_some_and(|name| name.starts_with(PREFIX))
}
