//! Whether the daemon accepts calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The answer of `/ready`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadyState {
    /// Not yet: the store is opening or the edges are binding.
    Starting,
    /// The daemon accepts calls.
    Ready,
    /// No longer: running work is being finished.
    Draining,
}

/// Queried at every `/ready`; must answer immediately.
pub trait Readiness: Send + Sync + 'static {
    /// The current state.
    fn state(&self) -> ReadyState;
}

/// A readiness that is set explicitly. It only moves forward: a draining daemon is never ready
/// again.
#[derive(Clone, Debug, Default)]
pub struct ReadyFlag(Arc<AtomicU8>);

impl ReadyState {
    /// Its name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
        }
    }
}

impl ReadyFlag {
    /// Creates a flag in [`ReadyState::Starting`].
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Accepts calls from now on, unless the daemon is already draining.
    pub fn set_ready(&self) {
        self.0.fetch_max(ReadyState::Ready as u8, Ordering::AcqRel);
    }

    /// Accepts no more calls.
    pub fn set_draining(&self) {
        self.0.fetch_max(ReadyState::Draining as u8, Ordering::AcqRel);
    }
}

impl Readiness for ReadyFlag {
    fn state(&self) -> ReadyState {
        match self.0.load(Ordering::Acquire) {
            0 => ReadyState::Starting,
            1 => ReadyState::Ready,
            _ => ReadyState::Draining,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Readiness, ReadyFlag, ReadyState};

    #[test]
    fn a_draining_daemon_is_never_ready_again() {
        let flag = ReadyFlag::new();
        assert_eq!(flag.state(), ReadyState::Starting);
        flag.set_ready();
        assert_eq!(flag.state(), ReadyState::Ready);
        flag.set_draining();
        flag.set_ready();
        assert_eq!(flag.state(), ReadyState::Draining);
    }
}
