//! The lock on a data directory. The kernel releases it when the process ends in any way.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};

use camino::{Utf8Path, Utf8PathBuf};

use crate::error::OpenStoreError;
use crate::private;

/// The maximum number of bytes read from a foreign lock file: a process id is shorter.
const PID_CHARS_MAX: u64 = 32;

/// Held for as long as the directory is in use.
#[derive(Debug)]
pub(crate) struct DataLock {
    path: Utf8PathBuf,
    /// Closing it releases the lock.
    file: File,
}

impl DataLock {
    /// Creates the directory, private to its user, and locks it.
    pub(crate) fn take(dir: &Utf8Path) -> Result<Self, OpenStoreError> {
        let failed = |action, path: &Utf8Path| {
            let path = path.to_owned();
            move |source| OpenStoreError::File { action, path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("create", dir))?;
        let path = dir.join("lock");
        let opened = private::options().read(true).write(true).truncate(false).open(&path);
        let mut file = opened.map_err(failed("open", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = holder(&mut file);
                return Err(OpenStoreError::Locked { path: dir.to_owned(), holder });
            }
            Err(TryLockError::Error(error)) => return Err(failed("lock", &path)(error)),
        }
        let written = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        written.map_err(failed("write", &path))?;
        private::file(&path).map_err(failed("protect", &path))?;
        Ok(Self { path, file })
    }

    /// Returns the directory.
    pub(crate) fn dir(&self) -> &Utf8Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Returns whether the directory is still where it was locked. One that was deleted, moved or
    /// replaced keeps nothing that is written from then on, although writes succeed.
    pub(crate) fn is_in_place(&self) -> bool {
        let (Ok(held), Ok(there)) = (self.file.metadata(), fs::metadata(&self.path)) else {
            return false;
        };
        (held.dev(), held.ino()) == (there.dev(), there.ino())
    }
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let read = file.take(PID_CHARS_MAX).read_to_string(&mut text);
    match (read, text.trim().parse::<u32>()) {
        (Ok(_), Ok(pid)) => format!("process {pid}"),
        _ => "another process".to_owned(),
    }
}
