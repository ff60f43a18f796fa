//! What a session has used of its model.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a session has used since its door was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Requests that went to the provider.
    pub n_requests: u64,
    /// Requests that did not, and were answered by the door.
    pub n_refused: u64,
    /// Bytes of bodies that went to the provider.
    pub bytes_up: u64,
    /// Bytes of bodies that came back.
    pub bytes_down: u64,
}

/// The same, while it changes. No two of them must agree at any moment.
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

    pub(crate) fn snapshot(&self) -> Usage {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Usage {
            n_requests: read(&self.n_requests),
            n_refused: read(&self.n_refused),
            bytes_up: read(&self.bytes_up),
            bytes_down: read(&self.bytes_down),
        }
    }
}
