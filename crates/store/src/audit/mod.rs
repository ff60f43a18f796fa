//! The audit log: one line per call, in append-only segments. Lines hold no arguments and no
//! secrets.
//!
//! A line is not acknowledged: it is synced within a second and at the end. When lines arrive
//! faster than the disk accepts them, some are dropped, and their number is itself logged.

mod entry;
mod reader;
mod segment;
mod writer;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::CallId;
use ringback_sync::lock;

pub use entry::{Entry, Line, Traffic};
pub use reader::{AuditCursor, BadAuditCursor};
pub use segment::AuditError;
use segment::Segments;
use writer::{Message, Writer};

/// Limits of the audit log.
#[derive(Debug, Clone, Copy)]
pub struct AuditLimits {
    /// Lines that may wait for the disk.
    pub queue_max: usize,
    /// The size at which a new segment starts.
    pub segment_bytes_max: u64,
    /// Segments to keep; the oldest are removed.
    pub segments_max: usize,
}

impl Default for AuditLimits {
    fn default() -> Self {
        Self { queue_max: 8192, segment_bytes_max: 8 << 20, segments_max: 64 }
    }
}

/// The audit log of a data directory, in `audit/`.
#[derive(Debug)]
pub struct Audit {
    dir: Utf8PathBuf,
    inbox: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
    dropped_total: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Audit {
    /// Opens the segments below `data_dir`, cuts off a line that a crash left incomplete, and
    /// continues after it. The caller must hold the data directory's [`Store`](crate::Store).
    pub fn open(data_dir: &Utf8Path, limits: AuditLimits) -> Result<Self, AuditError> {
        let dir = data_dir.join("audit");
        let segments = Segments::open(&dir, limits)?;
        let (inbox, messages) = sync_channel(limits.queue_max);
        let dropped = Arc::new(AtomicU64::new(0));
        let writer = Writer::new(segments, messages, Arc::clone(&dropped));
        let thread = thread::Builder::new()
            .name("audit-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(AuditError::on("start a thread for", &dir))?;
        let thread = Mutex::new(Some(thread));
        Ok(Self { dir, inbox, dropped, dropped_total: AtomicU64::new(0), thread })
    }

    /// Adds a line without ever waiting: when the queue is full, the line is dropped and counted.
    pub fn record(&self, entry: Entry) {
        match self.inbox.try_send(Message::Entry(Box::new(entry))) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                self.dropped_total.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Returns the number of lines dropped since the log was opened.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.dropped_total.load(Ordering::Relaxed)
    }

    /// Waits until every line added before is synced.
    pub fn flush(&self) {
        let (sender, receiver) = sync_channel(1);
        if self.inbox.send(Message::Flush(sender)).is_ok() && receiver.recv().is_err() {
            tracing::error!("the audit's writer ended before a flush");
        }
    }

    /// Returns at most `limit` lines before a position, newest first, and where to continue if
    /// there are more.
    pub fn page(
        &self,
        before: Option<AuditCursor>,
        limit: usize,
    ) -> Result<(Vec<Line>, Option<AuditCursor>), AuditError> {
        reader::page(&self.dir, before, limit)
    }

    /// Returns the line of a call, if it is still kept.
    pub fn find(&self, call: CallId) -> Result<Option<Entry>, AuditError> {
        reader::find(&self.dir, call)
    }

    /// Syncs all lines and stops the writer.
    pub fn close(&self) {
        let thread = lock(&self.thread).take();
        let Some(thread) = thread else { return };
        drop(self.inbox.send(Message::Close));
        if thread.join().is_err() {
            tracing::error!("the audit's writer panicked");
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.close();
    }
}
