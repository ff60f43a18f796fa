//! The connected peers: who each is, what it called, and what waits for it.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ringback_broker::{CallControl, Credential};
use ringback_proto::ids::RequestId;
use tokio::task::JoinSet;

use crate::backlog::Backlog;
use crate::transport::{AuthenticatedPeer, ConnectionId, Generation};
use crate::worker::Worker;

/// Distinguishes two calls of a peer with the same id: the broker may answer both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallNumber(u64);

/// A peer.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Its routing id.
    pub(crate) name: Bytes,
    /// The connections of the socket when this one was last known to be open.
    pub(crate) seen: Generation,
    pub(crate) credential: Credential,
    /// Whether it accepts RawBinary in any reply.
    pub(crate) accepts_binary: bool,
    /// Its running calls.
    calls: HashMap<RequestId, Vec<(CallNumber, CallControl)>>,
    n_calls_ever: u64,
    /// The tasks that pass on the replies of its calls. Dropping them means that the callers have
    /// left.
    pub(crate) tasks: JoinSet<()>,
    pub(crate) backlog: Backlog,
    /// Its worker, if it offers tools.
    pub(crate) worker: Option<Worker>,
}

impl Peer {
    fn new(
        name: Bytes,
        seen: Generation,
        credential: Credential,
        backlog_bytes_max: usize,
    ) -> Self {
        Self {
            name,
            seen,
            credential,
            accepts_binary: false,
            calls: HashMap::new(),
            n_calls_ever: 0,
            tasks: JoinSet::new(),
            backlog: Backlog::new(backlog_bytes_max),
            worker: None,
        }
    }

    /// Records the start of a call.
    pub(crate) fn begin(&mut self, request_id: RequestId, control: CallControl) -> CallNumber {
        self.n_calls_ever += 1;
        let number = CallNumber(self.n_calls_ever);
        self.calls.entry(request_id).or_default().push((number, control));
        number
    }

    /// Records that a call was answered.
    pub(crate) fn end(&mut self, request_id: RequestId, number: CallNumber) {
        if let Some(calls) = self.calls.get_mut(&request_id) {
            calls.retain(|(other, _)| *other != number);
            if calls.is_empty() {
                self.calls.remove(&request_id);
            }
        }
        while self.tasks.try_join_next().is_some() {}
    }

    /// The running calls with an id.
    pub(crate) fn calls(&self, request_id: RequestId) -> impl Iterator<Item = &CallControl> {
        self.calls.get(&request_id).into_iter().flatten().map(|(_, control)| control)
    }

    /// The peer says goodbye: no one waits for its calls any more. It may come back.
    pub(crate) fn leave(&mut self) {
        self.accepts_binary = false;
        self.calls.clear();
        self.tasks = JoinSet::new();
        self.worker = None;
    }
}

/// A connection whose token is no longer valid.
#[derive(Debug)]
pub(crate) struct NoCredential;

/// The peers by connection: a routing id may be reused by another peer.
#[derive(Debug)]
pub(crate) struct Peers {
    by_connection: HashMap<ConnectionId, Peer>,
    /// Those that something waits for, so that the loop does not have to check all peers.
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

    /// Notes that a peer was connected at `seen`. An error means that it has no valid credential.
    pub(crate) fn see(
        &mut self,
        connected: AuthenticatedPeer,
        seen: Generation,
        credential: impl FnOnce(&AuthenticatedPeer) -> Option<Credential>,
    ) -> Result<(), NoCredential> {
        match self.by_connection.entry(connected.id) {
            Entry::Occupied(mut known) => known.get_mut().seen = seen,
            Entry::Vacant(place) => {
                let credential = credential(&connected).ok_or(NoCredential)?;
                place.insert(Peer::new(connected.name, seen, credential, self.backlog_bytes_max));
            }
        }
        Ok(())
    }

    /// Removes the peers that are not connected.
    pub(crate) fn retain(&mut self, connected: &HashSet<ConnectionId>) {
        self.by_connection.retain(|connection, _| connected.contains(connection));
        self.behind.retain(|connection| connected.contains(connection));
    }

    /// Removes a peer that has left, along with its calls.
    pub(crate) fn remove(&mut self, connection: ConnectionId) {
        self.by_connection.remove(&connection);
        self.behind.remove(&connection);
    }

    /// Records whether something waits for a peer.
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

    /// Whether any call is running.
    pub(crate) fn has_calls(&self) -> bool {
        self.by_connection.values().any(|peer| !peer.calls.is_empty())
    }

    /// The peers that something waits for.
    pub(crate) fn behind(&self) -> Vec<ConnectionId> {
        self.behind.iter().copied().collect()
    }

    /// The connections whose peer satisfies a condition.
    pub(crate) fn which(&self, holds: impl Fn(&Peer) -> bool) -> Vec<ConnectionId> {
        let held = self.by_connection.iter().filter(|(_, peer)| holds(peer));
        held.map(|(connection, _)| *connection).collect()
    }

    /// Dismisses workers that were silent for `patience`; as callers they may stay.
    pub(crate) fn dismiss_silent(&mut self, now: Instant, patience: Duration) {
        for peer in self.by_connection.values_mut() {
            if peer.worker.as_ref().is_some_and(|worker| worker.is_silent(now, patience)) {
                tracing::warn!(principal = %peer.credential.id(), "dropping a silent worker");
                peer.worker = None;
            }
        }
    }

    /// Dismisses all workers.
    pub(crate) fn dismiss_workers(&mut self) {
        for peer in self.by_connection.values_mut() {
            peer.worker = None;
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_connection.len()
    }
}
