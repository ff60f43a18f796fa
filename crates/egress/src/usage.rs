//! What a session has asked of its model.

use std::sync::atomic::{AtomicU64, Ordering};

use ringback_proto::request::ModelUsage;

/// What a session has asked, while it changes. No two of them must agree at any moment.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    n_requests: AtomicU64,
    n_refused: AtomicU64,
    bytes_up: AtomicU64,
    bytes_down: AtomicU64,
}

impl Counters {
    /// Takes one of at most `max` requests.
    pub(crate) fn take_request(&self, max: Option<u64>) -> bool {
        let max = max.unwrap_or(u64::MAX);
        let taken = self.n_requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n_taken| {
            (n_taken < max).then(|| n_taken + 1)
        });
        taken.is_ok()
    }

    pub(crate) fn refuse(&self) {
        self.n_refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn add(&self, bytes_up: u64, bytes_down: u64) {
        self.bytes_up.fetch_add(bytes_up, Ordering::Relaxed);
        self.bytes_down.fetch_add(bytes_down, Ordering::Relaxed);
    }

    pub(crate) fn snapshot(&self) -> ModelUsage {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        ModelUsage {
            requests: read(&self.n_requests),
            refused: read(&self.n_refused),
            bytes_up: read(&self.bytes_up),
            bytes_down: read(&self.bytes_down),
        }
    }
}
