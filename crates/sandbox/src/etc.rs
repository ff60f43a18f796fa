//! The few files of `/etc` in a sandbox: those that programs need to run, and none that reveals
//! anything about this machine or its users.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The user in a sandbox.
pub(crate) const UID: &str = "1000";

/// Files that every sandbox has, with their content.
const WRITTEN: &[(&str, &str)] = &[
    ("passwd", "agent:x:1000:1000:agent:/home/agent:/bin/sh\n"),
    ("group", "agent:x:1000:\n"),
    ("nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
    ("hosts", "127.0.0.1 localhost\n::1 localhost\n"),
    ("resolv.conf", ""),
];

/// Copied from this machine, where they exist: the library search path, alternatives, the time
/// zone, the certificate configuration.
const COPIED: &[&str] = &[
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "ssl/openssl.cnf",
    "ca-certificates.conf",
];

/// Trusted certificates: too many files to copy, so they are mounted.
const MOUNTED: &[&str] = &["ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted"];

/// Files with this extension are left out: half of the alternatives are manual pages.
pub(crate) const LEFT_OUT: &str = "gz";

/// Writes the files that reveal nothing about this machine.
pub(crate) fn write(dir: &Path) -> io::Result<()> {
    fs::create_dir_all(dir)?;
    WRITTEN.iter().try_for_each(|(name, content)| fs::write(dir.join(name), content))
}

/// Returns the paths of this machine that are copied, where they exist.
pub(crate) fn copied() -> impl Iterator<Item = PathBuf> {
    COPIED.iter().map(|name| Path::new("/etc").join(name))
}

/// Returns the paths of this machine that are mounted, where they exist.
pub(crate) fn mounted() -> impl Iterator<Item = PathBuf> {
    MOUNTED.iter().map(|name| Path::new("/etc").join(name)).filter(|path| path.is_dir())
}
