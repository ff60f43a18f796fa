//! A running call, followed by an edge that answers once: progress on the way, then one outcome.

use ringback_proto::chunk::LogLevel;
use ringback_proto::ids::JobId;
use ringback_proto::timing::ToolTiming;
use ringback_proto::{Error, ResponseEnvelope, StreamChunk};
use tokio::time::{Instant, sleep_until};

use crate::call::CallControl;
use crate::replies::Replies;

/// A running call. Its answer is held back as long as its timing says, then the job's id is the
/// answer. Dropping it before its end cancels the call: its caller has left.
#[derive(Debug)]
pub struct CallFollower {
    replies: Replies,
    control: CallControl,
    tool: String,
    timing: ToolTiming,
    percent: Option<f32>,
    /// The job of a streamed native call, and until when its answer is held back.
    job: Option<JobId>,
    until: Instant,
    is_over: bool,
}

/// The next step of a call.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large one is the last one, and is used immediately"
)]
pub enum CallEvent {
    /// Progress, which only ever rises.
    Progress {
        /// How far the tool is.
        percent: f32,
        /// What it does.
        message: String,
    },
    /// A line of the tool's log.
    Log {
        /// How important it is.
        level: LogLevel,
        /// The line.
        message: String,
    },
    /// The end of the call.
    Done(ResponseEnvelope),
}

impl CallFollower {
    /// Follows a call of this tool.
    #[must_use]
    pub fn new(replies: Replies, control: CallControl, tool: String, timing: ToolTiming) -> Self {
        let until = Instant::now() + timing.edge_wait();
        let (percent, job, is_over) = (None, None, false);
        Self { replies, control, tool, timing, percent, job, until, is_over }
    }

    /// A handle to cancel it.
    #[must_use]
    pub fn control(&self) -> CallControl {
        self.control.clone()
    }

    /// Returns the next step.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next call returns the same step.
    pub async fn next(&mut self) -> CallEvent {
        loop {
            let reply = tokio::select! {
                biased;
                reply = self.replies.next() => reply,
                () = sleep_until(self.until), if self.job.is_some() => self.job_started(),
            };
            if let Some(next) = self.on_reply(reply) {
                return next;
            }
        }
    }

    /// The wait is over, but the work is not.
    fn job_started(&self) -> Option<ResponseEnvelope> {
        let (tool, expected_timing) = (self.tool.clone(), self.timing);
        self.job.map(|job_id| ResponseEnvelope::JobStarted { job_id, tool, expected_timing })
    }

    fn on_reply(&mut self, reply: Option<ResponseEnvelope>) -> Option<CallEvent> {
        match reply {
            Some(ResponseEnvelope::StreamStart { job_id, .. }) => {
                self.job = job_id;
                None
            }
            Some(ResponseEnvelope::StreamChunk { chunk, .. }) => self.on_chunk(chunk),
            Some(
                last @ (ResponseEnvelope::Success { .. }
                | ResponseEnvelope::JobStarted { .. }
                | ResponseEnvelope::Ack { .. }
                | ResponseEnvelope::Error(_)
                | ResponseEnvelope::StreamEnd { .. }),
            ) => Some(self.done(last)),
            None => {
                let error = Error::internal("follow", "the tool ended without an answer");
                Some(self.done(error.into()))
            }
        }
    }

    fn done(&mut self, last: ResponseEnvelope) -> CallEvent {
        self.is_over = true;
        CallEvent::Done(last)
    }

    fn on_chunk(&mut self, chunk: StreamChunk) -> Option<CallEvent> {
        match chunk {
            StreamChunk::Progress { percent, message } => {
                let is_news = percent.is_finite() && self.percent.is_none_or(|it| percent > it);
                is_news.then(|| {
                    self.percent = Some(percent);
                    CallEvent::Progress { percent, message }
                })
            }
            StreamChunk::LogLine { level, message } => Some(CallEvent::Log { level, message }),
            // An answer has no place for them; it names the artifacts. The work must not wait.
            StreamChunk::PartialAudio { .. }
            | StreamChunk::PartialMidi { .. }
            | StreamChunk::PartialContent { .. } => {
                self.control.add_credit(u64::try_from(chunk.weight()).unwrap_or(u64::MAX));
                None
            }
        }
    }
}

impl Drop for CallFollower {
    /// The start of the stream carried the job's id, so the job would continue without us; but the
    /// caller does not know the id.
    fn drop(&mut self) {
        if !self.is_over && self.job.is_some() {
            self.control.cancel();
        }
    }
}
