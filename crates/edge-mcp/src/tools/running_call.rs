//! A running call, followed until its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringback_broker::{CallControl, CallEvent, Replies};
use ringback_mcp_wire::outgoing::{self, ServerNotification};
use ringback_mcp_wire::{Id, LogLevel};
use ringback_proto::ErrorKind;
use ringback_proto::chunk;
use ringback_proto::timing::ToolTiming;
use serde_json::value::to_raw_value;

use super::interest::Interest;
use super::outcome::Outcome;

/// The messages that a client wants on the way.
#[derive(Debug, Clone, Default)]
pub(crate) struct NotificationOptions {
    pub(crate) progress: Option<Id>,
    pub(crate) log: Option<LogLevel>,
}

impl NotificationOptions {
    /// Whether it wants any.
    pub(crate) const fn is_any(&self) -> bool {
        self.progress.is_some() || self.log.is_some()
    }
}

/// A running call, as its client sees it. Dropping it before its end cancels it.
#[derive(Debug)]
pub(crate) struct RunningCall {
    call: ringback_broker::CallFollower,
    canceller: Canceller,
    tool: String,
    is_long: bool,
    interest: Option<Interest>,
    wanted: NotificationOptions,
}

/// A handle to cancel a call.
#[derive(Debug, Clone)]
pub(crate) struct Canceller {
    control: CallControl,
    asked: Arc<AtomicBool>,
}

/// The next step of a call.
#[derive(Debug)]
pub(crate) enum Step {
    /// A message to the client on the way, as JSON.
    Told(String),
    /// The end of the call.
    Done(Outcome),
}

impl Canceller {
    /// Cancels the call: the client wants no answer.
    pub(crate) fn cancel(&self) {
        self.asked.store(true, Ordering::Release);
        self.control.cancel();
    }
}

/// What is known of a call at its start.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) tool: String,
    pub(crate) timing: ToolTiming,
    /// Whether it may take a while, so that its connection should be kept alive.
    pub(crate) is_long: bool,
    /// The events it also wants.
    pub(crate) interest: Option<Interest>,
    /// The messages on the way, if the call is streamed.
    pub(crate) streamed: Option<NotificationOptions>,
}

impl RunningCall {
    pub(super) fn new(replies: Replies, control: CallControl, facts: Facts) -> Self {
        let Facts { tool, timing, is_long, interest, streamed } = facts;
        Self {
            canceller: Canceller { control: control.clone(), asked: Arc::default() },
            call: ringback_broker::CallFollower::new(replies, control, tool.clone(), timing),
            tool,
            is_long,
            interest,
            wanted: streamed.unwrap_or_default(),
        }
    }

    pub(crate) fn canceller(&self) -> Canceller {
        self.canceller.clone()
    }

    /// Whether it may take a while, so that its connection should be kept alive.
    pub(crate) const fn is_long(&self) -> bool {
        self.is_long
    }

    /// The events it also wants.
    pub(crate) const fn interest(&self) -> Option<&Interest> {
        self.interest.as_ref()
    }

    /// Returns the next step.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next call returns the same step.
    pub(crate) async fn next(&mut self) -> Step {
        loop {
            let told = match self.call.next().await {
                CallEvent::Progress { percent, message } => self.progress(percent, &message),
                CallEvent::Log { level, message } => self.log(level, &message),
                CallEvent::Done(last) => return self.done(Outcome::of(last, &self.tool)),
            };
            if let Some(told) = told {
                return Step::Told(told);
            }
        }
    }

    /// Waits for the end, for callers that get no messages on the way.
    pub(crate) async fn end(&mut self) -> Outcome {
        loop {
            match self.next().await {
                Step::Told(_) => {}
                Step::Done(outcome) => return outcome,
            }
        }
    }

    fn done(&self, outcome: Outcome) -> Step {
        let asked = self.canceller.asked.load(Ordering::Acquire);
        let is_cancelled = matches!(
            &outcome, Outcome::Failed(error) if error.kind() == ErrorKind::Cancelled
        );
        Step::Done(if asked && is_cancelled { Outcome::Silent } else { outcome })
    }

    fn progress(&self, percent: f32, message: &str) -> Option<String> {
        let token = self.wanted.progress.as_ref()?;
        let told = ServerNotification::Progress { token, percent: f64::from(percent), message };
        Some(outgoing::notification(&told))
    }

    fn log(&self, level: chunk::LogLevel, message: &str) -> Option<String> {
        let level = match level {
            chunk::LogLevel::Debug => LogLevel::Debug,
            chunk::LogLevel::Info => LogLevel::Info,
            chunk::LogLevel::Warn => LogLevel::Warning,
            chunk::LogLevel::Error => LogLevel::Error,
        };
        if self.wanted.log.is_none_or(|least| level < least) {
            return None;
        }
        let data = to_raw_value(message).expect("a text can be written as JSON");
        let told = ServerNotification::Log { level, logger: &self.tool, data: &data };
        Some(outgoing::notification(&told))
    }
}
