//! The log file of a daemon in the background, which stays small.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use ringback_sync::lock;
use tracing_subscriber::fmt::MakeWriter;

/// A log file of a limited size: a full one is renamed, and replaces the one before it.
#[derive(Debug, Clone)]
pub struct LogFile(Arc<Mutex<OpenLog>>);

#[derive(Debug)]
struct OpenLog {
    path: PathBuf,
    file: File,
    length: u64,
    bytes_max: u64,
}

impl LogFile {
    /// Opens a log to append to, readable by its owner alone.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: PathBuf, bytes_max: u64) -> io::Result<Self> {
        let (file, length) = open(&path)?;
        Ok(Self(Arc::new(Mutex::new(OpenLog { path, file, length, bytes_max }))))
    }
}

/// Returns the name of a log that was full.
fn full(path: &Path) -> PathBuf {
    path.with_extension("log.old")
}

fn open(path: &Path) -> io::Result<(File, u64)> {
    let file = File::options().create(true).append(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut log = lock(&self.0);
        let length = line.len() as u64;
        if log.length > 0 && log.length.saturating_add(length) > log.bytes_max {
            std::fs::rename(&log.path, full(&log.path))?;
            (log.file, log.length) = open(&log.path)?;
        }
        log.file.write_all(line)?;
        log.length += length;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogFile {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    /// Rule: the log has a limited size, keeps the newest lines, and is its owner's alone.
    #[test]
    fn a_full_log_replaces_the_one_before_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("daemon.log");
        std::fs::write(&path, "12345").unwrap();
        let mut log = LogFile::open(path.clone(), 10).unwrap();
        for line in ["6789\n", "abcd\n", "efgh\n", "ijkl\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(full(&path)).unwrap(), "abcd\nefgh\n");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "ijkl\n");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
