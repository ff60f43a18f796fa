//! Changes of the tool list: one bell for all subscribers, so that a burst is one change for each
//! and no slow subscriber delays another. A subscriber is notified only of changes in its own list.

use std::sync::Arc;

use ringback_broker::{Broker, Credential, LineKind, OfferedTool};
use tokio::sync::watch;

use crate::peer::Peer;

/// Every kind of line.
const KINDS: [LineKind; 3] = [LineKind::Client, LineKind::Worker, LineKind::Caller];

/// One subscriber. Changes it has not seen yet count as one.
#[derive(Debug)]
pub(crate) struct ChangeSubscriber {
    bell: watch::Receiver<u64>,
    seen: u64,
}

impl ChangeSubscriber {
    pub(crate) fn subscribe(broker: &Broker, peer: &Peer) -> Self {
        Self { bell: broker.lines().changes(), seen: peer.fingerprint(broker) }
    }

    /// Resolves when the peer's list differs from the one it last saw.
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

/// The tools on lines that a caller sees, by kind and then by order of registration.
pub(crate) fn on_lines(broker: &Broker, credential: &Credential) -> Vec<Arc<OfferedTool>> {
    let of_kind = |kind| broker.lines().tools(credential, kind).unwrap_or_default();
    KINDS.into_iter().flat_map(of_kind).collect()
}
