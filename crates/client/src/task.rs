//! The task that owns the socket: takes orders, sends frames, and passes replies to their waiters.

use std::convert::Infallible;
use std::future::pending;
use std::ops::ControlFlow;

use bytes::Bytes;
use ringback_proto::frame::{Body, Command, Frame, FrameError};
use ringback_proto::ids::RequestId;
use ringback_proto::{Error, ErrorKind};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};

use crate::config::Config;
use crate::error::{closed, link_lost, no_link, unexpected};
use crate::link_loop::{LinkLoop, LoopEvent};
use crate::pending::{Pending, Waiter};
use crate::transport::LinkState;

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
    link: LinkLoop,
    /// Orders wait while the link has no room.
    inbox: mpsc::Receiver<Order>,
    control: mpsc::Receiver<Control>,
    state: watch::Sender<LinkState>,
    pending: Pending,
}

/// The other ends of the task's queues.
pub(crate) struct Handles {
    pub(crate) inbox: mpsc::Sender<Order>,
    pub(crate) control: mpsc::Sender<Control>,
    pub(crate) state: watch::Receiver<LinkState>,
}

impl ClientTask {
    /// Makes a task on a link that is up.
    pub(crate) fn new(config: &Config, link: LinkLoop) -> (Self, Handles) {
        let (inbox_sender, inbox) = mpsc::channel(config.calls_max);
        // One more than there are calls, for the close.
        let (control_sender, control) = mpsc::channel(config.calls_max + 1);
        let (state, state_receiver) = watch::channel(LinkState::Up);
        let task = Self { link, inbox, control, state, pending: Pending::default() };
        let handles =
            Handles { inbox: inbox_sender, control: control_sender, state: state_receiver };
        (task, handles)
    }

    /// Runs until it is closed or every handle is gone.
    pub(crate) async fn run(mut self) {
        self.link.send(ready());
        let done = loop {
            let flow = tokio::select! {
                biased;
                control = self.control.recv() => self.on_control(control),
                turn = self.link.next(pending()) => self.on_turn(turn),
                Some(order) = self.inbox.recv(), if self.link.has_room() => self.on_order(order),
            };
            if let ControlFlow::Break(done) = flow {
                break done;
            }
        };
        self.pending.fail_all(&closed());
        self.link.close().await;
        // The closing side waits for this.
        drop(done);
    }

    fn on_control(&mut self, control: Option<Control>) -> Flow {
        match control {
            Some(Control::Cancel { request_id, permit }) => {
                if self.pending.remove(request_id) {
                    self.link.send(Frame::new(Command::Cancel, request_id, Body::Empty));
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
                self.link.send(Frame::new(Command::Disconnect, RequestId::random(), Body::Empty));
                ControlFlow::Break(Some(done))
            }
            None => ControlFlow::Break(None),
        }
    }

    fn on_turn(&mut self, turn: LoopEvent<Infallible>) -> Flow {
        match turn {
            LoopEvent::Up => {
                self.state.send_replace(LinkState::Up);
                self.link.send(ready());
            }
            LoopEvent::Down { state, reason } => self.link_down(state, &reason),
            LoopEvent::Received(received) => self.on_frame(received),
            LoopEvent::Kept => {}
            LoopEvent::Own(never) => match never {},
            LoopEvent::Closed => return ControlFlow::Break(None),
        }
        ControlFlow::Continue(())
    }

    fn link_down(&mut self, state: LinkState, reason: &str) {
        // A reply that arrived before the end still counts.
        while let Some(received) = self.link.try_recv() {
            self.on_frame(received);
        }
        self.state.send_replace(state);
        self.pending.fail_all(&link_lost(reason));
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
            if !self.link.is_up() {
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
        self.link.send(frame);
        ControlFlow::Continue(())
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
