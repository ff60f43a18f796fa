//! The task that owns the socket: takes orders, sends frames, and passes replies to their waiters.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use ringback_proto::frame::{Body, Command, Frame, FrameError};
use ringback_proto::ids::RequestId;
use ringback_proto::{Error, ErrorKind};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::time::{Interval, MissedTickBehavior};

use crate::config::Config;
use crate::error::{closed, link_lost, no_link, unexpected};
use crate::heartbeat::{Beat, Heartbeat};
use crate::pending::{Pending, Waiter};
use crate::transport::{Dealer, Link, LinkEvent, LinkState, Unsent};

/// A frame to send, and the waiter for its reply; a credit has no waiter.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) frame: Frame,
    pub(crate) waiter: Option<Waiter>,
}

/// Commands that are handled even while orders are backed up. Each carries the permit of its call,
/// so there are never more of them than calls, and their queue never fills.
#[derive(Debug)]
pub(crate) enum Control {
    /// The reply is no longer wanted: notify the daemon.
    Cancel { request_id: RequestId, permit: OwnedSemaphorePermit },
    /// The stream has ended.
    Finished { request_id: RequestId, permit: OwnedSemaphorePermit },
    /// Disconnect, then drop `done`.
    Close { done: oneshot::Sender<()> },
}

#[derive(Debug)]
pub(crate) struct ClientTask {
    dealer: Dealer,
    link: Link,
    inbox: mpsc::Receiver<Order>,
    control: mpsc::Receiver<Control>,
    state: watch::Sender<LinkState>,
    connection_id: Option<u64>,
    pending: Pending,
    /// Frames that did not fit into the socket. Orders wait while there are any.
    unsent: VecDeque<Unsent>,
    heartbeat: Heartbeat,
    interval: Duration,
}

/// The other ends of the task's queues.
pub(crate) struct Handles {
    pub(crate) inbox: mpsc::Sender<Order>,
    pub(crate) control: mpsc::Sender<Control>,
    pub(crate) state: watch::Receiver<LinkState>,
}

impl ClientTask {
    /// Makes a task on a link that is up.
    pub(crate) fn new(
        config: &Config,
        dealer: Dealer,
        link: Link,
        connection_id: u64,
    ) -> (Self, Handles) {
        let (inbox_sender, inbox) = mpsc::channel(config.calls_max);
        // One more than there are calls, for the close.
        let (control_sender, control) = mpsc::channel(config.calls_max + 1);
        let (state, state_receiver) = watch::channel(LinkState::Up);
        let task = Self {
            dealer,
            link,
            inbox,
            control,
            state,
            connection_id: Some(connection_id),
            pending: Pending::default(),
            unsent: VecDeque::new(),
            heartbeat: Heartbeat::new(config.heartbeat_misses_max),
            interval: config.heartbeat_interval,
        };
        let handles =
            Handles { inbox: inbox_sender, control: control_sender, state: state_receiver };
        (task, handles)
    }

    /// Runs until it is closed or every handle is gone.
    pub(crate) async fn run(mut self) {
        let mut ticks = ticks(self.interval);
        self.send(ready());
        let done = loop {
            let flow = tokio::select! {
                biased;
                control = self.control.recv() => self.on_control(control),
                event = self.link.changed() => self.on_link(event).await,
                _ = ticks.tick() => self.on_interval().await,
                () = self.dealer.writable(), if !self.unsent.is_empty() => self.on_writable(),
                received = self.dealer.recv() => self.on_received(received),
                Some(order) = self.inbox.recv(), if self.unsent.is_empty() => self.on_order(order),
            };
            if let ControlFlow::Break(done) = flow {
                break done;
            }
        };
        self.pending.fail_all(&closed());
        self.dealer.close().await;
        // The closing side waits for this.
        drop(done);
    }

    fn on_control(&mut self, control: Option<Control>) -> Flow {
        match control {
            Some(Control::Cancel { request_id, permit }) => {
                if self.pending.remove(request_id) {
                    self.send(Frame::new(Command::Cancel, request_id, Body::Empty));
                }
                drop(permit);
                ControlFlow::Continue(())
            }
            Some(Control::Finished { request_id, permit }) => {
                self.pending.remove(request_id);
                drop(permit);
                ControlFlow::Continue(())
            }
            Some(Control::Close { done }) => {
                self.send(Frame::new(Command::Disconnect, RequestId::random(), Body::Empty));
                ControlFlow::Break(Some(done))
            }
            None => ControlFlow::Break(None),
        }
    }

