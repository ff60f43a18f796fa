//! A running call, followed until its answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ringback_broker::{CallControl, Replies};
use ringback_mcp_wire::outgoing::{self, Told};
use ringback_mcp_wire::{Code, Fault, Id, LogLevel};
use ringback_proto::chunk;
use ringback_proto::timing::ToolTiming;
use ringback_proto::{ErrorKind, ResponseEnvelope, StreamChunk};
use serde_json::value::to_raw_value;
use tokio::time::{Instant, sleep_until};

use super::interest::Interest;
use super::outcome::{Outcome, Started};

/// The messages that a client wants on the way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) progress: Option<Id>,
    pub(crate) log: Option<LogLevel>,
}

impl Wanted {
    /// Whether it wants any.
    pub(crate) const fn is_any(&self) -> bool {
        self.progress.is_some() || self.log.is_some()
    }
}

/// A running call. Dropping it before its end cancels it: its caller has left.
#[derive(Debug)]
pub(crate) struct Follow {
    replies: Replies,
    canceller: Canceller,
    tool: String,
    timing: ToolTiming,
    is_long: bool,
    interest: Option<Interest>,
    wanted: Wanted,
    told_percent: Option<f32>,
    /// The job of a streamed call, and until when its answer is held back.
    streamed: Option<Streamed>,
    is_over: bool,
}

#[derive(Debug)]
struct Streamed {
    job: Option<Started>,
    until: Instant,
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
    pub(crate) streamed: Option<Wanted>,
}

impl Follow {
    pub(super) fn new(replies: Replies, control: CallControl, facts: Facts) -> Self {
        let Facts { tool, timing, is_long, interest, streamed } = facts;
        let until = Instant::now() + timing.edge_wait();
        Self {
            replies,
            canceller: Canceller { control, asked: Arc::default() },
            tool,
            timing,
            is_long,
            interest,
            told_percent: None,
            streamed: streamed.is_some().then_some(Streamed { job: None, until }),
            wanted: streamed.unwrap_or_default(),
            is_over: false,
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
            let reply = match &self.streamed {
                None => self.replies.next().await,
                Some(Streamed { job, until }) => tokio::select! {
                    biased;
                    reply = self.replies.next() => reply,
                    () = sleep_until(*until), if job.is_some() => {
                        return self.done(Outcome::Job(job.clone().expect("the guard checked it")));
                    }
                },
            };
            if let Some(step) = self.on_reply(reply) {
                return step;
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

    fn on_reply(&mut self, reply: Option<ResponseEnvelope>) -> Option<Step> {
        match reply {
            None => {
                let fault = Fault::new(Code::Internal, "the tool ended without an answer");
                Some(self.done(Outcome::Fault(fault)))
            }
            Some(ResponseEnvelope::StreamStart { job_id, tool, .. }) => {
                if let (Some(streamed), Some(job_id)) = (&mut self.streamed, job_id) {
                    streamed.job = Some(Started::new(job_id, tool, self.timing));
                }
                None
            }
            Some(ResponseEnvelope::StreamChunk { chunk, .. }) => self.on_chunk(&chunk),
            Some(reply) => {
                let outcome = Outcome::of(reply, &self.tool);
                Some(self.done(outcome))
            }
        }
    }

    fn done(&mut self, outcome: Outcome) -> Step {
        self.is_over = true;
        let asked = self.canceller.asked.load(Ordering::Acquire);
        let is_cancelled = matches!(
            &outcome, Outcome::Failed(error) if error.kind() == ErrorKind::Cancelled
        );
        Step::Done(if asked && is_cancelled { Outcome::Silent } else { outcome })
    }

    fn on_chunk(&mut self, chunk: &StreamChunk) -> Option<Step> {
        match chunk {
            StreamChunk::Progress { percent, message } => self.on_progress(*percent, message),
            StreamChunk::LogLine { level, message } => self.on_log(*level, message),
            // MCP has no place for them; the result names the artifacts. The work must not wait.
            StreamChunk::PartialAudio { .. }
            | StreamChunk::PartialMidi { .. }
            | StreamChunk::PartialContent { .. } => {
                let n_bytes = u64::try_from(chunk.weight()).unwrap_or(u64::MAX);
                self.canceller.control.add_credit(n_bytes);
                None
            }
        }
    }

    /// Progress only ever rises, as the protocol requires.
    fn on_progress(&mut self, percent: f32, message: &str) -> Option<Step> {
        let token = self.wanted.progress.as_ref()?;
        if self.told_percent.is_some_and(|told| percent <= told) || !percent.is_finite() {
            return None;
        }
        self.told_percent = Some(percent);
        let told = Told::Progress { token, percent: f64::from(percent), message };
        Some(Step::Told(outgoing::notification(&told)))
    }

    fn on_log(&self, level: chunk::LogLevel, message: &str) -> Option<Step> {
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
        let told = Told::Log { level, logger: &self.tool, data: &data };
        Some(Step::Told(outgoing::notification(&told)))
    }
}

impl Drop for Follow {
    /// The start of the stream carried the job's id, so the job would continue without us; but the
    /// client does not know the id.
    fn drop(&mut self) {
        if !self.is_over && self.streamed.is_some() {
            self.canceller.control.cancel();
        }
    }
}
