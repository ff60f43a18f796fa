//! The running daemon of this user, as other commands find it: its sockets in the runtime
//! directory, and a file beside them with its other addresses.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::config::Config;
use crate::daemon::DaemonAddresses;

/// The file with the addresses, in the runtime directory.
const ADDRESSES_FILE: &str = "daemon.json";
/// Locked by a command that starts a daemon, and by a daemon that ends because it is idle.
const LOCK_FILE: &str = "start.lock";
/// The log of a daemon in the background, in the data directory.
const LOG_FILE: &str = "daemon.log";

/// A running daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunningDaemon {
    /// Its process.
    pub(crate) pid: u32,
    /// Its HTTP listener, as a URL.
    pub(crate) http: String,
    /// Whether it runs in the background, and ends when it is idle.
    pub(crate) background: bool,
}

/// The file with a daemon's addresses; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct AddressesFile(PathBuf);

/// The right to start a daemon, or to end one: one process at a time has it.
#[derive(Debug)]
pub(crate) struct StartLock {
    /// Closing it releases the lock.
    _file: File,
}

impl RunningDaemon {
    /// Finds the daemon of this user. A file without one that answers is left from a crash.
    pub(crate) fn find(config: &Config) -> Option<Self> {
        let sockets = config.ipc_sockets()?;
        UnixStream::connect(sockets.hoot).ok()?;
        let text = std::fs::read_to_string(config.root.runtime_dir.join(ADDRESSES_FILE)).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Returns the address of its HTTP listener, unless that uses TLS.
    pub(crate) fn http_address(&self) -> Option<&str> {
        self.http.strip_prefix("http://")
    }
}

impl AddressesFile {
    /// Writes the file at once: readers see all of it or nothing.
    pub(crate) fn write(
        config: &Config,
        listening: &DaemonAddresses,
        background: bool,
    ) -> io::Result<Self> {
        let running =
            RunningDaemon { pid: listening.pid, http: listening.http.clone(), background };
        let dir = &config.root.runtime_dir;
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        serde_json::to_writer(&mut file, &running)?;
        file.flush()?;
        let path = dir.join(ADDRESSES_FILE);
        file.persist(&path)?;
        Ok(Self(path))
    }
}

impl Drop for AddressesFile {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.0) {
            tracing::warn!(%error, "cannot remove the file with the daemon's addresses");
        }
    }
}

impl StartLock {
    /// Takes the lock if no other process has it. The runtime directory must exist.
    pub(crate) fn try_take(config: &Config) -> io::Result<Option<Self>> {
        let path = config.root.runtime_dir.join(LOCK_FILE);
        let file = File::options().create(true).truncate(false).write(true).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self { _file: file })),
            Err(std::fs::TryLockError::WouldBlock) => Ok(None),
            Err(std::fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// Returns the log file of a daemon in the background.
pub(crate) fn log_file(config: &Config) -> PathBuf {
    config.root.data_dir.join(LOG_FILE)
}
