//! A stream of chunks from the work to one reader: the buffer of `core`, with a bell at each end.

use std::sync::Mutex;

use ringback_core::stream::{ChunkBuffer, PopOutcome, PushOutcome};
use ringback_proto::StreamChunk;
use tokio::sync::Notify;

use crate::kernel::Clock;
use crate::sync::lock;

/// One reader's stream.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    buffer: Mutex<ChunkBuffer>,
    to_reader: Notify,
    to_writer: Notify,
}

/// The next item for the reader.
#[derive(Debug)]
pub(crate) enum NextItem {
    Chunk(StreamChunk),
    Lagged,
    End,
}

impl Stream {
    /// Sends a chunk; waits while the reader is behind with lossless ones.
    pub(crate) async fn send(&self, chunk: StreamChunk) {
        let mut chunk = chunk;
        loop {
            let pushed = lock(&self.buffer).push(chunk);
            match pushed {
                PushOutcome::Taken => return self.to_reader.notify_one(),
                PushOutcome::Closed => return,
                PushOutcome::Wait(back) => {
                    chunk = back;
                    self.to_writer.notified().await;
                }
            }
        }
    }

    /// Ends the stream: the work is over.
    pub(crate) fn finish(&self) {
        lock(&self.buffer).finish();
        self.to_reader.notify_one();
    }

    /// Adds credit for the reader.
    pub(crate) fn add_credit(&self, bytes: u64) {
        lock(&self.buffer).add_credit(bytes);
        self.to_reader.notify_one();
    }

    /// Waits for the next chunk.
    pub(crate) async fn next(&self, clock: &Clock) -> NextItem {
        loop {
            let (popped, stall_deadline) = {
                let mut buffer = lock(&self.buffer);
                (buffer.pop(clock.now()), buffer.stall_deadline())
            };
            match popped {
                PopOutcome::Chunk(chunk) => {
                    self.to_writer.notify_one();
                    return NextItem::Chunk(chunk);
                }
                PopOutcome::Lagged => {
                    self.to_writer.notify_one();
                    return NextItem::Lagged;
                }
                PopOutcome::End => return NextItem::End,
                PopOutcome::Nothing => self.wait(clock, stall_deadline).await,
            }
        }
    }

    async fn wait(&self, clock: &Clock, stall_deadline: Option<u64>) {
        match stall_deadline {
            None => self.to_reader.notified().await,
            Some(at) => {
                tokio::select! {
                    biased;
                    () = self.to_reader.notified() => {}
                    () = tokio::time::sleep_until(clock.instant(at)) => {}
                }
            }
        }
    }
}
