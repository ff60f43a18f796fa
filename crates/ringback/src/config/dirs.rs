//! The two directories of the daemon: their default paths and permissions.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::{ConfigError, Environment, Root};

/// A Unix socket's address holds 108 bytes, the last of them zero.
pub(super) const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Only the owner: anyone who can enter the runtime directory is trusted, and the data directory
/// holds private data.
const PRIVATE: u32 = 0o700;

/// The `ipc://` twins of the HOOT01 sockets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpcSockets {
    /// Twin of `hoot.listen`.
    pub hoot: PathBuf,
    /// Twin of `hoot.iopub`.
    pub iopub: PathBuf,
}

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    /// It cannot be created or examined.
    #[error("cannot create the {what} directory `{}`", path.display())]
    Create {
        /// Which of the two.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// The system error.
        #[source]
        source: io::Error,
    },
    /// Other users can enter it.
    #[error(
        "the {what} directory `{path}` has mode {mode:03o}, so other users can enter it; run `chmod 700 \
         {path}`, or choose another with `{what}_dir`",
        path = path.display()
    )]
    LetsOthersIn {
        /// Which of the two.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// It belongs to another user.
    #[error(
        "the {what} directory `{}` belongs to user {owner}, not to the daemon's user; choose another \
         with `{what}_dir`",
        path.display()
    )]
    Foreign {
        /// Which of the two.
        what: &'static str,
        /// Its path.
        path: PathBuf,
        /// Its owner.
        owner: u32,
    },
}

impl IpcSockets {
    pub(super) fn in_dir(runtime_dir: &Path) -> Self {
        Self { hoot: runtime_dir.join("hoot.sock"), iopub: runtime_dir.join("iopub.sock") }
    }

    /// Returns the first path that is too long to bind.
    pub(super) fn too_long(&self) -> Option<&Path> {
        let mut paths = [self.iopub.as_path(), self.hoot.as_path()].into_iter();
        paths.find(|path| path.as_os_str().len() > SOCKET_PATH_BYTES_MAX)
    }
}

/// Fills in the default directories.
pub(super) fn resolve(root: &mut Root, environment: &Environment) -> Result<(), ConfigError> {
    if root.data_dir.as_os_str().is_empty() {
        let share = || Some(environment.absolute_dir("HOME")?.join(".local/share"));
        let data_home = environment.absolute_dir("XDG_DATA_HOME").or_else(share);
        root.data_dir = data_home.ok_or(ConfigError::NoHome)?.join("ringback");
    }
    if root.runtime_dir.as_os_str().is_empty() {
        root.runtime_dir = environment
            .absolute_dir("XDG_RUNTIME_DIR")
            .map_or_else(|| root.data_dir.join("run"), |runtime| runtime.join("ringback"));
    }
    Ok(())
}

/// Creates both directories with mode 0700, and refuses existing ones that other users can enter.
pub(super) fn create(root: &Root) -> Result<(), DirError> {
    create_dir("data", &root.data_dir)?;
    create_dir("runtime", &root.runtime_dir)
}

fn create_dir(what: &'static str, path: &Path) -> Result<(), DirError> {
    let failed = |source| DirError::Create { what, path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(PRIVATE).create(path).map_err(failed)?;
    let metadata = fs::metadata(path).map_err(failed)?;
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o777);
    if owner != rustix::process::geteuid().as_raw() {
        return Err(DirError::Foreign { what, path: path.to_owned(), owner });
    }
    if mode & !PRIVATE != 0 {
        return Err(DirError::LetsOthersIn { what, path: path.to_owned(), mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    use super::{DirError, create};
    use crate::config::Root;

    fn root(dir: &Path) -> Root {
        Root { data_dir: dir.join("a/data"), runtime_dir: dir.join("a/data/run") }
    }

    #[test]
    fn directories_are_made_for_their_owner_alone() {
        let dir = tempfile::tempdir().unwrap();
        let root = root(dir.path());
        create(&root).unwrap();
        create(&root).unwrap();
        for path in [&root.data_dir, &root.runtime_dir] {
            assert_eq!(fs::metadata(path).unwrap().mode() & 0o777, 0o700);
        }
    }

    /// Rule: anyone who reaches the sockets is trusted, so only the owner may reach them.
    #[test]
    fn an_existing_directory_that_lets_others_in_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let root = root(dir.path());
        create(&root).unwrap();
        fs::set_permissions(&root.runtime_dir, fs::Permissions::from_mode(0o750)).unwrap();
        let error = create(&root).unwrap_err();
        assert!(matches!(error, DirError::LetsOthersIn { what: "runtime", mode: 0o750, .. }));
        assert!(error.to_string().contains("has mode 750"), "{error}");
        for mode in [0o777, 0o755, 0o750, 0o710, 0o701] {
            fs::set_permissions(&root.data_dir, fs::Permissions::from_mode(mode)).unwrap();
            let error = create(&root).unwrap_err();
            assert!(matches!(error, DirError::LetsOthersIn { what: "data", .. }), "{mode:o}");
            let advice = format!("chmod 700 {}", root.data_dir.display());
            assert!(error.to_string().contains(&advice), "{error}");
        }
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "a file").unwrap();
        let error = create(&root(dir.path())).unwrap_err();
        assert!(error.to_string().contains("a/data"), "{error}");
    }
}
