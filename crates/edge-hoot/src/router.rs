//! The loop that owns a ROUTER socket and its peers.

use std::sync::Arc;
use std::time::Duration;

use ringback_broker::{Answer, Broker, Call, Edge};
use ringback_proto::frame::{Body, Command, Frame, Prefix, Text};
use ringback_proto::ready::Ready;
use ringback_proto::{Error, ErrorKind, ResponseEnvelope, Result};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::backlog::Backlog;
use crate::call::{CallMessage, Forward, is_content};
use crate::clock::Clock;
use crate::config::Config;
use crate::lobby::{Lobby, LobbyAction};
use crate::peers::{Peer, Peers};
use crate::transport::{ConnectionId, ReceivedMessage, Router, SendError};
use crate::wire::{self, ReplyAddress};
use crate::worker::{Link, Offer, OfferResult, Worker};

/// Replies waiting for the loop.
const INBOX: usize = 1024;
/// Messages or replies to take in a row before the loop looks at anything else.
const BATCH: usize = 64;
/// How soon to retry a peer that did not read.
const RETRY: Duration = Duration::from_millis(5);
/// The end of a token closes its connections within a second.
const SWEEP: Duration = Duration::from_millis(500);

/// The owner of one ROUTER socket.
#[derive(Debug)]
pub(crate) struct RouterLoop {
    pub(crate) router: Router,
    pub(crate) broker: Broker,
    /// The runtime for the tasks of calls: not the thread of the sockets.
    pub(crate) workers: Handle,
    pub(crate) peer_idle: Duration,
    clock: Clock,
    pub(crate) set_trace_parent: fn(&Span, &str),
    lobby: Lobby,
    peers: Peers,
    inbox: mpsc::Receiver<CallMessage>,
    to_self: mpsc::Sender<CallMessage>,
}

impl RouterLoop {
    pub(crate) fn new(
        router: Router,
        lobby: Lobby,
        broker: Broker,
        workers: Handle,
        config: &Config,
    ) -> Self {
        let (to_self, inbox) = mpsc::channel(INBOX);
        Self {
            lobby,
            router,
            broker,
            workers,
            peer_idle: config.peer_idle,
            clock: config.clock.clone(),
            set_trace_parent: config.set_trace_parent,
            peers: Peers::new(config.peer_backlog_bytes_max),
            inbox,
            to_self,
        }
    }

