//! A running call, followed until its answer.

use ringback_broker::{CallControl, Replies};
use ringback_proto::ids::JobId;
use ringback_proto::timing::ToolTiming;
use ringback_proto::{Error, ResponseEnvelope, StreamChunk};
use tokio::time::{Instant, sleep_until};

/// A running call. Dropping it before its end cancels it: its caller has left.
#[derive(Debug)]
pub(crate) struct Follow {
    replies: Replies,
    control: CallControl,
    tool: String,
    timing: ToolTiming,
    told_percent: Option<f32>,
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
pub(crate) enum Followed {
    /// Progress.
    Progress { percent: f32, message: String },
    /// The end of the call.
    Done(ResponseEnvelope),
}

impl Follow {
    pub(crate) fn new(
        replies: Replies,
        control: CallControl,
        tool: String,
        timing: ToolTiming,
    ) -> Self {
        let until = Instant::now() + timing.edge_wait();
        let (told_percent, job, is_over) = (None, None, false);
        Self { replies, control, tool, timing, told_percent, job, until, is_over }
    }

    /// A handle to cancel it.
    pub(crate) fn control(&self) -> CallControl {
        self.control.clone()
    }

    /// Returns the next step.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing: the next call returns the same step.
    pub(crate) async fn next(&mut self) -> Followed {
        loop {
            let reply = tokio::select! {
                biased;
                reply = self.replies.next() => reply,
                () = sleep_until(self.until), if self.job.is_some() => self.handed_out(),
            };
            if let Some(next) = self.on_reply(reply) {
                return next;
            }
        }
    }

    /// The wait is over, but the work is not.
    fn handed_out(&self) -> Option<ResponseEnvelope> {
        let (tool, expected_timing) = (self.tool.clone(), self.timing);
        self.job.map(|job_id| ResponseEnvelope::JobStarted { job_id, tool, expected_timing })
    }

    fn on_reply(&mut self, reply: Option<ResponseEnvelope>) -> Option<Followed> {
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
                let error = Error::internal("relay", "the tool ended without an answer");
                Some(self.done(error.into()))
            }
        }
    }

    fn done(&mut self, last: ResponseEnvelope) -> Followed {
        self.is_over = true;
        Followed::Done(last)
    }

    fn on_chunk(&mut self, chunk: StreamChunk) -> Option<Followed> {
        match chunk {
            StreamChunk::Progress { percent, message } => {
                // Progress only ever rises, as agents expect.
                let is_news =
                    percent.is_finite() && self.told_percent.is_none_or(|it| percent > it);
                is_news.then(|| {
                    self.told_percent = Some(percent);
                    Followed::Progress { percent, message }
                })
            }
            StreamChunk::LogLine { .. } => None,
            // The protocol has no place for them; the result names the artifacts. The work must not
            // wait.
            StreamChunk::PartialAudio { .. }
            | StreamChunk::PartialMidi { .. }
            | StreamChunk::PartialContent { .. } => {
                self.control.add_credit(u64::try_from(chunk.weight()).unwrap_or(u64::MAX));
                None
            }
        }
    }
}

impl Drop for Follow {
    /// The start of the stream carried the job's id, so the job would continue without us; but the
    /// peer does not know the id.
    fn drop(&mut self) {
        if !self.is_over && self.job.is_some() {
            self.control.cancel();
        }
    }
}
