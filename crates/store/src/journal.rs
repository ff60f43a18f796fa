//! What happens in sessions, on disk: one append-only file for each session, in `sessions/` of the
//! data directory. The events' meaning is their writer's; here they are bytes with an index.
//!
//! An event is not synced: it survives the end of the process, however it ends, but the last ones
//! may be lost when the machine itself goes down. A file begins with the index of its first event
//! and keeps the newest: when it grows too long, its older half goes.

mod file;
mod marks;

use std::collections::HashMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::SessionId;

use file::SessionFile;

/// The most one event may have: a message with its data, not a file.
pub const EVENT_BYTES_MAX: usize = 1 << 20;

/// What takes the place of an event that could not be written: nothing, in MsgPack.
const MISSING: &[u8] = &[0xc0];
/// As many of them as are written at once: a disk that was full for longer leaves a gap.
const MISSING_MAX: usize = 100_000;

/// The most one read gives, unless a single event is larger; the rest is another read.
const READ_BYTES_MAX: usize = 8 << 20;

/// Why the journal cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// An event that is empty or too large. Nothing of its list was written.
    #[error("an event of session {session} has {bytes} bytes, 1 to {EVENT_BYTES_MAX} can be kept")]
    Size {
        /// Whose event.
        session: SessionId,
        /// How large it is.
        bytes: usize,
    },
    /// A file cannot be read or written.
    #[error("cannot {action} the journal at `{path}`")]
    File {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: Utf8PathBuf,
        /// What the system said.
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

/// How much is kept of each session.
#[derive(Debug, Clone, Copy)]
pub struct JournalLimits {
    /// When a file is longer than this, the older half of its events goes.
    pub file_bytes_max: u64,
}

impl Default for JournalLimits {
    fn default() -> Self {
        // Shortening one reads it whole, and who says something waits for that.
        Self { file_bytes_max: 16 << 20 }
    }
}

/// The indices of the events that are kept of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// Of the oldest; the same as `next` when there is none.
    pub first: u64,
    /// Of the one to come.
    pub next: u64,
}

/// A session's file, once it was read through.
type Slot = Option<SessionFile>;

/// The events of all sessions of a data directory. Its methods block.
#[derive(Debug)]
pub struct Journal {
    dir: Utf8PathBuf,
    limits: JournalLimits,
    /// The sessions that were touched. Their files are read through once, then known.
    files: Mutex<HashMap<SessionId, Arc<Mutex<Slot>>>>,
}

impl Journal {
    /// Opens the journal below `data_dir`, making it if needed. Whoever opens it holds the data
    /// directory's [`Store`](crate::Store).
    ///
    /// # Errors
    /// When its directory cannot be made.
    pub fn open(data_dir: &Utf8Path) -> Result<Self, JournalError> {
        Self::open_with(data_dir, JournalLimits::default())
    }

    /// Like [`Journal::open`], with other limits.
    ///
    /// # Errors
    /// When its directory cannot be made.
    pub fn open_with(data_dir: &Utf8Path, limits: JournalLimits) -> Result<Self, JournalError> {
        let dir = data_dir.join("sessions");
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&dir);
        made.map_err(JournalError::on("create", &dir))?;
        Ok(Self { dir, limits, files: Mutex::default() })
    }

    /// Adds events, in their order, and gives the index of the first of them.
    ///
    /// # Errors
    /// When an event has no fitting size, or the file cannot be written; none of them is then kept.
    pub fn append(&self, session: SessionId, events: &[Bytes]) -> Result<u64, JournalError> {
        let misfit = |event: &&Bytes| !(1..=EVENT_BYTES_MAX).contains(&event.len());
        if let Some(event) = events.iter().find(misfit) {
            return Err(JournalError::Size { session, bytes: event.len() });
        }
        self.append_from(session, None, events)
    }

    /// Adds an event under an index of its writer's. Where events before it are missing, because they
    /// could not be written, empty ones take their place, so that every index stays what it was.
    ///
    /// # Errors
    /// When the event has no fitting size, or the file cannot be written; it is then not kept.
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
            // After a failure the file may end in half a frame: the slot stays empty, and the next
            // one to come opens the file anew, which repairs it.
            let index = file.append(&path, events).map_err(JournalError::on("write", &path))?;
            if file.size() > self.limits.file_bytes_max {
                file = file.halve(&path).map_err(JournalError::on("shorten", &path))?;
            }
            *slot = Some(file);
            Ok(index)
        })
    }

    /// The events from an index on, oldest first: at most `max`, and fewer if they are large. Where
    /// older ones are gone, it begins with the oldest that is kept.
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

    /// Which events are kept; none for a session that has none.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn kept(&self, session: SessionId) -> Result<Option<Kept>, JournalError> {
        self.with(session, |file| file.kept())
    }

    /// The index of a session's last event, if it has any.
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
            // Only now: whoever comes next takes another slot and may make the file anew.
            lock(&self.files).remove(&session);
            removed
        })
    }

    /// Looks at a session's file, if there is one.
    fn with<T>(
        &self,
        session: SessionId,
        look: impl FnOnce(&SessionFile) -> T,
    ) -> Result<Option<T>, JournalError> {
        let path = self.path(session);
        // Asking for sessions that never were must not fill the table.
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

    /// Works on a session's file while nobody else does.
    fn locked<T>(
        &self,
        session: SessionId,
        work: impl FnOnce(&mut Slot) -> Result<T, JournalError>,
    ) -> Result<T, JournalError> {
        loop {
            let slot = Arc::clone(lock(&self.files).entry(session).or_default());
            let mut file = lock(&slot);
            // Whoever waited while the session was removed holds a slot that nobody else knows.
            if lock(&self.files).get(&session).is_some_and(|known| Arc::ptr_eq(known, &slot)) {
                return work(&mut file);
            }
        }
    }

    fn path(&self, session: SessionId) -> Utf8PathBuf {
        self.dir.join(format!("{session}.log"))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
