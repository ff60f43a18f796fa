//! Records the history, from anywhere in a life.

use std::sync::{Arc, Mutex};

use ringback_broker::TableSizes;
use ringback_proto::ids::JobId;
use ringback_proto::record::UnixMs;
use ringback_sync::lock;
use tokio::time::Instant;

use crate::history::{Entry, HistoryEvent, Reply};

/// Records the history. Clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Recorder {
    written: Arc<Mutex<RecorderState>>,
    life: u32,
    /// The wall clock at the start of this life.
    base: UnixMs,
    /// The start of this life on the paused clock.
    began: Option<Instant>,
}

#[derive(Debug, Default)]
struct RecorderState {
    entries: Vec<Entry>,
    /// Jobs whose IDs were reported.
    jobs: Vec<JobId>,
    under_way: TableSizes,
    last_at: UnixMs,
}

impl Recorder {
    pub(crate) fn new(base: UnixMs) -> Self {
        Self { written: Arc::default(), life: 0, base, began: None }
    }

    /// Starts the paused clock of a life.
    pub(crate) fn begin_life(&mut self) {
        self.began = Some(Instant::now());
    }

    /// Ends the life; the next one starts this much later.
    pub(crate) fn next_life(&mut self, later_ms: UnixMs) {
        self.base = self.with(|written| written.last_at) + later_ms;
        self.began = None;
        self.life += 1;
    }

    /// Returns the wall clock at the start of this life.
    pub(crate) const fn base(&self) -> UnixMs {
        self.base
    }

    pub(crate) fn note(&self, what: HistoryEvent) {
        let elapsed = self.began.map_or(0, |began| began.elapsed().as_millis());
        let at = self.base + u64::try_from(elapsed).unwrap_or(u64::MAX);
        let life = self.life;
        self.with(|written| {
            if let HistoryEvent::Replied(_, reply) = &what {
                written.jobs.extend(told(reply));
            }
            written.last_at = at;
            written.entries.push(Entry { at, life, what });
        });
    }

    pub(crate) fn note_under_way(&self, under_way: TableSizes) {
        self.with(|written| written.under_way = under_way);
    }

    pub(crate) fn under_way(&self) -> TableSizes {
        self.with(|written| written.under_way)
    }

    /// Returns a reported job, counted from the last.
    pub(crate) fn told_job(&self, ago: usize) -> Option<JobId> {
        self.with(|written| written.jobs.iter().rev().nth(ago).copied())
    }

    pub(crate) fn into_entries(self) -> Vec<Entry> {
        self.with(|written| std::mem::take(&mut written.entries))
    }

    fn with<T>(&self, look: impl FnOnce(&mut RecorderState) -> T) -> T {
        look(&mut lock(&self.written))
    }
}

fn told(reply: &Reply) -> Option<JobId> {
    reply.job()
}
