//! Files and directories that only their owner can access, including those that an earlier build
//! created with wider permissions.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};

use camino::Utf8Path;

/// A directory that only its owner can enter.
const DIR: u32 = 0o700;
/// A file that only its owner can read.
const FILE: u32 = 0o600;

/// Returns the options for opening a file, created if it does not exist.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(FILE);
    options
}

/// Creates a directory, or makes an existing one private.
pub(crate) fn dir(path: &Utf8Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR).create(path)?;
    tighten(path, DIR)
}

/// Makes a file private, if it exists.
pub(crate) fn file(path: &Utf8Path) -> io::Result<()> {
    match tighten(path, FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Removes permissions beyond `most`; fewer stay as they are.
fn tighten(path: &Utf8Path, most: u32) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    if mode & !most == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & most))
}
