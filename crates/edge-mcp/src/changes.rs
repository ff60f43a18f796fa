//! News of the list of tools: one bell for all subscribers, so that a burst is one change for each
//! of them and nobody's slowness holds up another. A subscriber hears only of changes in its own
//! list.

use std::sync::Arc;

use ringback_broker::{Broker, Credential, LineKind, OfferedTool};
use tokio::sync::watch;

use crate::peer::Peer;

/// Every kind of line.
const KINDS: [LineKind; 3] = [LineKind::Client, LineKind::Worker, LineKind::Caller];

/// One subscriber. Changes it has not looked at yet count as one.
#[derive(Debug)]
pub(crate) struct Changed {
    bell: watch::Receiver<u64>,
    seen: u64,
}

impl Changed {
    pub(crate) fn subscribe(broker: &Broker, peer: &Peer) -> Self {
        Self { bell: broker.lines().changes(), seen: peer.fingerprint(broker) }
    }

    /// Resolves when the peer's list is another one than at the last look.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub(crate) async fn next(&mut self, broker: &Broker, peer: &Peer) {
        loop {
            if self.bell.changed().await.is_err() {
                return std::future::pending().await;
            }
            let seen = peer.fingerprint(broker);
            if std::mem::replace(&mut self.seen, seen) != seen {
                return;
            }
        }
    }
}

/// The tools on lines that a caller sees, by their kind and then by their order of registration.
pub(crate) fn on_lines(broker: &Broker, credential: &Credential) -> Vec<Arc<OfferedTool>> {
    let of_kind = |kind| broker.lines().tools(credential, kind).unwrap_or_default();
    KINDS.into_iter().flat_map(of_kind).collect()
}
