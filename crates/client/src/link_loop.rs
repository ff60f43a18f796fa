//! The part of a task that is the same for clients and workers: it keeps the connection alive,
//! notices its end, and sends frames in order.

use std::collections::VecDeque;

use ringback_proto::frame::{Body, Command, Frame, FrameError};
use ringback_proto::ids::RequestId;
use tokio::time::{Interval, MissedTickBehavior};

use crate::config::Config;
use crate::heartbeat::{Beat, Heartbeat};
use crate::transport::{Dealer, Link, LinkEvent, LinkState, UnsentFrame};

/// A socket and its connection.
#[derive(Debug)]
pub(crate) struct LinkLoop {
    dealer: Dealer,
    link: Link,
    connection_id: Option<u64>,
    /// Frames that did not fit into the socket.
    unsent: VecDeque<UnsentFrame>,
    heartbeat: Heartbeat,
    ticks: Interval,
    unfinished: Option<RecoveryStep>,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum LoopEvent<T> {
    /// Connected again.
    Up,
    /// The connection is lost.
    Down { state: LinkState, reason: String },
    /// A frame, or what is known of a message that is not a frame.
    Received(Result<Frame, FrameError>),
    /// The task's own future is ready.
    Own(T),
    /// The link took care of itself.
    Kept,
    /// The socket was closed.
    Closed,
}

/// Work after the end of a connection, repeated if its wait was dropped.
#[derive(Debug, Clone, Copy)]
enum RecoveryStep {
    /// Changes were missed: there may be a new connection already.
    FindConnection,
    /// The connection is dead, and must be dropped for another to be made.
    DropConnection(u64),
}

impl LinkLoop {
    /// Takes over a link that is up.
    pub(crate) fn new(config: &Config, dealer: Dealer, link: Link, connection_id: u64) -> Self {
        let mut ticks = tokio::time::interval(config.heartbeat_interval);
        // After a pause on our side the other side must get its full interval again.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self {
            dealer,
            link,
            connection_id: Some(connection_id),
            unsent: VecDeque::new(),
            heartbeat: Heartbeat::new(config.heartbeat_misses_max),
            ticks,
            unfinished: None,
        }
    }

    /// Whether there is a connection.
    pub(crate) const fn is_up(&self) -> bool {
        self.connection_id.is_some()
    }

    /// Whether every frame so far fitted into the socket. Others should wait for that.
    pub(crate) fn has_room(&self) -> bool {
        self.unsent.is_empty()
    }

    /// Waits for what happens next. The task's own future comes after the connection and before
    /// received frames.
    ///
    /// # Cancel safety
    /// A wait that is dropped loses nothing, if the own future loses nothing.
    pub(crate) async fn next<T>(&mut self, own: impl Future<Output = T>) -> LoopEvent<T> {
        if let Some(unfinished) = self.unfinished {
            return self.finish(unfinished).await;
        }
        tokio::select! {
            biased;
            event = self.link.changed() => self.on_link(event),
            _ = self.ticks.tick() => self.on_interval(),
            () = self.dealer.writable(), if !self.unsent.is_empty() => {
                self.flush();
                LoopEvent::Kept
            }
            own = own => LoopEvent::Own(own),
            received = self.dealer.recv() => self.on_received(received),
        }
    }

    /// Returns a message that has already arrived.
    pub(crate) fn try_recv(&mut self) -> Option<Result<Frame, FrameError>> {
        self.dealer.try_recv()
    }

    /// Sends a frame, behind those that wait; without a connection it is dropped.
    pub(crate) fn send(&mut self, frame: Frame) {
        if self.is_up() {
            self.unsent.push_back(Dealer::pack(frame));
            self.flush();
        }
    }

    /// Closes the socket after queued frames have been sent.
    pub(crate) async fn close(self) {
        self.dealer.close().await;
    }

    fn on_link<T>(&mut self, event: LinkEvent) -> LoopEvent<T> {
        match event {
            LinkEvent::Up { connection_id } => self.up(connection_id),
            LinkEvent::Down { reason } => self.down(LinkState::Down, reason),
            LinkEvent::Refused { reason } => self.down(LinkState::Refused, reason),
            LinkEvent::Unclear => {
                self.unfinished = Some(RecoveryStep::FindConnection);
                self.down(LinkState::Down, "its events arrived too fast".to_owned())
            }
            LinkEvent::Closed => LoopEvent::Closed,
        }
    }

    fn on_interval<T>(&mut self) -> LoopEvent<T> {
        let Some(connection_id) = self.connection_id else { return LoopEvent::Kept };
        match self.heartbeat.interval_over() {
            Beat::Send => {
                self.send(Frame::new(Command::Heartbeat, RequestId::random(), Body::Empty));
                LoopEvent::Kept
            }
            Beat::Dead => {
                self.unfinished = Some(RecoveryStep::DropConnection(connection_id));
                self.down(LinkState::Down, "no heartbeat received".to_owned())
            }
        }
    }

    fn on_received<T>(&mut self, received: Option<Result<Frame, FrameError>>) -> LoopEvent<T> {
        self.heartbeat.heard();
        received.map_or(LoopEvent::Closed, LoopEvent::Received)
    }

    async fn finish<T>(&mut self, unfinished: RecoveryStep) -> LoopEvent<T> {
        let found = match unfinished {
            RecoveryStep::FindConnection => self.dealer.connection().await,
            RecoveryStep::DropConnection(connection_id) => {
                self.dealer.drop_connection(connection_id).await;
                None
            }
        };
        self.unfinished = None;
        found.map_or(LoopEvent::Kept, |connection_id| self.up(connection_id))
    }

    fn up<T>(&mut self, connection_id: u64) -> LoopEvent<T> {
        tracing::debug!("connected to the daemon again");
        self.connection_id = Some(connection_id);
        self.heartbeat.heard();
        LoopEvent::Up
    }

    fn down<T>(&mut self, state: LinkState, reason: String) -> LoopEvent<T> {
        tracing::debug!(reason, "the connection to the daemon is lost");
        self.connection_id = None;
        self.unsent.clear();
        LoopEvent::Down { state, reason }
    }

    fn flush(&mut self) {
        while let Some(unsent) = self.unsent.pop_front() {
            if let Err(unsent) = self.dealer.try_send(unsent) {
                self.unsent.push_front(unsent);
                return;
            }
        }
    }
}
