//! The directory that a session's workspace was copied from, recorded per user on this machine.

use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use ringback_proto::ids::SessionId;

use crate::config::Environment;
use crate::failure::Failure;

/// Maximum number of recorded sessions; the oldest are forgotten.
const KEPT_MAX: usize = 500;

/// Separates a path from what follows it: no path contains it.
const END_OF_PATH: u8 = 0;

/// Where a workspace was copied from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::commands) struct Origin {
    /// The directory.
    pub(in crate::commands) dir: PathBuf,
    /// The commit of its repository.
    pub(in crate::commands) base: Option<String>,
}

/// The records of sessions' directories.
#[derive(Debug)]
pub(in crate::commands) struct Origins(Option<PathBuf>);

impl Origins {
    pub(in crate::commands) fn of(environment: &Environment) -> Self {
        let state = || Some(environment.absolute_dir("HOME")?.join(".local/state"));
        let home = environment.absolute_dir("XDG_STATE_HOME").or_else(state);
        Self(home.map(|home| home.join("ringback/runs")))
    }

    /// Records the directory of a session, if there is a state directory.
    pub(in crate::commands) fn remember(
        &self,
        session: SessionId,
        dir: &Path,
        base: Option<&str>,
    ) -> Result<(), Failure> {
        let Some(home) = &self.0 else { return Ok(()) };
        let path = home.join(session.to_string());
        write(home, &path, dir, base).map_err(|source| Failure::File {
            action: "write",
            path,
            source,
        })
    }

    /// Returns the directory of a session, and the commit that its copy was made at.
    pub(in crate::commands) fn find(&self, session: SessionId) -> Option<Origin> {
        let mut bytes = fs::read(self.0.as_ref()?.join(session.to_string())).ok()?;
        let end = bytes.iter().position(|byte| *byte == END_OF_PATH);
        let base = end.map(|end| bytes.split_off(end));
        let base = base.and_then(|base| String::from_utf8(base.get(1..)?.to_vec()).ok());
        Some(Origin { dir: std::ffi::OsString::from_vec(bytes).into(), base })
    }
}

fn write(home: &Path, path: &Path, dir: &Path, base: Option<&str>) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(home)?;
    let mut known = Vec::new();
    for entry in fs::read_dir(home)? {
        let entry = entry?;
        known.push((entry.metadata()?.modified()?, entry.path()));
    }
    known.sort_unstable();
    for (_, path) in known.iter().take((known.len() + 1).saturating_sub(KEPT_MAX)) {
        fs::remove_file(path)?;
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut record = dir.as_os_str().as_bytes().to_vec();
    if let Some(base) = base {
        record.push(END_OF_PATH);
        record.extend_from_slice(base.as_bytes());
    }
    io::Write::write_all(&mut file, &record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_kept_and_an_unknown_one_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        let environment: Environment =
            [("XDG_STATE_HOME", dir.path().to_str().unwrap())].into_iter().collect();
        let origins = Origins::of(&environment);
        let session = |number: u64| {
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&number.to_le_bytes());
            SessionId::from_random(bytes)
        };
        for number in 0..=KEPT_MAX as u64 {
            let base = (number % 2 == 0).then_some("abc");
            origins.remember(session(number), Path::new("/some/where"), base).unwrap();
        }
        for (number, base) in [(KEPT_MAX as u64, Some("abc")), (KEPT_MAX as u64 - 1, None)] {
            let base = base.map(str::to_owned);
            let origin = Origin { dir: "/some/where".into(), base };
            assert_eq!(origins.find(session(number)), Some(origin));
        }
        assert_eq!(origins.find(session(9_999)), None);
        let n_kept = fs::read_dir(dir.path().join("ringback/runs")).unwrap().count();
        assert_eq!(n_kept, KEPT_MAX);
    }
}