    async fn on_link(&mut self, event: LinkEvent) -> Flow {
        match event {
            LinkEvent::Up { connection_id } => self.link_up(connection_id),
            LinkEvent::Down { reason } => self.link_down(LinkState::Down, &reason),
            LinkEvent::Refused { reason } => self.link_down(LinkState::Refused, &reason),
            LinkEvent::Unclear => {
                self.link_down(LinkState::Down, "its events arrived too fast");
                if let Some(connection_id) = self.dealer.connection().await {
                    self.link_up(connection_id);
                }
            }
            LinkEvent::Closed => return ControlFlow::Break(None),
        }
        ControlFlow::Continue(())
    }

    fn link_up(&mut self, connection_id: u64) {
        tracing::debug!("connected to the daemon again");
        self.connection_id = Some(connection_id);
        self.heartbeat.heard();
        self.state.send_replace(LinkState::Up);
        self.send(ready());
    }

    fn link_down(&mut self, state: LinkState, reason: &str) {
        tracing::debug!(reason, "the connection to the daemon is lost");
        // A reply that arrived before the end still counts.
        while let Some(received) = self.dealer.try_recv() {
            self.on_frame(received);
        }
        self.connection_id = None;
        self.state.send_replace(state);
        self.unsent.clear();
        self.pending.fail_all(&link_lost(reason));
    }

    async fn on_interval(&mut self) -> Flow {
        if let Some(connection_id) = self.connection_id {
            match self.heartbeat.interval_over() {
                Beat::Send => {
                    self.send(Frame::new(Command::Heartbeat, RequestId::random(), Body::Empty));
                }
                Beat::Dead => {
                    self.link_down(LinkState::Down, "no heartbeat received");
                    self.dealer.drop_connection(connection_id).await;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn on_received(&mut self, received: Option<Result<Frame, FrameError>>) -> Flow {
        let Some(received) = received else {
            return ControlFlow::Break(None);
        };
        self.heartbeat.heard();
        self.on_frame(received);
        ControlFlow::Continue(())
    }

    fn on_frame(&mut self, received: Result<Frame, FrameError>) {
        match received {
            Ok(frame) => match frame.command {
                Command::Reply => {
                    if !self.pending.answer(frame) {
                        tracing::trace!("ignoring a reply without a waiter");
                    }
                }
                Command::Heartbeat => {}
                Command::Ready
                | Command::Request
                | Command::Disconnect
                | Command::Cancel
                | Command::Credit => {
                    tracing::debug!(command = ?frame.command, "ignoring an unexpected frame");
                }
            },
            Err(error) => {
                tracing::debug!(%error, "ignoring a message that is not a frame");
                if let Some(request_id) = error.request_id {
                    self.pending.fail(request_id, unexpected(error));
                }
            }
        }
    }

    fn on_order(&mut self, order: Order) -> Flow {
        let Order { frame, waiter } = order;
        if let Some(waiter) = waiter {
            if self.connection_id.is_none() {
                waiter.fail(no_link());
                return ControlFlow::Continue(());
            }
            // Dropped before it was sent: then it never is.
            if waiter.is_gone() {
                return ControlFlow::Continue(());
            }
            if let Err(waiter) = self.pending.insert(frame.request_id, waiter) {
                waiter.fail(Error::new(ErrorKind::Conflict, "the request id is already in flight"));
                return ControlFlow::Continue(());
            }
        }
        self.send(frame);
        ControlFlow::Continue(())
    }

    fn send(&mut self, frame: Frame) {
        if self.connection_id.is_none() {
            return;
        }
        // Behind those that wait, so that a cancel never overtakes its request.
        self.unsent.push_back(Dealer::pack(frame));
        self.flush();
    }

    fn on_writable(&mut self) -> Flow {
        self.flush();
        ControlFlow::Continue(())
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

/// Whether the task continues, or ends and notifies a waiter.
type Flow = ControlFlow<Option<oneshot::Sender<()>>>;

#[derive(Serialize)]
struct Ready {
    protocol: &'static str,
    accepts_binary: bool,
    tools: [&'static str; 0],
}

/// Sent on every new connection: without it content is returned inside MsgPack.
fn ready() -> Frame {
    let body =
        rmp_serde::to_vec_named(&Ready { protocol: "HOOT01", accepts_binary: true, tools: [] })
            .expect("three fields can be encoded");
    Frame::new(Command::Ready, RequestId::random(), Body::MsgPack(Bytes::from(body)))
}

fn ticks(interval: Duration) -> Interval {
    let mut ticks = tokio::time::interval(interval);
    // After a pause on our side the other side must get its full interval again.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
