//! The events of sessions on disk: one append-only file for each session, in `sessions/` of the
//! data directory. The writer decides what events mean; here they are bytes with an index.
//!
//! An event is not synced: it survives any end of the process, but the last ones may be lost when
//! the machine itself goes down. A file starts with the index of its first event and keeps the
//! newest events: when it grows too long, the older half is removed.

mod file;
mod marks;

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::SessionId;
use ringback_sync::lock;

use file::SessionFile;

/// The maximum size of an event: a message with its data, not a file.
pub const EVENT_BYTES_MAX: usize = 1 << 20;

/// The placeholder for an event that could not be written: nil, in MsgPack.
const MISSING: &[u8] = &[0xc0];
/// The maximum number of placeholders written together: a disk that was full for longer leaves a
/// gap.
const MISSING_MAX: usize = 100_000;

/// The maximum number of bytes of one read, unless a single event is larger; the rest needs another
/// read.
const READ_BYTES_MAX: usize = 8 << 20;

/// Why the journal cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// An event that is empty or too large. None of its list was written.
    #[error("an event of session {session} has {bytes} bytes; it must have 1 to {EVENT_BYTES_MAX}")]
    Size {
        /// The session.
        session: SessionId,
        /// The size of the event.
        bytes: usize,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} the journal at `{path}`")]
    File {
        /// The attempted action.
        action: &'static str,
        /// The path.
        path: Utf8PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl JournalError {
    fn on<'a>(
        action: &'static str,
        path: &'a Utf8Path,
    ) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self::File { action, path: path.to_owned(), source }
    }
}

/// Limits of a session's journal.
#[derive(Debug, Clone, Copy)]
pub struct JournalLimits {
    /// The size at which the older half of a file's events is removed.
    pub file_bytes_max: u64,
}

impl Default for JournalLimits {
    fn default() -> Self {
        // Shortening a file reads all of it, while its writer waits.
        Self { file_bytes_max: 16 << 20 }
    }
}

/// The indexes of the kept events of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptRange {
    /// The index of the oldest; the same as `next` when no events are kept.
    pub first: u64,
    /// The index of the next event.
    pub next: u64,
}

/// A session's file, once it has been scanned.
type Slot = Option<SessionFile>;

/// The events of all sessions of a data directory. Its methods block.
#[derive(Debug)]
pub struct Journal {
    dir: Utf8PathBuf,
    limits: JournalLimits,
    /// The sessions that were used. Each file is scanned once.
    files: Mutex<HashMap<SessionId, Arc<Mutex<Slot>>>>,
}

impl Journal {
    /// Opens the journal below `data_dir`, creating it if needed. The caller must hold the data
    /// directory's [`Store`](crate::Store).
    ///
    /// # Errors
    /// When its directory cannot be created.
    pub fn open(data_dir: &Utf8Path) -> Result<Self, JournalError> {
        Self::open_with(data_dir, JournalLimits::default())
    }

    /// Like [`Journal::open`], with other limits.
    ///
    /// # Errors
    /// When its directory cannot be created.
    pub fn open_with(data_dir: &Utf8Path, limits: JournalLimits) -> Result<Self, JournalError> {
        let dir = data_dir.join("sessions");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(JournalError::on("create", &dir))?;
        Ok(Self { dir, limits, files: Mutex::default() })
    }

    /// Appends events in order, and returns the index of the first.
    ///
    /// # Errors
    /// When an event has an invalid size, or the file cannot be written; then none of them is kept.
    pub fn append(&self, session: SessionId, events: &[Bytes]) -> Result<u64, JournalError> {
        let misfit = |event: &&Bytes| !(1..=EVENT_BYTES_MAX).contains(&event.len());
        if let Some(event) = events.iter().find(misfit) {
            return Err(JournalError::Size { session, bytes: event.len() });
        }
        self.append_from(session, None, events)
    }

    /// Appends an event with a given index. If earlier events are missing because they could not be
    /// written, empty ones take their place, so that every index stays the same.
    ///
    /// # Errors
    /// When the event has an invalid size, or the file cannot be written; then it is not kept.
    pub fn append_at(
        &self,
        session: SessionId,
        index: u64,
        event: Bytes,
    ) -> Result<(), JournalError> {
        if !(1..=EVENT_BYTES_MAX).contains(&event.len()) {
            return Err(JournalError::Size { session, bytes: event.len() });
        }
        self.append_from(session, Some(index), &[event]).map(drop)
    }

