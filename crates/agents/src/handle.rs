//! How an agent is reached.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, watch};

use crate::attached::Attached;
use crate::event::Message;
use crate::talk::Control;

/// Messages that wait for an agent that does not read.
const MESSAGES_MAX: usize = 16;
/// Answers and aborts that wait for an agent that does not read.
const CONTROLS_MAX: usize = 16;

/// Sends messages to an agent, and ends it. When all of its handles are dropped, an agent learns
/// that there will be no more messages by the end of its standard input.
#[derive(Debug, Clone)]
pub struct AgentHandle {
    messages: mpsc::Sender<Told>,
    controls: mpsc::Sender<Control>,
    terminate: watch::Sender<Option<Duration>>,
    n_aborts: Arc<AtomicU64>,
    pid: Option<u32>,
    line_bytes_max: usize,
}

/// A message on its way.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) text: String,
    pub(crate) attached: Vec<Attached>,
    /// How many bytes of a line are left for what is attached.
    pub(crate) room: usize,
    /// How many aborts came before it: those do not mean it.
    pub(crate) n_aborts: u64,
}

/// The other end of a handle.
#[derive(Debug)]
pub(crate) struct Inbox {
    pub(crate) messages: mpsc::Receiver<Told>,
    /// A message that was taken from the queue and is the next.
    pub(crate) held: Option<Told>,
    pub(crate) controls: mpsc::Receiver<Control>,
    pub(crate) terminate: watch::Receiver<Option<Duration>>,
}

/// Why a message was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// It has ended.
    #[error("the agent has ended")]
    Gone,
    /// Messages that it has not read wait already.
    #[error("the agent has not read the messages before this one; try again later")]
    Busy,
    /// The message is too long.
    #[error("the message is longer than the {line_bytes_max} bytes that a line may have")]
    TooLarge {
        /// How many bytes a line may have.
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

    /// Gives the agent a message.
    ///
    /// # Errors
    /// When it is not taken; then the agent does not see it.
    pub fn send(&self, text: impl Into<String>) -> Result<(), SendError> {
        self.send_with(text, Vec::new())
    }

    /// Gives the agent a message with files that are in its workspace. One that can be shown what is
    /// in them is, as far as a line has room; others find them there.
    ///
    /// # Errors
    /// When it is not taken; then the agent does not see it.
    pub fn send_with(
        &self,
        text: impl Into<String>,
        attached: Vec<Attached>,
    ) -> Result<(), SendError> {
        let message = Message::Message { text: text.into() };
        let line_bytes_max = self.line_bytes_max;
        let Some(room) = line_bytes_max.checked_sub(message.encode().len()) else {
            return Err(SendError::TooLarge { line_bytes_max });
        };
        let Message::Message { text } = message;
        let n_aborts = self.n_aborts.load(Ordering::Acquire);
        let told = Told { text, attached, room, n_aborts };
        self.messages.try_send(told).map_err(|error| SendError::of(&error))
    }

    /// Answers what the agent asked permission for; without an option the question is taken back.
    /// An answer that was not offered, or that comes late, changes nothing; an event tells.
    ///
    /// # Errors
    /// When it is not taken.
    pub fn answer(&self, id: impl Into<String>, option: Option<String>) -> Result<(), SendError> {
        let answer = Control::Answer { id: id.into(), option };
        self.controls.try_send(answer).map_err(|error| SendError::of(&error))
    }

    /// Asks the agent to stop what it does, and takes back the messages that it has not seen. One
    /// that cannot be asked, or does not stop in time, is ended.
    ///
    /// # Errors
    /// When there is nobody to ask.
    pub fn abort(&self) -> Result<(), SendError> {
        let number = self.n_aborts.fetch_add(1, Ordering::AcqRel) + 1;
        self.controls.try_send(Control::Abort { number }).map_err(|error| SendError::of(&error))
    }

    /// Asks the agent and all of its group to end, and ends them after `grace`. The agent's last
    /// event tells when it is done.
    pub fn terminate(&self, grace: Duration) {
        self.terminate.send_replace(Some(grace));
    }

    /// The agent's process, which is also its group.
    #[must_use]
    pub const fn pid(&self) -> Option<u32> {
        self.pid
    }
}

impl Inbox {
    /// Takes back what was said before an abort. How many messages that is.
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

/// The next message; `None` when there will be none.
///
/// # Cancel safety
/// Nothing is lost.
pub(crate) async fn next_message(
    held: &mut Option<Told>,
    messages: &mut mpsc::Receiver<Told>,
) -> Option<Told> {
    match held.take() {
        Some(told) => Some(told),
        None => messages.recv().await,
    }
}

pub(crate) async fn asked_to_end(terminate: &mut watch::Receiver<Option<Duration>>) -> Duration {
    loop {
        if terminate.changed().await.is_err() {
            // Every handle is gone, and nobody can ask any more.
            return std::future::pending().await;
        }
        if let Some(grace) = *terminate.borrow_and_update() {
            return grace;
        }
    }
}
