//! The few files of `/etc` that a box has: those that programs need to run, none that says anything
//! about this machine or its users.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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

/// Of this machine, where it has them: how to find libraries, which of several programs a name stands
/// for, what time it is, how certificates are used. These are copied.
const COPIED: &[&str] = &[
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "ssl/openssl.cnf",
    "ca-certificates.conf",
];

/// Which certificates to trust: so many files that they are mounted instead.
const MOUNTED: &[&str] = &["ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted"];

/// What else of a directory is left out: half of the alternatives are pages of manuals.
pub(crate) const LEFT_OUT: &str = "gz";

/// Writes the files that say nothing about this machine.
pub(crate) fn write(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    WRITTEN.iter().try_for_each(|(name, content)| fs::write(dir.join(name), content))
}

/// What of this machine's own is copied, where it is there.
pub(crate) fn copied() -> impl Iterator<Item = PathBuf> {
    COPIED.iter().map(|name| Path::new("/etc").join(name))
}

/// What of this machine's own is mounted, as far as it is there.
pub(crate) fn mounted() -> impl Iterator<Item = PathBuf> {
    MOUNTED.iter().map(|name| Path::new("/etc").join(name)).filter(|path| path.is_dir())
}