    fn append_from(
        &self,
        session: SessionId,
        index: Option<u64>,
        events: &[Bytes],
    ) -> Result<u64, JournalError> {
        let path = self.path(session);
        self.locked(session, |slot| {
            let mut file = match slot.take() {
                Some(file) => file,
                None => SessionFile::open(&path).map_err(JournalError::on("open", &path))?,
            };
            let n_missing = index.map_or(0, |index| index.saturating_sub(file.kept().next));
            if n_missing > 0 {
                let n_missing = usize::try_from(n_missing).unwrap_or(usize::MAX);
                let missing = vec![Bytes::from_static(MISSING); n_missing.min(MISSING_MAX)];
                file.append(&path, &missing).map_err(JournalError::on("write", &path))?;
            }
            // After a failure the file may end in an incomplete frame: the slot stays empty, and
            // the next user opens the file again, which repairs it.
            let index = file.append(&path, events).map_err(JournalError::on("write", &path))?;
            if file.size() > self.limits.file_bytes_max {
                file = file.halve(&path).map_err(JournalError::on("shorten", &path))?;
            }
            *slot = Some(file);
            Ok(index)
        })
    }

    /// Returns the events from an index on, oldest first: at most `max`, and fewer if they are
    /// large. If the first are no longer kept, it starts with the oldest that is.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(
        &self,
        session: SessionId,
        from_index: u64,
        max: usize,
    ) -> Result<Vec<(u64, Bytes)>, JournalError> {
        let path = self.path(session);
        let Some(part) = self.with(session, |file| file.part(&path, from_index))? else {
            return Ok(Vec::new());
        };
        let mut reader = part.map_err(JournalError::on("read", &path))?;
        reader.events(max, READ_BYTES_MAX).map_err(JournalError::on("read", &path))
    }

    /// Returns the range of kept events; empty for a session without events.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn kept(&self, session: SessionId) -> Result<Option<KeptRange>, JournalError> {
        self.with(session, |file| file.kept())
    }

    /// Returns the index of a session's last event, if it has any.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn last_index(&self, session: SessionId) -> Result<Option<u64>, JournalError> {
        Ok(self.kept(session)?.and_then(|kept| kept.next.checked_sub(1)))
    }

    /// Drops a session's events.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn remove(&self, session: SessionId) -> Result<(), JournalError> {
        let path = self.path(session);
        self.locked(session, |slot| {
            *slot = None;
            let removed = file::remove(&path).map_err(JournalError::on("remove", &path));
            // Only now: the next user gets another slot and may create the file again.
            lock(&self.files).remove(&session);
            removed
        })
    }

    /// Uses a session's file, if it exists.
    fn with<T>(
        &self,
        session: SessionId,
        look: impl FnOnce(&SessionFile) -> T,
    ) -> Result<Option<T>, JournalError> {
        let path = self.path(session);
        // Requests for sessions that never existed must not fill the table.
        if !path.exists() {
            return Ok(None);
        }
        self.locked(session, |slot| {
            if slot.is_none() {
                // It may have been removed while this waited.
                if !path.exists() {
                    return Ok(None);
                }
                *slot = Some(SessionFile::open(&path).map_err(JournalError::on("open", &path))?);
            }
            Ok(slot.as_ref().map(look))
        })
    }

    /// Works on a session's file with exclusive access.
    fn locked<T>(
        &self,
        session: SessionId,
        work: impl FnOnce(&mut Slot) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        loop {
            let slot = Arc::clone(lock(&self.files).entry(session).or_default());
            let mut file = lock(&slot);
            // A user that waited while the session was removed holds a slot that is no longer in
            // the table.
            if lock(&self.files).get(&session).is_some_and(|known| Arc::ptr_eq(known, &slot)) {
                return work(&mut file);
            }
        }
    }

    fn path(&self, session: SessionId) -> Utf8PathBuf {
        self.dir.join(format!("{session}.log"))
    }
}
