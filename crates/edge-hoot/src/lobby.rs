//! The lobby of a socket: connections that have not authenticated yet. They have few places, and
//! the next one takes the place of the one that has waited longest, so that silent strangers keep
//! no peer out.

use std::collections::{BTreeSet, HashSet};

use crate::transport::{ConnectionEvent, ConnectionId, Monitor};

/// Concurrent handshakes. One takes a few milliseconds, or a few round trips over a slow link.
pub(crate) const WAITING_MAX: usize = 64;

/// The connections of one socket that need a place.
#[derive(Debug)]
pub(crate) struct Lobby {
    monitor: Monitor,
    places: Places,
}

/// The connections that have a place.
#[derive(Debug)]
struct Places {
    /// In order of arrival: later connections have higher numbers. A failed one is not reported,
    /// and leaves when its turn comes.
    waiting: BTreeSet<ConnectionId>,
    inside: HashSet<ConnectionId>,
    peers_max: usize,
    /// Whether the log already says that the socket is full.
    is_full: bool,
}

/// What to do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LobbyAction {
    /// This connection must go if it is still waiting.
    Away(ConnectionId),
    /// This connection has authenticated.
    In(ConnectionId),
    /// This connection has ended.
    Left(ConnectionId),
    /// Something was missed: call [`Lobby::recount`] with the authenticated connections.
    Recount,
}

impl Lobby {
    pub(crate) fn new(monitor: Monitor, peers_max: usize) -> Self {
        Self { monitor, places: Places::new(peers_max) }
    }

    /// Returns what to do next; never resolves once the socket is closed.
    ///
    /// # Cancel safety
    /// A dropped wait loses nothing.
    pub(crate) async fn next(&mut self) -> LobbyAction {
        loop {
            let turn = match self.monitor.next().await {
                ConnectionEvent::Came(connection) => {
                    self.places.came(connection).map(LobbyAction::Away)
                }
                ConnectionEvent::In(connection) => {
                    self.places.entered(connection);
                    Some(LobbyAction::In(connection))
                }
                ConnectionEvent::Left(connection) => {
                    self.places.left(connection);
                    Some(LobbyAction::Left(connection))
                }
                ConnectionEvent::Missed => Some(LobbyAction::Recount),
            };
            if let Some(turn) = turn {
                return turn;
            }
        }
    }

    /// Sets the connections that are authenticated now.
    pub(crate) fn recount(&mut self, inside: impl Iterator<Item = ConnectionId>) {
        self.places.recount(inside);
    }
}

impl Places {
    fn new(peers_max: usize) -> Self {
        Self { waiting: BTreeSet::new(), inside: HashSet::new(), peers_max, is_full: false }
    }

    /// Registers a new connection; returns the one that must go for it, which may be itself.
    fn came(&mut self, connection: ConnectionId) -> Option<ConnectionId> {
        self.waiting.insert(connection);
        let waiting_max = WAITING_MAX.min(self.peers_max / 4).max(1);
        let is_full = self.waiting.len() + self.inside.len() > self.peers_max;
        if is_full && !self.is_full {
            let peers_max = self.peers_max;
            tracing::warn!(
                peers_max,
                "a HOOT01 socket has no room for another connection (open files)"
            );
        }
        self.is_full = is_full;
        if self.waiting.len() <= waiting_max && !is_full {
            return None;
        }
        metrics::counter!("ringback_hoot_disconnected_total", "why" => "lobby").increment(1);
        self.waiting.pop_first()
    }

    fn entered(&mut self, connection: ConnectionId) {
        self.waiting.remove(&connection);
        self.inside.insert(connection);
    }

    fn left(&mut self, connection: ConnectionId) {
        self.waiting.remove(&connection);
        self.inside.remove(&connection);
    }

    fn recount(&mut self, inside: impl Iterator<Item = ConnectionId>) {
        self.inside = inside.collect();
        self.waiting.retain(|connection| !self.inside.contains(connection));
    }
}

#[cfg(test)]
mod tests {
    use super::{Places, WAITING_MAX};
    use crate::transport::ConnectionId;

    const PLENTY: usize = 100_000;

    /// Rule: half-open handshakes are bounded, and a peer that authenticates gets in among any
    /// number of them.
    #[test]
    fn strangers_push_each_other_out_and_nobody_else() {
        let mut places = Places::new(PLENTY);
        let id = ConnectionId::of_test;
        let mut pushed = Vec::new();
        for n in 0..1000 {
            pushed.extend(places.came(id(2 * n)));
            // A well-behaved peer between two strangers.
            pushed.extend(places.came(id(2 * n + 1)));
            places.entered(id(2 * n + 1));
        }
        assert!(places.waiting.len() <= WAITING_MAX);
        assert_eq!(places.inside.len(), 1000);
        // Only strangers, oldest first.
        let n_pushed = pushed.len() as u64;
        assert!(n_pushed >= 1000 - WAITING_MAX as u64);
        assert_eq!(pushed, (0..n_pushed).map(|n| id(2 * n)).collect::<Vec<_>>());
    }

    #[test]
    fn with_all_places_taken_the_next_one_goes() {
        let mut places = Places::new(8);
        let id = ConnectionId::of_test;
        for n in 0..8 {
            assert_eq!(places.came(id(n)), None);
            places.entered(id(n));
        }
        assert_eq!(places.came(id(8)), Some(id(8)));
        places.left(id(3));
        assert_eq!(places.came(id(9)), None);
        // A waiting stranger makes room first.
        assert_eq!(places.came(id(10)), Some(id(9)));
    }

    #[test]
    fn what_was_missed_is_counted_again() {
        let mut places = Places::new(PLENTY);
        let id = ConnectionId::of_test;
        for n in 0..5 {
            places.came(id(n));
        }
        places.entered(id(0));
        places.recount([id(1), id(2), id(7)].into_iter());
        assert_eq!(places.waiting.iter().copied().collect::<Vec<_>>(), [id(3), id(4)]);
        assert_eq!(places.inside.len(), 3);
    }
}
