//! Files and directories for their owner alone, also those that an earlier build made otherwise.

use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};

use camino::Utf8Path;

/// A directory that nobody else enters.
const DIR: u32 = 0o700;
/// A file that nobody else reads.
const FILE: u32 = 0o600;

/// How a file is opened that is made if it is not there.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).mode(FILE);
    options
}

/// Makes a directory, or makes the one that is there private.
pub(crate) fn dir(path: &Utf8Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(DIR).create(path)?;
    tighten(path, DIR)
}

/// Makes a file private, if it is there.
pub(crate) fn file(path: &Utf8Path) -> io::Result<()> {
    match tighten(path, FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Takes away what is more than `most`; what is less stays.
fn tighten(path: &Utf8Path, most: u32) -> io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode() & 0o7777;
    if mode & !most == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & most))
}
