//! Handles for agents.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::attachment::MessageAttachment;
use crate::event::Message;
use crate::protocol::Control;

/// The most messages that wait for an agent that does not read.
const MESSAGES_MAX: usize = 16;
/// The most answers and aborts that wait for an agent that does not read.
const CONTROLS_MAX: usize = 16;

/// Sends messages to an agent, and ends it. When all of its handles are dropped, the agent's
/// standard input is closed to signal that no more messages follow.
#[derive(Debug, Clone)]
pub struct AgentHandle {
    messages: mpsc::Sender<QueuedMessage>,
    controls: mpsc::Sender<Control>,
    terminate: watch::Sender<Option<Duration>>,
    n_aborts: Arc<AtomicU64>,
    pid: Option<u32>,
    line_bytes_max: usize,
}

/// A message to be delivered.
#[derive(Debug)]
pub(crate) struct QueuedMessage {
    pub(crate) text: String,
    pub(crate) attached: Vec<MessageAttachment>,
    /// How many bytes of its input line are left for attachments.
    pub(crate) room: usize,
    /// The number of aborts before it: those do not apply to it.
    pub(crate) n_aborts: u64,
}

/// The other end of a handle.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) messages: mpsc::Receiver<QueuedMessage>,
    /// A message that was taken from the queue and is next.
    pub(crate) held: Option<QueuedMessage>,
    pub(crate) controls: mpsc::Receiver<Control>,
    pub(crate) terminate: watch::Receiver<Option<Duration>>,
}

/// Why a message was not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It has ended.
    #[error("the agent has ended")]
    Gone,
    /// Earlier messages are still unread.
    #[error("the agent has not read earlier messages; try again later")]
    Busy,
    /// The message is too long.
    #[error("the message is longer than the limit of {line_bytes_max} bytes")]
    TooLarge {
        /// The limit of an input line in bytes.
        line_bytes_max: usize,
    },
}

impl AgentHandle {
    pub(crate) fn new(pid: Option<u32>, line_bytes_max: usize) -> (Self, Inbox) {
        let (messages_in, messages) = mpsc::channel(MESSAGES_MAX);
        let (controls_in, controls) = mpsc::channel(CONTROLS_MAX);
        let (terminate_in, terminate) = watch::channel(None);
        let handle = Self {
            messages: messages_in,
            controls: controls_in,
            terminate: terminate_in,
            n_aborts: Arc::default(),
            pid,
            line_bytes_max,
        };
        (handle, Inbox { messages, held: None, controls, terminate })
    }

    /// Sends the agent a message.
    ///
    /// # Errors
    /// If it is not accepted; then the agent does not see it.
    pub fn send(&self, text: impl Into<String>) -> Result<(), SendError> {
        self.send_with(text, Vec::new())
    }

    /// Sends the agent a message with attachments, which are in its workspace. Their content is
    /// included if the agent supports it and it fits into an input line.
    ///
    /// # Errors
    /// If it is not accepted; then the agent does not see it.
    pub fn send_with(
        &self,
        text: impl Into<String>,
        attached: Vec<MessageAttachment>,
    ) -> Result<(), SendError> {
        let message = Message::Message { text: text.into() };
        let line_bytes_max = self.line_bytes_max;
        let Some(room) = line_bytes_max.checked_sub(message.encode().len()) else {
            return Err(SendError::TooLarge { line_bytes_max });
        };
        let Message::Message { text } = message;
        let n_aborts = self.n_aborts.load(Ordering::Acquire);
        let told = QueuedMessage { text, attached, room, n_aborts };
        self.messages.try_send(told).map_err(|error| SendError::of(&error))
    }

    /// Answers a permission request; without an option the request is cancelled. An answer that was
    /// not offered, or comes late, changes nothing, and is reported as an event.
    ///
    /// # Errors
    /// If it is not accepted.
    pub fn answer(&self, id: impl Into<String>, option: Option<String>) -> Result<(), SendError> {
        let answer = Control::Answer { id: id.into(), option };
        self.controls.try_send(answer).map_err(|error| SendError::of(&error))
    }

    /// Asks the agent to stop its turn, and takes back messages it has not seen. An agent that
    /// cannot be asked, or does not stop in time, is ended.
    ///
    /// # Errors
    /// If the agent has ended.
    pub fn abort(&self) -> Result<(), SendError> {
        let number = self.n_aborts.fetch_add(1, Ordering::AcqRel) + 1;
        self.controls.try_send(Control::Abort { number }).map_err(|error| SendError::of(&error))
    }

    /// Asks the agent and its whole process group to end, and kills them after `grace`. The agent's
    /// last event marks the end.
    pub fn terminate(&self, grace: Duration) {
        self.terminate.send_replace(Some(grace));
    }

    /// Returns the agent's process, which is also its process group.
    #[must_use]
    pub const fn pid(&self) -> Option<u32> {
        self.pid
    }
}

impl Inbox {
    /// Takes back the messages before an abort, and returns their number.
    pub(crate) fn take_back(&mut self, abort: u64) -> usize {
        let mut n_taken = 0;
        loop {
            match self.held.take().or_else(|| self.messages.try_recv().ok()) {
                Some(told) if told.n_aborts < abort => n_taken += 1,
                held => {
                    self.held = held;
                    return n_taken;
                }
            }
        }
    }
}

impl SendError {
    fn of<T>(error: &mpsc::error::TrySendError<T>) -> Self {
        match error {
            mpsc::error::TrySendError::Full(_) => Self::Busy,
            mpsc::error::TrySendError::Closed(_) => Self::Gone,
        }
    }
}

/// Returns the next message; `None` when no more can come.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn next_message(
    held: &mut Option<QueuedMessage>,
    messages: &mut mpsc::Receiver<QueuedMessage>,
) -> Option<QueuedMessage> {
    match held.take() {
        Some(told) => Some(told),
        None => messages.recv().await,
    }
}

pub(crate) async fn asked_to_end(terminate: &mut watch::Receiver<Option<Duration>>) -> Duration {
    loop {
        if terminate.changed().await.is_err() {
            // Every handle is gone, so no request can come.
            return std::future::pending().await;
        }
        if let Some(grace) = *terminate.borrow_and_update() {
            return grace;
        }
    }
}
