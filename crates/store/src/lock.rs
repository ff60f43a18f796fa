//! The lock on a data directory. The kernel gives it back when the process ends, however it ends.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::DirBuilderExt;

use camino::Utf8Path;

use crate::error::OpenStoreError;

/// What is read of a lock file that somebody else wrote: a process id is shorter.
const PID_CHARS_MAX: u64 = 32;

/// Held as long as the directory is in use.
#[derive(Debug)]
pub(crate) struct DataLock(#[expect(dead_code, reason = "closing it gives the lock back")] File);

impl DataLock {
    /// Makes the directory, for its user alone, and takes it.
    pub(crate) fn take(dir: &Utf8Path) -> Result<Self, OpenStoreError> {
        let failed = |action, path: &Utf8Path| {
            let path = path.to_owned();
            move |source| OpenStoreError::File { action, path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(failed("create", dir))?;
        let path = dir.join("lock");
        let mut file = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(failed("open", &path))?;
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
        Ok(Self(file))
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
