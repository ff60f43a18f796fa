//! The few files of `/etc` in a sandbox: those that programs need to run, and none that reveals
//! anything about this machine or its users.

use std::ffi::OsStr;
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
/// zone, the certificate configuration, what Maven starts with.
const COPIED: &[&str] = &[
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "alternatives",
    "localtime",
    "ssl/openssl.cnf",
    "ca-certificates.conf",
    "maven/m2.conf",
    "maven/logging",
];

/// Debian keeps settings of each Java here, without which it does not start.
const JAVA: (&str, &str) = ("java-", "-openjdk");
/// What is copied of them: no passwords of `management`.
const OF_JAVA: (&str, &[&str]) = ("security", &["cfg", "properties"]);

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
    let mut java: Vec<_> = entries(Path::new("/etc"))
        .filter(|path| {
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            name.starts_with(JAVA.0) && name.ends_with(JAVA.1)
        })
        .flat_map(|dir| entries(&dir).filter(|path| is_of_java(path)))
        .collect();
    java.sort();
    COPIED.iter().map(|name| Path::new("/etc").join(name)).chain(java)
}

fn is_of_java(path: &Path) -> bool {
    let kind = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    path.ends_with(OF_JAVA.0) || OF_JAVA.1.contains(&kind)
}

fn entries(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path())
}

/// Returns the paths of this machine that are mounted, where they exist.
pub(crate) fn mounted() -> impl Iterator<Item = PathBuf> {
    MOUNTED.iter().map(|name| Path::new("/etc").join(name)).filter(|path| path.is_dir())
}
