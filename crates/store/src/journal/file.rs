//! The file of one session.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};

use super::marks::Marks;
use super::{EVENT_BYTES_MAX, KeptRange};
use crate::frames::{self, HEAD_BYTES};

/// An open file, with what is needed to append to it and to find an event.
#[derive(Debug)]
pub(super) struct SessionFile {
    kept: KeptRange,
    size: u64,
    marks: Marks,
}

/// A part of a file that is being read. The file may grow or be replaced in the meantime.
#[derive(Debug)]
pub(super) struct Part {
    reader: BufReader<File>,
    /// The index of the next event.
    next: u64,
    from: u64,
    end: u64,
}

impl SessionFile {
    /// Scans a file, creating it if needed, and cuts off an incomplete tail left by a crash.
    pub(super) fn open(path: &Utf8Path) -> io::Result<Self> {
        let mut file = to_append().create(true).open(path)?;
        let data = frames::cut_torn_tail(&file, path)?;
        let (payloads, _) = frames::split(&data);
        let Some((head, events)) = payloads.split_first() else {
            return Self::begin(&mut file, 0);
        };
        let first = <[u8; 8]>::try_from(*head).map(u64::from_le_bytes).map_err(|_| {
            io::Error::new(io::ErrorKind::InvalidData, "the file does not start with an index")
        })?;
        let mut known = Self {
            kept: KeptRange { first, next: first },
            size: frame_bytes(head),
            marks: Marks::default(),
        };
        events.iter().for_each(|event| known.add(event));
        Ok(known)
    }

    /// Starts an empty file with the index of its first event.
    fn begin(file: &mut File, first: u64) -> io::Result<Self> {
        let mut framed = Vec::new();
        frames::encode(&first.to_le_bytes(), &mut framed);
        file.write_all(&framed)?;
        let (kept, size) = (KeptRange { first, next: first }, framed.len() as u64);
        Ok(Self { kept, size, marks: Marks::default() })
    }

    pub(super) const fn kept(&self) -> KeptRange {
        self.kept
    }

    pub(super) const fn size(&self) -> u64 {
        self.size
    }

    /// Appends events with one system call, and returns the index of the first.
    pub(super) fn append(&mut self, path: &Utf8Path, events: &[Bytes]) -> io::Result<u64> {
        let index = self.kept.next;
        let mut framed = Vec::with_capacity(events.iter().map(|e| e.len() + HEAD_BYTES).sum());
        events.iter().for_each(|event| frames::encode(event, &mut framed));
        to_append().open(path)?.write_all(&framed)?;
        events.iter().for_each(|event| self.add(event));
        Ok(index)
    }

    /// Replaces the file atomically by one without the older half of its bytes.
    pub(super) fn halve(self, path: &Utf8Path) -> io::Result<Self> {
        let data = fs::read(path)?;
        let (payloads, _) = frames::split(&data);
        let events = payloads.get(1..).unwrap_or_default();
        let mut n_kept = 0;
        let mut bytes = 0;
        for event in events.iter().rev() {
            bytes += frame_bytes(event);
            if n_kept > 0 && bytes > self.size / 2 {
                break;
            }
            n_kept += 1;
        }
        let (gone, kept) = events.split_at(events.len() - n_kept);
        let aside = aside(path);
        remove_if_there(&aside)?;
        let mut file = to_append().create_new(true).open(&aside)?;
        let mut shorter = Self::begin(&mut file, self.kept.first + gone.len() as u64)?;
        let mut framed = Vec::new();
        kept.iter().for_each(|event| frames::encode(event, &mut framed));
        file.write_all(&framed)?;
        kept.iter().for_each(|event| shorter.add(event));
        // Otherwise a crash of the machine could leave the name of one file with the content of
        // neither.
        file.sync_all()?;
        fs::rename(&aside, path)?;
        Ok(shorter)
    }

    /// Returns the part of the file from an event on.
    pub(super) fn part(&self, path: &Utf8Path, from_index: u64) -> io::Result<Part> {
        let from = from_index.max(self.kept.first);
        let (nth, offset) = self.marks.before(from - self.kept.first).unwrap_or_default();
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset))?;
        let next = self.kept.first + nth;
        Ok(Part { reader: BufReader::new(file), next, from, end: self.kept.next })
    }

    fn add(&mut self, event: &[u8]) {
        self.marks.add(self.kept.next - self.kept.first, self.size);
        self.kept.next += 1;
        self.size += frame_bytes(event);
    }
}

impl Part {
    /// Returns the events: at most `max`, and no more than one once there are `bytes_max`.
    pub(super) fn events(&mut self, max: usize, bytes_max: usize) -> io::Result<Vec<(u64, Bytes)>> {
        let mut events = Vec::new();
        let mut bytes = 0;
        while self.next < self.end && events.len() < max && bytes < bytes_max {
            let event = frames::read(&mut self.reader, EVENT_BYTES_MAX)?;
            if self.next >= self.from {
                bytes += event.len();
                events.push((self.next, event.into()));
            }
            self.next += 1;
        }
        Ok(events)
    }
}

/// Removes a file, and any temporary file that a crash left beside it.
pub(super) fn remove(path: &Utf8Path) -> io::Result<()> {
    remove_if_there(&aside(path))?;
    remove_if_there(path)
}

fn remove_if_there(path: &Utf8Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// Returns the path of a file's temporary successor.
fn aside(path: &Utf8Path) -> Utf8PathBuf {
    path.with_extension("new")
}

fn to_append() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.append(true).mode(0o600);
    options
}

const fn frame_bytes(payload: &[u8]) -> u64 {
    (payload.len() + HEAD_BYTES) as u64
}
