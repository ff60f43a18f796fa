//! The peers that have said something: who each is, what it asked for, what waits for it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringback_broker::{CallControl, Credential};
use ringback_proto::ids::RequestId;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::transport::{ConnectionId, Sender, Unsent};

/// A stream waits while so much is waiting for its peer, so that its own buffer decides what is
/// dropped.
const STREAM_BACKLOG_BYTES: usize = 256 * 1024;

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) sender: Sender,
    pub(crate) credential: Credential,
    /// Whether it takes RawBinary in any reply.
    pub(crate) accepts_binary: bool,
    /// Its calls under way. A second one with the same id replaces the control of the first, which
    /// goes on: the broker tells repeats apart.
    pub(crate) calls: HashMap<RequestId, CallControl>,
    /// The tasks that pass the replies of its calls on. Dropped, its callers have left.
    pub(crate) tasks: JoinSet<()>,
    pub(crate) backlog: Backlog,
}

/// What waits for a peer that does not read.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    queue: VecDeque<(usize, Unsent)>,
    room: Arc<Room>,
}

/// How much waits for a peer, as its streams see it.
#[derive(Debug, Default)]
pub(crate) struct Room {
    waiting_bytes: AtomicUsize,
    less: Notify,
}

impl Room {
    /// Resolves when a stream may send more.
    pub(crate) async fn wait(&self) {
        loop {
            let less = self.less.notified();
            if self.waiting_bytes.load(Ordering::Acquire) <= STREAM_BACKLOG_BYTES {
                return;
            }
            less.await;
        }
    }
}

impl Backlog {
    pub(crate) fn room(&self) -> &Arc<Room> {
        &self.room
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.room.waiting_bytes.load(Ordering::Relaxed)
    }

    pub(crate) fn push(&mut self, n_bytes: usize, unsent: Unsent) {
        self.room.waiting_bytes.fetch_add(n_bytes, Ordering::AcqRel);
        self.queue.push_back((n_bytes, unsent));
    }

    pub(crate) fn pop(&mut self) -> Option<(usize, Unsent)> {
        let next = self.queue.pop_front()?;
        self.room.waiting_bytes.fetch_sub(next.0, Ordering::AcqRel);
        self.room.less.notify_waiters();
        Some(next)
    }

    /// Puts a message back that still does not leave.
    pub(crate) fn push_front(&mut self, n_bytes: usize, unsent: Unsent) {
        self.room.waiting_bytes.fetch_add(n_bytes, Ordering::AcqRel);
        self.queue.push_front((n_bytes, unsent));
    }
}

/// The peers by their connection: a routing id may be used again by somebody else.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    by_connection: HashMap<ConnectionId, Peer>,
    /// Those that something waits for, so that nobody has to look at all of them.
    behind: HashSet<ConnectionId>,
}

impl Peers {
    pub(crate) fn get(&mut self, connection: ConnectionId) -> Option<&mut Peer> {
        self.by_connection.get_mut(&connection)
    }

    pub(crate) fn insert(&mut self, sender: Sender, credential: Credential) -> &mut Peer {
        self.by_connection.entry(sender.connection()).or_insert_with(|| Peer {
            sender,
            credential,
            accepts_binary: false,
            calls: HashMap::new(),
            tasks: JoinSet::new(),
            backlog: Backlog::default(),
        })
    }

    /// A peer has left, and with it whoever waited for its calls.
    pub(crate) fn remove(&mut self, connection: ConnectionId) {
        self.by_connection.remove(&connection);
        self.behind.remove(&connection);
    }

    /// Only these connections are left.
    pub(crate) fn retain(&mut self, left: &[ConnectionId]) {
        let left: HashSet<_> = left.iter().collect();
        self.by_connection.retain(|connection, _| left.contains(connection));
        self.behind.retain(|connection| left.contains(connection));
    }

    /// Notes whether something waits for a peer.
    pub(crate) fn note_backlog(&mut self, connection: ConnectionId) {
        let peer = self.by_connection.get(&connection);
        if peer.is_some_and(|peer| !peer.backlog.is_empty()) {
            self.behind.insert(connection);
        } else {
            self.behind.remove(&connection);
        }
    }

    /// Whether something waits for any peer.
    pub(crate) fn has_backlog(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Those that something waits for.
    pub(crate) fn behind(&self) -> Vec<ConnectionId> {
        self.behind.iter().copied().collect()
    }

    /// The connections of which something holds.
    pub(crate) fn which(&self, holds: impl Fn(&Peer) -> bool) -> Vec<ConnectionId> {
        let held = self.by_connection.iter().filter(|(_, peer)| holds(peer));
        held.map(|(connection, _)| *connection).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_connection.len()
    }
}
