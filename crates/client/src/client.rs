//! The client handle: sends frames to the daemon and receives replies.

use std::sync::Arc;
use std::time::Duration;

use ringback_proto::frame::Frame;
use ringback_proto::ids::RequestId;
use ringback_proto::{Certainty, Error};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::config::Config;
use crate::error::{ConnectError, closed};
use crate::link_loop::LinkLoop;
use crate::pending::{Answer, StreamSender, Waiter};
use crate::task::{ClientTask, Control, Handles, Order};
use crate::transport::{Dealer, LinkState};

/// A connection to a daemon. Clones share it; it ends with the last of them.
#[derive(Debug, Clone)]
#[must_use = "the connection ends with the last handle to it"]
pub struct Client {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    inbox: mpsc::Sender<Order>,
    control: mpsc::Sender<Control>,
    state: watch::Receiver<LinkState>,
    /// One for each call in flight.
    permits: Arc<Semaphore>,
    /// Aborts the task with the last handle.
    _task: JoinSet<()>,
}

impl Client {
    /// Connects, and returns once the daemon has accepted.
    ///
    /// # Errors
    /// If no daemon answers in time, or it refuses the credentials.
    ///
    /// # Cancel safety
    /// A wait that is dropped leaves no connection behind.
    pub async fn connect(config: Config) -> Result<Self, ConnectError> {
        let (dealer, mut link) = Dealer::open(&config.endpoint, &config.credentials).await?;
        let connection_id = link.up(&config.endpoint, config.connect_timeout).await?;
        let link = LinkLoop::new(&config, dealer, link, connection_id);
        let (task, Handles { inbox, control, state }) = ClientTask::new(&config, link);
        let mut tasks = JoinSet::new();
        tasks.spawn(task.run());
        let permits = Arc::new(Semaphore::new(config.calls_max));
        let shared = Shared { config, inbox, control, state, permits, _task: tasks };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Watches the state of the connection.
    #[must_use]
    pub fn link(&self) -> watch::Receiver<LinkState> {
        self.shared.state.clone()
    }

    /// Sends a frame and waits for the single reply with its id.
    ///
    /// # Errors
    /// `busy` when too many calls are in flight, `gone` when the link is down or lost, `timeout`
    /// after the configured time. An error in the daemon's answer is a reply.
    ///
    /// # Cancel safety
    /// A call that is dropped is cancelled at the daemon.
    pub async fn call_raw(&self, frame: Frame) -> Result<Frame, Error> {
        self.call_within(frame, self.shared.config.reply_timeout).await
    }

    /// Disconnects: notifies the daemon, ends calls in flight as `gone`, and returns when that is
    /// done.
    pub async fn close(self) {
        let (done, closed) = oneshot::channel();
        if self.shared.control.send(Control::Close { done }).await.is_ok() {
            // An error means that it was already closed.
            drop(closed.await);
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.shared.config
    }

    pub(crate) async fn call_within(
        &self,
        frame: Frame,
        timeout: Duration,
    ) -> Result<Frame, Error> {
        let request_id = frame.request_id;
        let (answer, reply) = oneshot::channel();
        let mut in_flight = self.order(frame, Waiter::Once(answer))?;
        match tokio::time::timeout(timeout, reply).await {
            Ok(answer) => {
                in_flight.finished();
                answer.unwrap_or_else(|_| Err(closed()))
            }
            Err(_) => {
                let timeout_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                Err(Error::timeout(&format!("request {request_id}"), timeout_ms)
                    .with_certainty(Certainty::MayHaveRun))
            }
        }
    }

    pub(crate) fn open_stream(
        &self,
        frame: Frame,
    ) -> Result<(mpsc::Receiver<Answer>, InFlightCall), Error> {
        let (sender, frames) = StreamSender::channel(self.shared.config.stream_frames_max);
        let in_flight = self.order(frame, Waiter::Many(sender))?;
        Ok((frames, in_flight))
    }

    /// Sends a frame that gets no reply; returns whether there was room for it.
    pub(crate) fn try_tell(&self, frame: Frame) -> bool {
        self.shared.inbox.try_send(Order { frame, waiter: None }).is_ok()
    }

    fn order(&self, frame: Frame, waiter: Waiter) -> Result<InFlightCall, Error> {
        let permit = Arc::clone(&self.shared.permits)
            .try_acquire_owned()
            .map_err(|_| Error::busy("the client's list of calls in flight"))?;
        let request_id = frame.request_id;
        match self.shared.inbox.try_send(Order { frame, waiter: Some(waiter) }) {
            Ok(()) => Ok(InFlightCall {
                request_id,
                permit: Some(permit),
                control: self.shared.control.clone(),
            }),
            Err(mpsc::error::TrySendError::Full(_)) => Err(Error::busy("the client's queue")),
            Err(mpsc::error::TrySendError::Closed(_)) => {
                Err(closed().with_certainty(Certainty::NotStarted))
            }
        }
    }
}

/// A call in flight: cancels it when dropped before its end.
#[derive(Debug)]
pub(crate) struct InFlightCall {
    request_id: RequestId,
    permit: Option<OwnedSemaphorePermit>,
    control: mpsc::Sender<Control>,
}

impl InFlightCall {
    /// Marks the call as finished: its only reply has arrived, and the task has forgotten it.
    fn finished(&mut self) {
        self.permit = None;
    }

    /// Reports the end of the stream, which the task cannot see.
    pub(crate) fn stream_finished(&mut self) {
        self.tell(true);
    }

    pub(crate) const fn request_id(&self) -> RequestId {
        self.request_id
    }

    fn tell(&mut self, finished: bool) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        let request_id = self.request_id;
        let control = if finished {
            Control::Finished { request_id, permit }
        } else {
            Control::Cancel { request_id, permit }
        };
        // There is room for every permit; an error means that the task has ended.
        drop(self.control.try_send(control));
    }
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        self.tell(false);
    }
}
