//! How much a worker may send of one call before the daemon grants more.

use std::sync::atomic::{AtomicI64, Ordering};

use ringback_proto::chunk::FIRST_CREDIT;
use tokio::sync::Notify;

/// The lossless bytes of one call that may still flow. A chunk may exceed what is left: credit slows
/// down, it does not split chunks.
#[derive(Debug)]
pub(super) struct CallCredit {
    left: AtomicI64,
    more: Notify,
}

impl Default for CallCredit {
    fn default() -> Self {
        let left = i64::try_from(FIRST_CREDIT).unwrap_or(i64::MAX);
        Self { left: AtomicI64::new(left), more: Notify::new() }
    }
}

impl CallCredit {
    /// Adds what the daemon grants.
    pub(super) fn add(&self, bytes: u64) {
        let more = i64::try_from(bytes).unwrap_or(i64::MAX);
        let sum = |left: i64| Some(left.saturating_add(more));
        if self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, sum).is_ok() {
            self.more.notify_waiters();
        }
    }

    /// Takes credit for a chunk; waits until there is some.
    pub(super) async fn take(&self, bytes: u64) {
        let weight = i64::try_from(bytes).unwrap_or(i64::MAX);
        let rest = |left: i64| (left > 0).then(|| left.saturating_sub(weight));
        loop {
            let more = self.more.notified();
            if self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, rest).is_ok() {
                return;
            }
            more.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Rule: nothing flows without credit, and a chunk larger than the rest does.
    #[test]
    fn what_was_granted_flows_and_no_more() {
        let credit = CallCredit::default();
        let flows = |bytes| credit.take(bytes).now_or_never().is_some();
        assert!(flows(FIRST_CREDIT - 1));
        assert!(flows(10 << 20), "larger than the rest");
        assert!(!flows(1));
        credit.add((10 << 20) - 1);
        assert!(!flows(1));
        credit.add(1);
        assert!(flows(1));
        assert!(!flows(1));
        credit.add(u64::MAX);
        assert!(flows(u64::MAX));
    }
}