    /// Serves until `stop`, then until the running calls have ended or `abort`.
    pub(crate) async fn run(mut self, stop: CancellationToken, abort: CancellationToken) {
        let mut sweep = tokio::time::interval(SWEEP);
        let mut retry = tokio::time::interval(RETRY);
        retry.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = abort.cancelled() => break,
                received = self.router.recv(), if !stop.is_cancelled() => match received {
                    Some(received) => self.on_messages(received).await,
                    None => break,
                },
                Some(told) = self.inbox.recv() => self.on_replies(told).await,
                turn = self.lobby.next() => self.on_turn(turn).await,
                _ = retry.tick(), if self.peers.has_backlog() => self.retry().await,
                _ = sweep.tick() => self.sweep().await,
                () = stop.cancelled(), if !stop.is_cancelled() => {}
            }
            if stop.is_cancelled() {
                // Nothing is read any more, so no answer of theirs could arrive.
                self.peers.dismiss_workers();
                if self.is_idle() {
                    break;
                }
            }
        }
        drop(self.peers);
        self.router.close().await;
    }

    fn is_idle(&self) -> bool {
        !self.peers.has_backlog() && !self.peers.has_calls()
    }

    /// Returns whether a connection is open, and learns of its peer. Until the next await, the
    /// peer's routing id then means this connection: no other can have taken it.
    ///
    /// The library is asked about this one connection, and only if others came or went since the
    /// last time: a list of all of them for each that comes would cost their square, and leave the
    /// freed lists' pages resident.
    async fn settle(&mut self, connection: ConnectionId) -> bool {
        loop {
            // Before the answer, so that a change in between is noticed.
            let generation = self.router.generation();
            if self.peers.get(connection).is_some_and(|peer| peer.seen == generation) {
                return true;
            }
            let Some(connected) = self.router.connected(connection).await else {
                self.peers.remove(connection);
                return false;
            };
            let credential = |connected: &_| self.router.credential(connected);
            if self.peers.see(connected, generation, credential).is_err() {
                self.router.disconnect(connection).await;
                return false;
            }
        }
    }

    async fn on_turn(&mut self, turn: LobbyAction) {
        match turn {
            LobbyAction::Away(connection) => self.router.turn_away(connection).await,
            LobbyAction::In(connection) => drop(self.settle(connection).await),
            LobbyAction::Left(connection) => {
                // What it sent before it left still counts.
                let waiting = self.take_batch(Vec::new());
                self.peers.remove(connection);
                self.on_batch(waiting).await;
            }
            LobbyAction::Recount => self.recount().await,
        }
    }

    /// Compares the peers with all connections, after some comings and goings were missed.
    async fn recount(&mut self) {
        let waiting = self.take_batch(Vec::new());
        let connected = self.router.all_connected().await;
        self.lobby.recount(connected.iter().copied());
        self.peers.retain(&connected);
        for connection in connected {
            self.settle(connection).await;
        }
        self.on_batch(waiting).await;
    }

    async fn on_messages(&mut self, first: ReceivedMessage) {
        let batch = self.take_batch(vec![first]);
        self.on_batch(batch).await;
    }

    /// Takes what has already arrived. A Cancel is handled now: its peer may have left right after
    /// it, and then its calls are gone when its turn comes.
    fn take_batch(&mut self, mut batch: Vec<ReceivedMessage>) -> Vec<ReceivedMessage> {
        while batch.len() < BATCH
            && let Some(next) = self.router.try_recv()
        {
            batch.push(next);
        }
        for (connection, decoded) in &batch {
            if let Ok((_, frame)) = decoded
                && frame.command == Command::Cancel
            {
                self.control(*connection, frame, |call| call.cancel());
            }
        }
        batch
    }

    async fn on_batch(&mut self, batch: Vec<ReceivedMessage>) {
        for received in batch {
            self.on_message(received).await;
        }
    }

    async fn on_message(&mut self, (connection, decoded): ReceivedMessage) {
        if !self.settle(connection).await {
            // The peer has left, and no one would read the answer.
            return metrics::counter!("ringback_hoot_late_total").increment(1);
        }
        let Some(peer) = self.peers.get(connection) else { return };
        if let Some(worker) = &mut peer.worker {
            worker.heard(self.clock.now());
        }
        match decoded {
            Ok((prefix, frame)) => self.on_frame(connection, prefix, frame).await,
            Err(error) => {
                metrics::counter!("ringback_hoot_malformed_total").increment(1);
                if let Some((prefix, reply)) = wire::malformed(error) {
                    self.send(connection, &prefix, reply).await;
                }
            }
        }
    }

    async fn on_frame(&mut self, connection: ConnectionId, prefix: Prefix, frame: Frame) {
        match frame.command {
            Command::Request => self.on_request(connection, prefix, &frame).await,
            Command::Heartbeat => {
                let beat = ReplyAddress::new(prefix, &frame, false);
                let answer = beat.frame(Command::Heartbeat, Body::Empty);
                self.send(connection, &beat.prefix, answer).await;
            }
            Command::Ready => self.on_ready(connection, prefix, &frame).await,
            Command::Cancel => self.control(connection, &frame, |call| call.cancel()),
            Command::Credit => {
                if let Body::Credit(bytes) = frame.body {
                    self.control(connection, &frame, |call| call.add_credit(bytes));
                }
            }
            Command::Disconnect => {
                if let Some(peer) = self.peers.get(connection) {
                    peer.leave();
                }
            }
            Command::Reply => self.on_workers_reply(connection, &prefix, &frame).await,
        }
    }

    async fn on_request(&mut self, connection: ConnectionId, prefix: Prefix, frame: &Frame) {
        let Some(peer) = self.peers.get(connection) else { return };
        let reply_to = ReplyAddress::new(prefix, frame, peer.accepts_binary);
        let mut with_content = false;
        let admit = |tool: &str| self.broker.may_call(&peer.credential, Edge::Hoot, tool);
        let answer = match wire::request(frame, admit) {
            Ok(envelope) => {
                with_content = is_content(&envelope.request);
                let call = Call {
                    credential: &peer.credential,
                    edge: Edge::Hoot,
                    envelope,
                    request_id: Some(frame.request_id),
                };
                let span = call_span(frame, call.envelope.request.name(), self.set_trace_parent);
                let _entered = span.entered();
                self.broker.call(call)
            }
            Err(error) => Answer::Now(error.into()),
        };
        match answer {
            Answer::Now(reply) => {
                let reply = peer.backlog.room().count(reply_to.reply(reply));
                self.send(connection, &reply_to.prefix, reply).await;
            }
            Answer::Later(replies, control) => {
                let forward = Forward {
                    to: connection,
                    reply_to,
                    number: peer.begin(frame.request_id, control),
                    is_content: with_content,
                    room: Arc::clone(peer.backlog.room()),
                    patience: self.peer_idle,
                    router: self.to_self.clone(),
                };
                peer.tasks.spawn_on(forward.run(replies), &self.workers);
            }
        }
    }

    async fn on_ready(&mut self, connection: ConnectionId, prefix: Prefix, frame: &Frame) {
        let Some(peer) = self.peers.get(connection) else { return };
        let reply_to = ReplyAddress::new(prefix, frame, false);
        let reply = match ready(frame) {
            Ok(ready) if ready.tools.is_empty() => {
                peer.accepts_binary = ready.accepts_binary;
                peer.worker = None;
                ResponseEnvelope::Ack { message: "welcome".to_owned(), job_id: None }
            }
            Ok(ready) => {
                peer.accepts_binary = ready.accepts_binary;
                let offer = Offer { tools: ready.tools, reply_to };
                return self.on_offer(connection, &frame.service, offer).await;
            }
            Err(error) => error.into(),
        };
        let reply = reply_to.reply(reply);
        self.send(connection, &reply_to.prefix, reply).await;
    }

    /// Handles an offer of tools: the peer becomes a worker, or changes its tools.
    async fn on_offer(&mut self, connection: ConnectionId, service: &Text, offer: Offer) {
        let Some(peer) = self.peers.get(connection) else { return };
        let taken = match &peer.worker {
            Some(worker) => worker.offer(service, offer),
            None => OfferResult::NotByThis(offer),
        };
        let offer = match taken {
            OfferResult::Yes => return,
            OfferResult::NotByThis(offer) => offer,
            OfferResult::Busy(reply_to) => {
                let busy = reply_to.reply(Error::busy("the queue of your offers").into());
                return self.send(connection, &reply_to.prefix, busy).await;
            }
        };
        let link = Link {
            to: connection,
            room: Arc::clone(peer.backlog.room()),
            patience: self.peer_idle,
            router: self.to_self.clone(),
        };
        let (broker, credential) = (self.broker.clone(), peer.credential.clone());
        let (workers, now) = (&self.workers, self.clock.now());
        let worker = Worker::start(broker, credential, service.clone(), offer, link, workers, now);
        peer.worker = Some(worker);
    }

    async fn on_workers_reply(&mut self, connection: ConnectionId, prefix: &Prefix, frame: &Frame) {
        let Some(peer) = self.peers.get(connection) else { return };
        let Some(worker) = &mut peer.worker else {
            // The peer is not a worker, so no call waits for an answer.
            return metrics::counter!("ringback_hoot_unexpected_total").increment(1);
        };
        if worker.on_reply(&self.broker, &peer.credential, frame, &self.workers).is_break() {
            let stop = Frame::new(Command::Cancel, frame.request_id, Body::Empty);
            self.send(connection, prefix, stop).await;
        }
    }

    fn control(
        &mut self,
        connection: ConnectionId,
        frame: &Frame,
        tell: impl Fn(&ringback_broker::CallControl),
    ) {
        if let Some(peer) = self.peers.get(connection) {
            peer.calls(frame.request_id).for_each(tell);
        }
    }

    /// Replies come in bursts, because calls that share a commit end together. Where their tasks
    /// wait for this very core, letting them run first saves a wake-up for each.
    async fn on_replies(&mut self, first: CallMessage) {
        self.on_reply(first).await;
        let mut has_yielded = false;
        for _ in 1..BATCH {
            match self.inbox.try_recv() {
                Ok(next) => {
                    has_yielded = false;
                    self.on_reply(next).await;
                }
                Err(_) if has_yielded => return,
                Err(_) => {
                    std::thread::yield_now();
                    has_yielded = true;
                }
            }
        }
    }

    async fn on_reply(&mut self, told: CallMessage) {
        match told {
            CallMessage::Reply { to, reply_to, frame } => {
                self.send(to, &reply_to.prefix, frame).await;
            }
            CallMessage::Ended { to, reply_to, number } => {
                if let Some(peer) = self.peers.get(to) {
                    peer.end(reply_to.request_id, number);
                }
            }
            CallMessage::Stalled { to } => self.give_up(to).await,
        }
    }

    /// Sends to a connection that is still open. Never waits; what cannot leave is kept up to the
    /// peer's budget, and beyond it the peer is disconnected.
    async fn send(&mut self, connection: ConnectionId, prefix: &Prefix, frame: Frame) {
        if !self.settle(connection).await {
            return;
        }
        let Some(peer) = self.peers.get(connection) else { return };
        let weight = Backlog::weight(&frame);
        let unsent = Router::pack(prefix, frame);
        let full = if peer.backlog.is_empty() {
            match self.router.try_send(&peer.name, unsent) {
                Ok(()) => return,
                Err(SendError::Full(unsent)) => unsent,
                Err(SendError::Gone) => return self.peers.remove(connection),
            }
        } else {
            unsent
        };
        peer.backlog.push(weight, full);
        let is_over = peer.backlog.is_over();
        self.peers.note_backlog(connection);
        if is_over {
            self.give_up(connection).await;
        }
    }

    /// Disconnects a peer that does not read.
    async fn give_up(&mut self, connection: ConnectionId) {
        let Some(peer) = self.peers.get(connection) else { return };
        tracing::warn!(principal = %peer.credential.id(), "disconnecting a peer: not reading");
        metrics::counter!("ringback_hoot_disconnected_total", "why" => "backlog").increment(1);
        self.peers.remove(connection);
        self.router.disconnect(connection).await;
    }

    /// Retries what did not leave.
    async fn retry(&mut self) {
        for connection in self.peers.behind() {
            if !self.settle(connection).await {
                continue;
            }
            let Some(peer) = self.peers.get(connection) else { continue };
            if drain(&self.router, peer) {
                self.peers.note_backlog(connection);
            } else {
                self.peers.remove(connection);
            }
        }
    }

    /// Closes the connections of ended tokens, and the lines of silent workers.
    async fn sweep(&mut self) {
        let now = self.broker.now();
        for connection in self.peers.which(|peer| !peer.credential.is_valid(now)) {
            self.peers.remove(connection);
            self.router.disconnect(connection).await;
        }
        self.peers.dismiss_silent(self.clock.now(), self.peer_idle);
        metrics::gauge!("ringback_hoot_peers").set(self.peers.len() as f64);
    }
}

