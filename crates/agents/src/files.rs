//! Configuration files in an agent's home. An earlier agent may have changed the home: nothing is
//! written through a link.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::io::Errno;

/// A file for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// Its path, relative to the home.
    pub path: PathBuf,
    /// Its content. Never a secret: the file stays there.
    pub text: String,
}

/// A file that was not written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the agent's configuration `{path}` in its home")]
pub struct WriteFileError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

/// Writes files below a directory, and replaces existing ones.
///
/// # Errors
/// If a file cannot be written, for example because a link is on its path.
pub fn write_files(home: &Path, files: &[ConfigFile]) -> Result<(), WriteFileError> {
    for file in files {
        write_file(home, file)
            .map_err(|source| WriteFileError { path: file.path.clone(), source })?;
    }
    Ok(())
}

fn write_file(home: &Path, file: &ConfigFile) -> io::Result<()> {
    let directory = OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at: OwnedFd = openat(CWD, home, directory, Mode::empty())?;
    let mut names = names(&file.path)?;
    let last = names.pop().ok_or(io::ErrorKind::InvalidInput)?;
    for name in names {
        match mkdirat(&at, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        at = openat(&at, name, directory | OFlags::NOFOLLOW, Mode::empty())?;
    }
    match unlinkat(&at, last, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => {}
        Err(error) => return Err(error.into()),
    }
    let new = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let written = openat(&at, last, new, Mode::RUSR | Mode::WUSR)?;
    std::fs::File::from(written).write_all(file.text.as_bytes())
}

/// Returns the names of a path that only descends.
fn names(path: &Path) -> io::Result<Vec<&std::ffi::OsStr>> {
    let name = |component| match component {
        Component::Normal(name) => Ok(name),
        Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => {
            Err(io::ErrorKind::InvalidInput.into())
        }
    };
    path.components().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> [ConfigFile; 1] {
        [ConfigFile { path: path.into(), text: text.to_owned() }]
    }

    #[test]
    fn files_are_made_with_their_directories_and_overwritten() {
        let home = tempfile::tempdir().unwrap();
        for text in ["one", "two"] {
            write_files(home.path(), &file(".config/agent/x.json", text)).unwrap();
            let written = std::fs::read_to_string(home.path().join(".config/agent/x.json"));
            assert_eq!(written.unwrap(), text);
        }
    }

    /// Rule: a symlink in the home never leads a write of the daemon out of it.
    #[test]
    fn nothing_is_written_through_a_link() {
        let (home, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let victim = outside.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(outside.path(), home.path().join("dir")).unwrap();
        std::os::unix::fs::symlink(&victim, home.path().join("file")).unwrap();
        assert!(write_files(home.path(), &file("dir/new", "x")).is_err());
        assert!(!outside.path().join("new").exists());
        // The link itself is replaced.
        write_files(home.path(), &file("file", "x")).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "mine");
        for path in ["../out", "/tmp/out", ""] {
            assert!(write_files(home.path(), &file(path, "x")).is_err(), "{path}");
        }
    }
}
