//! The thread that writes the audit log.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use ringback_proto::record::UnixMs;

use super::entry::{Entry, Line};
use super::segment::{Segments, encode};

/// The most that a power failure can lose.
const SYNC_PERIOD: Duration = Duration::from_secs(1);

/// Lines written with one system call.
const BATCH_MAX: usize = 1024;

/// How long the first line waits for others: no caller waits for it, and waking a thread for each
/// line costs more than writing them all.
const GATHER: Duration = Duration::from_millis(10);

pub(super) enum Message {
    Entry(Box<Entry>),
    /// Sync, then confirm.
    Flush(SyncSender<()>),
    Close,
}

pub(super) struct Writer {
    segments: Segments,
    inbox: Receiver<Message>,
    /// Missing lines that are not yet logged.
    dropped: Arc<AtomicU64>,
    frames: Vec<u8>,
    n_framed: u64,
    last_at_ms: UnixMs,
    /// When the oldest unsynced line was written.
    unsynced_since: Option<Instant>,
    /// Whether more lines wait than fit into one batch.
    is_behind: bool,
    broken: bool,
}

impl Writer {
    pub(super) fn new(
        segments: Segments,
        inbox: Receiver<Message>,
        dropped: Arc<AtomicU64>,
    ) -> Self {
        Self {
            segments,
            inbox,
            dropped,
            frames: Vec::new(),
            n_framed: 0,
            last_at_ms: 0,
            unsynced_since: None,
            is_behind: false,
            broken: false,
        }
    }

    pub(super) fn run(mut self) {
        loop {
            let waited = match self.unsynced_since {
                None => self.inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(since) => self.inbox.recv_timeout(SYNC_PERIOD.saturating_sub(since.elapsed())),
            };
            match waited {
                Ok(message) => {
                    if matches!(message, Message::Entry(_)) && !self.is_behind {
                        thread::sleep(GATHER);
                    }
                    if self.on_messages(message) {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.sync(),
                Err(RecvTimeoutError::Disconnected) => return self.sync(),
            }
            if self.unsynced_since.is_some_and(|since| since.elapsed() >= SYNC_PERIOD) {
                self.sync();
            }
        }
    }

    /// Takes all waiting messages; returns whether the end was among them.
    fn on_messages(&mut self, first: Message) -> bool {
        let mut next = Some(first);
        let mut n_taken = 0;
        while let Some(message) = next {
            n_taken += 1;
            match message {
                Message::Entry(entry) => self.frame(*entry),
                Message::Flush(done) => {
                    self.write();
                    self.sync();
                    done.send(())
                        .unwrap_or_else(|_| tracing::debug!("the requester of a flush is gone"));
                }
                Message::Close => {
                    self.write();
                    self.sync();
                    return true;
                }
            }
            next = if n_taken < BATCH_MAX { self.inbox.try_recv().ok() } else { None };
        }
        self.is_behind = n_taken >= BATCH_MAX;
        self.write();
        false
    }

    fn frame(&mut self, entry: Entry) {
        self.last_at_ms = entry.at_ms;
        encode(&Line::Call(entry), &mut self.frames);
        self.n_framed += 1;
    }

    fn write(&mut self) {
        let count = self.dropped.swap(0, Ordering::Relaxed);
        if count > 0 {
            encode(&Line::Dropped { at_ms: self.last_at_ms, count }, &mut self.frames);
        }
        if self.frames.is_empty() {
            return;
        }
        if let Err(error) = self.append() {
            self.lose(&error, count + self.n_framed);
        } else {
            self.unsynced_since.get_or_insert_with(Instant::now);
        }
        self.frames.clear();
        self.n_framed = 0;
    }

    fn append(&mut self) -> io::Result<()> {
        if self.broken || self.segments.is_full() {
            if !self.broken {
                self.segments.sync()?;
            }
            self.segments.rotate()?;
            self.broken = false;
        }
        self.segments.append(&self.frames)
    }

    fn sync(&mut self) {
        if self.unsynced_since.take().is_some()
            && let Err(error) = self.segments.sync()
        {
            self.lose(&error, 0);
        }
    }

    /// After a failure a segment may end in an incomplete line, and syncing it again proves
    /// nothing: the next lines start a new one.
    fn lose(&mut self, error: &io::Error, count: u64) {
        tracing::error!(%error, lost = count, "cannot write the audit log");
        self.dropped.fetch_add(count, Ordering::Relaxed);
        self.broken = true;
    }
}
