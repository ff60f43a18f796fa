//! What of a machine is private, whatever contains it.

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};

use crate::mounts;

/// Files and directories of a home that hold credentials or settings.
const OF_HOME: &[&str] = &[
    ".aws",
    ".azure",
    ".config",
    ".docker",
    ".gnupg",
    ".kube",
    ".mozilla",
    ".netrc",
    ".password-store",
    ".pki",
    ".ssh",
];
/// Names of files and directories with credentials, wherever they are.
const CREDENTIALS: &[&str] = &[
    ".aws",
    ".azure",
    ".config",
    ".credentials",
    ".docker",
    ".dockercfg",
    ".env",
    ".git",
    ".git-credentials",
    ".gnupg",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".ssh",
    ".yarnrc",
    ".yarnrc.yml",
    "_netrc",
    "auth.json",
    "credentials",
    "credentials.json",
    "credentials.toml",
    "gradle.properties",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "jmxremote.password",
    "pip.conf",
    "settings.xml",
];
/// How deep credentials are looked for: deeper are the files that came with a toolchain.
const DEPTH_MAX: usize = 3;
/// Entries that are looked at below one directory.
const ENTRIES_MAX: usize = 5000;

/// What no sandbox may see.
#[derive(Debug)]
pub(super) struct Privacy {
    /// Each as it is named, and without links.
    homes: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
}

impl Privacy {
    /// The homes are that of this process and that of the user, who may have named another.
    pub(super) fn new(homes: impl IntoIterator<Item = PathBuf>, hidden: &[PathBuf]) -> Self {
        let homes = homes.into_iter().filter(|home| home.is_absolute() && home != Path::new("/"));
        let homes = homes.flat_map(|home| [real(&home), home]).collect();
        Self { homes, hidden: hidden.to_vec() }
    }

    /// Returns whether a directory cannot be that of a toolchain: the home, or around it.
    pub(super) fn is_private_root(&self, root: &Path) -> bool {
        root == Path::new("/") || self.homes.iter().any(|home| home.starts_with(root))
    }

    /// Returns whether a path without links is private, or has something private in it.
    pub(super) fn is_private(&self, path: &Path) -> bool {
        let in_home = self.homes.iter().flat_map(|home| OF_HOME.iter().map(|name| home.join(name)));
        let touches = |private: PathBuf| path.starts_with(&private) || private.starts_with(path);
        self.is_private_root(path)
            || in_home.map(|private| real(&private)).any(touches)
            || mounts::hidden_in(path, &self.hidden).is_some()
    }

    /// Returns whether a file without links is private.
    pub(super) fn is_private_file(&self, path: &Path) -> bool {
        self.is_private(path) || path.file_name().is_some_and(is_credential)
    }
}

fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn is_credential(name: &std::ffi::OsStr) -> bool {
    CREDENTIALS.iter().any(|known| name == *known)
}

/// Returns the paths of credentials below a directory, relative to it. A link leads nowhere in a
/// sandbox, so it is left alone.
pub(super) fn credentials_in(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let (mut waiting, mut n_entries) = (VecDeque::from([(PathBuf::new(), 0)]), 0_usize);
    while let Some((below, depth)) = waiting.pop_front() {
        let Ok(entries) = fs::read_dir(dir.join(&below)) else { continue };
        for entry in entries.flatten() {
            n_entries += 1;
            if n_entries > ENTRIES_MAX {
                return found;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let path = below.join(entry.file_name());
            if is_credential(&entry.file_name()) && (kind.is_dir() || kind.is_file()) {
                found.push(path);
            } else if kind.is_dir() && depth + 1 < DEPTH_MAX {
                waiting.push_back((path, depth + 1));
            }
        }
    }
    found
}
