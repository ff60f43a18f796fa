//! News of the list of tools: one bell for all subscribers, so that a burst is one change for each
//! of them and nobody's slowness holds up another.

use tokio::sync::watch;

/// Rings when the list of tools may have changed.
#[derive(Debug)]
pub(crate) struct Changes(watch::Sender<u64>);

/// One subscriber. Changes it has not looked at yet count as one.
#[derive(Debug)]
pub(crate) struct Changed(watch::Receiver<u64>);

impl Default for Changes {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl Changes {
    pub(crate) fn ring(&self) {
        self.0.send_modify(|count| *count += 1);
    }

    pub(crate) fn subscribe(&self) -> Changed {
        Changed(self.0.subscribe())
    }
}

impl Changed {
    /// Resolves at the next change, or at once if there was one since the last look.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::Changes;

    #[test]
    fn a_burst_is_one_change_for_a_subscriber() {
        let changes = Changes::default();
        let mut changed = changes.subscribe();
        assert_eq!(changed.next().now_or_never(), None);
        for _ in 0..1000 {
            changes.ring();
        }
        assert_eq!(changed.next().now_or_never(), Some(()));
        assert_eq!(changed.next().now_or_never(), None);
    }
}