/// Sends what waits for a peer until something cannot leave. `false` if the peer has gone.
fn drain(router: &Router, peer: &mut Peer) -> bool {
    while let Some((n_bytes, unsent)) = peer.backlog.pop() {
        match router.try_send(&peer.name, unsent) {
            Ok(()) => {}
            Err(SendError::Full(unsent)) => {
                peer.backlog.push_front(n_bytes, unsent);
                return true;
            }
            Err(SendError::Gone) => return false,
        }
    }
    true
}

/// Returns a span for a call that belongs to a trace; none otherwise, because spans are not free.
fn call_span(frame: &Frame, tool: &str, set_trace_parent: fn(&Span, &str)) -> Span {
    if frame.traceparent.as_str().is_empty() {
        return Span::none();
    }
    let span = tracing::info_span!("call", tool, request_id = %frame.request_id);
    set_trace_parent(&span, frame.traceparent.as_str());
    span
}

fn ready(frame: &Frame) -> Result<Ready> {
    let Body::MsgPack(body) = &frame.body else {
        return Err(Error::new(ErrorKind::UnsupportedContentType, "send Ready as MsgPack (1)"));
    };
    ringback_proto::msgpack::check(body)?;
    let ready: Ready = rmp_serde::from_slice(body)
        .map_err(|error| Error::invalid(format!("invalid Ready: {error:.200}")))?;
    if ready.protocol != "HOOT01" {
        return Err(Error::invalid_field("protocol", "this daemon speaks HOOT01"));
    }
    Ok(ready)
}
