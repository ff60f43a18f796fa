//! Segments: files of framed lines. A frame is the length of its payload (4 bytes, little-endian),
//! the first 8 bytes of the payload's BLAKE3 hash, and the payload, a MsgPack map.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};

use camino::{Utf8Path, Utf8PathBuf};

use super::AuditLimits;
use super::entry::Line;

const LENGTH_BYTES: usize = 4;
const CHECK_BYTES: usize = 8;

/// Why the audit cannot be opened or read.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} the audit at `{path}`")]
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

/// The segments that are written to: the newest one is open.
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
        fs::create_dir_all(dir).map_err(AuditError::on("create", dir))?;
        let number = numbers(dir)?.last().copied().unwrap_or(1);
        let path = path(dir, number);
        let opened = OpenOptions::new().create(true).append(true).open(&path);
        let file = opened.map_err(AuditError::on("open", &path))?;
        let size = cut_torn_tail(&file, &path).map_err(AuditError::on("repair", &path))?;
        sync_dir(dir).map_err(AuditError::on("sync", dir))?;
        Ok(Self { dir: dir.to_owned(), limits, number, file, size })
    }

    /// Appends whole frames.
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

    /// Begins the next segment and removes those that are too old.
    pub(super) fn rotate(&mut self) -> io::Result<()> {
        let number = self.number + 1;
        let path = path(&self.dir, number);
        self.file = OpenOptions::new().create_new(true).append(true).open(path)?;
        self.number = number;
        self.size = 0;
        sync_dir(&self.dir)?;
        let kept = numbers(&self.dir).map_err(|error| error.source)?;
        let n_old = kept.len().saturating_sub(self.limits.segments_max.max(1));
        kept.iter().take(n_old).try_for_each(|old| fs::remove_file(self::path(&self.dir, *old)))
    }
}

/// Adds a line as a frame.
pub(super) fn encode(line: &Line, frames: &mut Vec<u8>) {
    let payload = rmp_serde::to_vec_named(line).expect("a line always has a MsgPack form");
    let length = u32::try_from(payload.len()).expect("a line is short");
    frames.extend_from_slice(&length.to_le_bytes());
    frames.extend_from_slice(&check(&payload));
    frames.extend_from_slice(&payload);
}

/// The payloads of the whole frames at the start of a segment, and the length they cover.
pub(super) fn frames(data: &[u8]) -> (Vec<&[u8]>, usize) {
    let mut payloads = Vec::new();
    let mut rest = data;
    while let Some((payload, after)) = frame(rest) {
        payloads.push(payload);
        rest = after;
    }
    (payloads, data.len() - rest.len())
}

/// The numbers of the segments, oldest first.
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

fn frame(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = data.split_first_chunk::<LENGTH_BYTES>()?;
    let (expected, rest) = rest.split_first_chunk::<CHECK_BYTES>()?;
    let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    // An empty payload is never written; zeros that a crash left would otherwise pass for one.
    (!payload.is_empty() && check(payload) == *expected).then_some((payload, rest))
}

fn check(payload: &[u8]) -> [u8; CHECK_BYTES] {
    let mut check = [0; CHECK_BYTES];
    check.copy_from_slice(&blake3::hash(payload).as_bytes()[..CHECK_BYTES]);
    check
}

fn cut_torn_tail(file: &File, path: &Utf8Path) -> io::Result<u64> {
    let data = fs::read(path)?;
    let (_, whole) = frames(&data);
    if whole < data.len() {
        tracing::warn!(%path, bytes = data.len() - whole, "cut a torn tail off the audit");
        file.set_len(whole as u64)?;
        file.sync_all()?;
    }
    Ok(whole as u64)
}

fn sync_dir(dir: &Utf8Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
