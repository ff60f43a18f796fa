//! Content that arrives in pieces, over several calls. An upload belongs to one principal, takes
//! its pieces in order, and tolerates a repeated piece or a repeated end, so that a caller that
//! lost an answer can simply ask again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ringback_proto::principal::PrincipalId;
use ringback_proto::record::UnixMs;
use ringback_sync::lock;

use crate::blobs::Blobs;
use crate::error::UploadError;
use crate::writer::{StoredContent, Writer, check_mime};

/// The maximum length of an upload id.
const ID_CHARS_MAX: usize = 64;

/// Limits of uploads.
#[derive(Debug, Clone, Copy)]
pub struct UploadLimits {
    /// Open uploads of all principals.
    pub open_max: usize,
    /// Open uploads of one principal, so that one principal cannot take all slots.
    pub open_per_owner_max: usize,
    /// Bytes in one upload.
    pub bytes_max: u64,
    /// How long an upload may wait for its next piece.
    pub idle_ms_max: u64,
}

impl Default for UploadLimits {
    fn default() -> Self {
        Self { open_max: 256, open_per_owner_max: 16, bytes_max: 16 << 30, idle_ms_max: 600_000 }
    }
}

/// The open uploads.
#[derive(Debug)]
pub struct Uploads {
    blobs: Blobs,
    limits: UploadLimits,
    table: Mutex<HashMap<Key, Arc<Entry>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    owner: PrincipalId,
    id: String,
}

#[derive(Debug)]
struct Entry {
    touched_at: Mutex<UnixMs>,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Open(Box<Writer>),
    /// Kept until it expires, for a caller that missed the answer.
    Done(StoredContent),
    Failed,
}

impl Uploads {
    /// Makes uploads into a store.
    #[must_use]
    pub fn new(blobs: Blobs, limits: UploadLimits) -> Self {
        Self { blobs, limits, table: Mutex::default() }
    }

    /// Takes the piece at `offset` and returns the number of bytes received so far. A piece at
    /// offset 0 starts an upload; a repeated piece is skipped.
    pub fn append(
        &self,
        owner: PrincipalId,
        id: &str,
        offset: u64,
        data: &[u8],
        now: UnixMs,
    ) -> Result<u64, UploadError> {
        let entry = self.entry(owner, id, offset, now)?;
        let mut state = lock(&entry.state);
        let writer = match &mut *state {
            State::Open(writer) => writer,
            State::Done(stored) => return repeated(offset, data.len(), stored.size),
            State::Failed => return Err(UploadError::Unknown),
        };
        let size = writer.size();
        if offset != size {
            return repeated(offset, data.len(), size);
        }
        let size_after = size.saturating_add(data.len() as u64);
        if size_after > self.limits.bytes_max {
            return Err(UploadError::TooLarge { max: self.limits.bytes_max });
        }
        if let Err(error) = writer.write(data).and_then(|()| writer.rest()) {
            *state = State::Failed;
            drop(state);
            lock(&self.table).remove(&Key { owner, id: id.to_owned() });
            return Err(error.into());
        }
        Ok(size_after)
    }

    /// Stores the uploaded content. A repeated call returns the same answer until the upload
    /// expires.
    pub fn finish(
        &self,
        owner: PrincipalId,
        id: &str,
        mime_type: &str,
        now: UnixMs,
    ) -> Result<StoredContent, UploadError> {
        check_mime(mime_type)?;
        let key = Key::new(owner, id)?;
        let entry = lock(&self.table).get(&key).cloned().ok_or(UploadError::Unknown)?;
        *lock(&entry.touched_at) = now;
        let mut state = lock(&entry.state);
        match std::mem::replace(&mut *state, State::Failed) {
            State::Open(writer) => match writer.finish(mime_type) {
                Ok(stored) => {
                    *state = State::Done(stored.clone());
                    Ok(stored)
                }
                Err(error) => {
                    drop(state);
                    lock(&self.table).remove(&key);
                    Err(error.into())
                }
            },
            State::Done(stored) => {
                *state = State::Done(stored.clone());
                Ok(stored)
            }
            State::Failed => Err(UploadError::Unknown),
        }
    }

