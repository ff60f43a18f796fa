//! The peers that are connected: who each is, what it asked for, what waits for it.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use bytes::Bytes;
use ringback_broker::{CallControl, Credential};
use ringback_proto::ids::RequestId;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::backlog::Backlog;
use crate::transport::{Connected, ConnectionId};
use crate::worker::Worker;

/// Tells two calls of a peer apart that carry the same id: the broker may answer both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallNumber(u64);

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its routing id.
    pub(crate) name: Bytes,
    pub(crate) credential: Credential,
    /// Whether it takes RawBinary in any reply.
    pub(crate) accepts_binary: bool,
    /// Its calls under way.
    calls: HashMap<RequestId, Vec<(CallNumber, CallControl)>>,
    n_calls_ever: u64,
    /// The tasks that pass the replies of its calls on. Dropped, its callers have left.
    pub(crate) tasks: JoinSet<()>,
    pub(crate) backlog: Backlog,
    /// What it offers tools by, if it does.
    pub(crate) worker: Option<Worker>,
}

impl Peer {
    fn new(name: Bytes, credential: Credential, backlog_bytes_max: usize) -> Self {
        Self {
            name,
            credential,
            accepts_binary: false,
            calls: HashMap::new(),
            n_calls_ever: 0,
            tasks: JoinSet::new(),
            backlog: Backlog::new(backlog_bytes_max),
            worker: None,
        }
    }

    /// A call begins.
    pub(crate) fn begin(&mut self, request_id: RequestId, control: CallControl) -> CallNumber {
        self.n_calls_ever += 1;
        let number = CallNumber(self.n_calls_ever);
        self.calls.entry(request_id).or_default().push((number, control));
        number
    }

    /// A call has been answered.
    pub(crate) fn end(&mut self, request_id: RequestId, number: CallNumber) {
        if let Some(calls) = self.calls.get_mut(&request_id) {
            calls.retain(|(other, _)| *other != number);
            if calls.is_empty() {
                self.calls.remove(&request_id);
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    /// The calls under way that carry an id.
    pub(crate) fn calls(&self, request_id: RequestId) -> impl Iterator<Item = &CallControl> {
        self.calls.get(&request_id).into_iter().flatten().map(|(_, control)| control)
    }

    /// The peer says goodbye: whoever waited for its calls has left. It may come back.
    pub(crate) fn leave(&mut self) {
        self.accepts_binary = false;
        self.calls.clear();
        self.tasks = JoinSet::new();
        self.worker = None;
    }
}

/// The peers by their connection: a routing id may be used again by somebody else.
#[derive(Debug)]
pub(crate) struct Peers {
    by_connection: HashMap<ConnectionId, Peer>,
    /// Those that something waits for, so that nobody has to look at all of them.
    behind: HashSet<ConnectionId>,
    backlog_bytes_max: usize,
}

impl Peers {
    pub(crate) fn new(backlog_bytes_max: usize) -> Self {
        Self { by_connection: HashMap::new(), behind: HashSet::new(), backlog_bytes_max }
    }

    pub(crate) fn get(&mut self, connection: ConnectionId) -> Option<&mut Peer> {
        self.by_connection.get_mut(&connection)
    }

    /// These are all that are connected. Whoever is not among them has left, and with it whoever
    /// waited for its calls. Returns those that are nobody any more.
    pub(crate) fn update(
        &mut self,
        connected: Vec<Connected>,
        credential: impl Fn(&Connected) -> Option<Credential>,
    ) -> Vec<ConnectionId> {
        let mut left = std::mem::take(&mut self.by_connection);
        let mut nobodies = Vec::new();
        for connected in connected {
            let peer = left.remove(&connected.id).or_else(|| {
                let credential = credential(&connected)?;
                Some(Peer::new(connected.name.clone(), credential, self.backlog_bytes_max))
            });
            match peer {
                Some(peer) => drop(self.by_connection.insert(connected.id, peer)),
                None => nobodies.push(connected.id),
            }
        }
        self.behind.retain(|connection| self.by_connection.contains_key(connection));
        nobodies
    }

    /// A peer has left, and with it whoever waited for its calls.
    pub(crate) fn remove(&mut self, connection: ConnectionId) {
        self.by_connection.remove(&connection);
        self.behind.remove(&connection);
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

    /// Whether any call is under way.
    pub(crate) fn has_calls(&self) -> bool {
        self.by_connection.values().any(|peer| !peer.calls.is_empty())
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

    /// Workers that said nothing for so long are gone; as callers they may stay.
    pub(crate) fn dismiss_silent(&mut self, patience: Duration) {
        let now = Instant::now();
        for peer in self.by_connection.values_mut() {
            if peer.worker.as_ref().is_some_and(|worker| worker.is_silent(now, patience)) {
                tracing::warn!(principal = %peer.credential.id(), "dropping a silent worker");
                peer.worker = None;
            }
        }
    }

    /// No peer is a worker any more.
    pub(crate) fn dismiss_workers(&mut self) {
        for peer in self.by_connection.values_mut() {
            peer.worker = None;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_connection.len()
    }
}
