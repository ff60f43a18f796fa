//! The chunks of one call on their way from a party that sends on credit to the stream of its
//! caller.

use std::sync::Mutex;

use ringback_core::Now;
use ringback_core::stream::{ChunkBuffer, PopOutcome, PushOutcome};
use ringback_proto::{Certainty, Error, ErrorKind, Result, StreamChunk};
use tokio::sync::Notify;

use crate::sync::lock;

/// The chunks of one call that have yet to be passed on. A party that keeps to its credit always has
/// room.
#[derive(Debug)]
pub struct ChunkInbox {
    buffer: Mutex<ChunkBuffer>,
    bell: Notify,
}

impl Default for ChunkInbox {
    fn default() -> Self {
        Self { buffer: Mutex::new(ChunkBuffer::of_party()), bell: Notify::new() }
    }
}

impl ChunkInbox {
    /// Adds a chunk. Never waits.
    ///
    /// # Errors
    /// `busy` when the party sends far more than its credit.
    pub fn push(&self, chunk: StreamChunk) -> Result<()> {
        let pushed = lock(&self.buffer).push(chunk);
        match pushed {
            PushOutcome::Taken | PushOutcome::Closed => {
                self.bell.notify_one();
                Ok(())
            }
            PushOutcome::Wait(_) => {
                let message = "the worker sends faster than its caller reads, without credit; send \
                               at most 1 MiB before the first Credit, and then what each Credit says";
                let error = Error::new(ErrorKind::Busy, message);
                Err(error.with_certainty(Certainty::MayHaveRun))
            }
        }
    }

    /// No more chunks will come.
    pub fn finish(&self) {
        lock(&self.buffer).finish();
        self.bell.notify_one();
    }

    /// Returns the next chunk; `None` after the last.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn next(&self) -> Option<StreamChunk> {
        loop {
            // Its credit never ends, so time does not matter.
            let popped = lock(&self.buffer).pop(Now { mono: 0, unix: 0 });
            match popped {
                PopOutcome::Chunk(chunk) => return Some(chunk),
                PopOutcome::End | PopOutcome::Lagged => return None,
                PopOutcome::Nothing => self.bell.notified().await,
            }
        }
    }
}
