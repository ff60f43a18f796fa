//! Segments: files of framed lines, each a MsgPack map.

use std::fs::{self, File};
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};

use super::AuditLimits;
use super::entry::Line;
use crate::frames::{self, sync_dir};
use crate::private;

/// Why the audit log cannot be opened or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the audit log at `{path}`")]
pub struct AuditError {
    action: &'static str,
    path: Utf8PathBuf,
    #[source]
    source: io::Error,
}

impl AuditError {
    pub(super) fn on<'a>(
        action: &'static str,
        path: &'a Utf8Path,
    ) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self { action, path: path.to_owned(), source }
    }
}

/// The segments to write to: the newest one is open.
#[derive(Debug)]
pub(super) struct Segments {
    dir: Utf8PathBuf,
    limits: AuditLimits,
    number: u64,
    file: File,
    size: u64,
}

impl Segments {
    pub(super) fn open(dir: &Utf8Path, limits: AuditLimits) -> Result<Self, AuditError> {
        private::dir(dir).map_err(AuditError::on("create", dir))?;
        let number = numbers(dir)?.last().copied().unwrap_or(1);
        let path = path(dir, number);
        let opened = private::options().append(true).open(&path);
        let file = opened.map_err(AuditError::on("open", &path))?;
        let whole = frames::cut_torn_tail(&file, &path);
        let size = whole.map_err(AuditError::on("repair", &path))?.len() as u64;
        sync_dir(dir).map_err(AuditError::on("sync", dir))?;
        Ok(Self { dir: dir.to_owned(), limits, number, file, size })
    }

    /// Appends complete frames.
    pub(super) fn append(&mut self, frames: &[u8]) -> io::Result<()> {
        self.file.write_all(frames)?;
        self.size += frames.len() as u64;
        Ok(())
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    pub(super) const fn is_full(&self) -> bool {
        self.size >= self.limits.segment_bytes_max
    }

    /// Starts the next segment and removes those that are too old.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        let number = self.number + 1;
        let path = path(&self.dir, number);
        self.file = private::options().create_new(true).append(true).open(path)?;
        self.number = number;
        self.size = 0;
        sync_dir(&self.dir)?;
        let kept = numbers(&self.dir).map_err(|error| error.source)?;
        let n_old = kept.len().saturating_sub(self.limits.segments_max.max(1));
        kept.iter().take(n_old).try_for_each(|old| fs::remove_file(self::path(&self.dir, *old)))
    }
}

/// Adds a line as a frame.
pub(super) fn encode(line: &Line, framed: &mut Vec<u8>) {
    let payload = rmp_serde::to_vec_named(line).expect("a line always has a MsgPack form");
    frames::encode(&payload, framed);
}

/// Returns the numbers of the segments, oldest first.
pub(super) fn numbers(dir: &Utf8Path) -> Result<Vec<u64>, AuditError> {
    let mut numbers = Vec::new();
    for entry in dir.read_dir_utf8().map_err(AuditError::on("list", dir))? {
        let entry = entry.map_err(AuditError::on("list", dir))?;
        let number: Option<u64> =
            entry.file_name().strip_suffix(".log").and_then(|name| name.parse().ok());
        numbers.extend(number);
    }
    numbers.sort_unstable();
    Ok(numbers)
}

pub(super) fn path(dir: &Utf8Path, number: u64) -> Utf8PathBuf {
    dir.join(format!("{number:08}.log"))
}
