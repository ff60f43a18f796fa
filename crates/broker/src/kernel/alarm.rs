//! The alarm: wakes the task that watches deadlines, and only when a new deadline is the nearest.

use std::sync::atomic::{AtomicU64, Ordering};

use ringback_core::time::MonoMs;
use tokio::sync::Notify;

/// An alarm for the nearest deadline. A new deadline that is later costs one load.
#[derive(Debug)]
pub(crate) struct Alarm {
    /// The deadline that the watcher sleeps until; `u64::MAX` while it looks for the nearest.
    set_to: AtomicU64,
    bell: Notify,
}

impl Alarm {
    pub(crate) const fn new() -> Self {
        Self { set_to: AtomicU64::new(MonoMs::MAX), bell: Notify::const_new() }
    }

    /// Reports a deadline that was added to a table before this call.
    pub(crate) fn add(&self, at: MonoMs) {
        if at < self.set_to.load(Ordering::SeqCst) {
            self.bell.notify_one();
        }
    }

    /// Reports a change of deadlines that only the tables know.
    pub(crate) fn ring(&self) {
        self.bell.notify_one();
    }

    /// Finds the nearest deadline and sets the alarm to it. The alarm is set to "never" before the
    /// search, so a deadline added meanwhile rings it.
    pub(crate) fn set(&self, nearest: impl FnOnce() -> Option<MonoMs>) -> Option<MonoMs> {
        self.set_to.store(MonoMs::MAX, Ordering::SeqCst);
        let nearest = nearest();
        self.set_to.store(nearest.unwrap_or(MonoMs::MAX), Ordering::SeqCst);
        nearest
    }

    /// Resolves when the nearest deadline may have changed.
    pub(crate) async fn rung(&self) {
        self.bell.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    fn is_rung(alarm: &Alarm) -> bool {
        Box::pin(alarm.rung()).now_or_never().is_some()
    }

    /// Rule: only a deadline that is nearer than all others wakes the watcher.
    #[test]
    fn a_later_deadline_does_not_ring() {
        let alarm = Alarm::new();
        alarm.add(50);
        assert!(is_rung(&alarm), "the alarm was not set");
        assert_eq!(alarm.set(|| Some(50)), Some(50));
        alarm.add(60);
        assert!(!is_rung(&alarm));
        alarm.add(40);
        assert!(is_rung(&alarm));
    }

    /// Rule: a deadline that is added while the nearest is looked up is not missed.
    #[test]
    fn a_deadline_added_during_the_search_rings() {
        let alarm = Alarm::new();
        assert_eq!(alarm.set(|| Some(10)), Some(10));
        alarm.set(|| {
            alarm.add(20);
            Some(30)
        });
        assert!(is_rung(&alarm));
    }
}
