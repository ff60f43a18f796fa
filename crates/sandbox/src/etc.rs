//! The few files of `/etc` that a box has: those that programs need to run, none that says anything
//! about this machine or its users.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::OpenError;

/// The user in a box.
pub(crate) const UID: &str = "1000";

/// Files that every box has, with what is in them.
const WRITTEN: &[(&str, &str)] = &[
    ("passwd", "agent:x:1000:1000:agent:/home/agent:/bin/sh\n"),
    ("group", "agent:x:1000:\n"),
    ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ("resolv.conf", ""),
];

/// Of this machine, where it has them: how to find libraries, which certificates to trust, which of
/// several programs a name stands for, what time it is.
const SHARED: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/ca-certificates.conf",
    "/etc/pki/tls/certs",
    "/etc/pki/ca-trust/extracted",
];

/// Writes the files, and says what is mounted where.
pub(crate) fn write(state_dir: &Path) -> Result<Vec<(PathBuf, PathBuf)>, OpenError> {
    let dir = state_dir.join("etc");
    fs::create_dir_all(&dir).map_err(|source| OpenError::State { path: dir.clone(), source })?;
    let mut mounts = Vec::new();
    for (name, content) in WRITTEN {
        let path = dir.join(name);
        fs::write(&path, content)
            .map_err(|source| OpenError::State { path: path.clone(), source })?;
        mounts.push((path, Path::new("/etc").join(name)));
    }
    let shared = SHARED.iter().map(Path::new).filter(|path| path.exists());
    mounts.extend(shared.map(|path| (path.to_owned(), path.to_owned())));
    Ok(mounts)
}