    /// Discards an upload.
    pub fn abort(&self, owner: PrincipalId, id: &str) {
        if let Ok(key) = Key::new(owner, id) {
            lock(&self.table).remove(&key);
        }
    }

    /// Drops uploads that have been idle for too long, with their files, and returns their number.
    pub fn expire(&self, now: UnixMs) -> usize {
        let mut table = lock(&self.table);
        let n_before = table.len();
        let idle_ms_max = self.limits.idle_ms_max;
        table.retain(|_, entry| now.saturating_sub(*lock(&entry.touched_at)) < idle_ms_max);
        n_before - table.len()
    }

    /// Returns the number of known uploads, including ended ones that have not expired.
    #[must_use]
    pub fn count(&self) -> usize {
        lock(&self.table).len()
    }

    fn entry(
        &self,
        owner: PrincipalId,
        id: &str,
        offset: u64,
        now: UnixMs,
    ) -> Result<Arc<Entry>, UploadError> {
        let key = Key::new(owner, id)?;
        let mut table = lock(&self.table);
        if let Some(entry) = table.get(&key) {
            *lock(&entry.touched_at) = now;
            return Ok(Arc::clone(entry));
        }
        if offset != 0 {
            return Err(UploadError::Unknown);
        }
        self.make_room(&mut table, owner)?;
        let state = Mutex::new(State::Open(Box::new(self.blobs.writer())));
        let entry = Arc::new(Entry { touched_at: Mutex::new(now), state });
        table.insert(key, Arc::clone(&entry));
        Ok(entry)
    }

    /// Makes room for a new upload: ended ones are only kept for repeats, so they yield.
    fn make_room(
        &self,
        table: &mut HashMap<Key, Arc<Entry>>,
        owner: PrincipalId,
    ) -> Result<(), UploadError> {
        let UploadLimits { open_max, open_per_owner_max, .. } = self.limits;
        if table.keys().filter(|key| key.owner == owner).count() >= open_per_owner_max {
            drop_oldest_done(table, |key| key.owner == owner)
                .then_some(())
                .ok_or(UploadError::TooMany { max: open_per_owner_max })?;
        }
        if table.len() >= open_max {
            drop_oldest_done(table, |_| true)
                .then_some(())
                .ok_or(UploadError::TooMany { max: open_max })?;
        }
        Ok(())
    }
}

impl Key {
    fn new(owner: PrincipalId, id: &str) -> Result<Self, UploadError> {
        if id.is_empty() || id.chars().count() > ID_CHARS_MAX {
            return Err(UploadError::InvalidId { max: ID_CHARS_MAX });
        }
        Ok(Self { owner, id: id.to_owned() })
    }
}

fn drop_oldest_done(table: &mut HashMap<Key, Arc<Entry>>, of: impl Fn(&Key) -> bool) -> bool {
    // A locked state is being written to, so it is not done.
    let is_done = |entry: &Entry| {
        entry.state.try_lock().is_ok_and(|state| matches!(*state, State::Done(_) | State::Failed))
    };
    let oldest = table
        .iter()
        .filter(|(key, entry)| of(key) && is_done(entry))
        .min_by_key(|(_, entry)| *lock(&entry.touched_at))
        .map(|(key, _)| key.clone());
    oldest.is_some_and(|key| table.remove(&key).is_some())
}

/// A piece that lies entirely within the received content is a repeat.
fn repeated(offset: u64, length: usize, size: u64) -> Result<u64, UploadError> {
    let end = offset.saturating_add(length as u64);
    if end <= size { Ok(size) } else { Err(UploadError::WrongOffset { offset, expected: size }) }
}
