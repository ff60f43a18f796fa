//! The replies to a call that is not answered immediately.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ringback_core::deadline::Deadline;
use ringback_core::reply_mode::ReplyMode;
use ringback_proto::ids::{JobId, StreamId};
use ringback_proto::request::AckResponse;
use ringback_proto::timing::ToolTiming;
use ringback_proto::tool::ToolRow;
use ringback_proto::{Certainty, Error, ErrorKind, ResponseEnvelope, Result, ToolResponse};
use tokio::time::Instant;

use crate::call::CallStop;
use crate::jobs::{Interest, Jobs};
use crate::kernel::Kernel;
use crate::lines::LineFollower;
use crate::rooms::Outcome;
use crate::stream::{NextItem, Stream};

pub(crate) type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The replies to a call, in order. Dropping it means that the caller has left: a read stops, a
/// write finishes, and a job continues if its id was handed out.
pub struct Replies {
    state: State,
}

enum State {
    One(Pending<ResponseEnvelope>),
    Opening(Pending<Result<FollowedJob>>),
    Following(Box<FollowedJob>),
    OnLine(Box<LineFollower>),
    Done,
}

/// How long after its deadline a call waits for the outcome of its job, which is stopped at the
/// deadline and has to be stored. After that the caller gets an answer without it.
const STORED_GRACE: Duration = Duration::from_secs(2);

/// The time by which a caller is answered, whatever the store does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnswerDeadline {
    at: Instant,
    allowed_ms: u64,
    tool: &'static str,
}

impl AnswerDeadline {
    pub(crate) fn new(kernel: &Kernel, row: &'static ToolRow, deadline: Deadline) -> Self {
        let at = kernel.clock.instant(deadline.at) + STORED_GRACE;
        Self { at, allowed_ms: deadline.allowed_ms, tool: row.name }
    }

    /// Waits for an answer, but not past the limit.
    ///
    /// # Errors
    /// `timeout`: the outcome is unknown.
    pub(crate) async fn within<T>(self, answer: impl Future<Output = T>) -> Result<T> {
        tokio::time::timeout_at(self.at, answer).await.map_err(|_| {
            let error = Error::timeout(&format!("`{}`", self.tool), self.allowed_ms);
            error.with_certainty(Certainty::MayHaveRun)
        })
    }
}

/// A job that one caller follows.
pub(crate) struct FollowedJob {
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) row: &'static ToolRow,
    pub(crate) job: CallJob,
    pub(crate) stream: Arc<Stream>,
    pub(crate) stop: Arc<CallStop>,
    pub(crate) answer_by: AnswerDeadline,
}

/// A job that a call belongs to.
pub(crate) enum CallJob {
    /// It has not ended.
    Live(Interest),
    /// It had ended before: the call is a repeat.
    Ended(JobId, Outcome),
}

impl CallJob {
    pub(crate) fn id(&self) -> JobId {
        match self {
            Self::Live(live) => live.id,
            Self::Ended(id, _) => *id,
        }
    }

    /// The caller gets the id.
    fn hand_out(&self) -> JobId {
        if let Self::Live(interest) = self {
            interest.hand_out();
        }
        self.id()
    }

    async fn outcome(&self) -> Outcome {
        match self {
            Self::Live(live) => live.outcome().await,
            Self::Ended(_, outcome) => Arc::clone(outcome),
        }
    }
}

impl std::fmt::Debug for Replies {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Replies")
    }
}

impl Replies {
    pub(crate) fn one(reply: Pending<ResponseEnvelope>) -> Self {
        Self { state: State::One(reply) }
    }

    pub(crate) fn stream(opening: Pending<Result<FollowedJob>>) -> Self {
        Self { state: State::Opening(opening) }
    }

    pub(crate) fn on_line(followed: LineFollower) -> Self {
        Self { state: State::OnLine(Box::new(followed)) }
    }

    /// Returns the next reply; `None` after the last.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing: the next call returns the same reply.
    pub async fn next(&mut self) -> Option<ResponseEnvelope> {
        let (reply, state) = match &mut self.state {
            State::Done => return None,
            State::One(reply) => (reply.await, State::Done),
            State::Opening(opening) => match opening.await {
                Err(error) => (error.into(), State::Done),
                Ok(followed) => (followed.start(), State::Following(Box::new(followed))),
            },
            State::Following(followed) => match followed.next().await {
                Step::Chunk(reply) => return Some(reply),
                Step::Last(reply) => (reply, State::Done),
            },
            State::OnLine(followed) => match followed.next().await {
                (reply, false) => return Some(reply),
                (reply, true) => (reply, State::Done),
            },
        };
        self.state = state;
        Some(reply)
    }
}

enum Step {
    Chunk(ResponseEnvelope),
    Last(ResponseEnvelope),
}

impl FollowedJob {
    fn start(&self) -> ResponseEnvelope {
        ResponseEnvelope::StreamStart {
            stream_id: self.stream_id(),
            tool: self.row.name.to_owned(),
            job_id: Some(self.job.hand_out()),
        }
    }

    /// All who follow a job, or listen to it, know its stream by the same id.
    fn stream_id(&self) -> StreamId {
        StreamId::from_random(*self.job.id().as_bytes())
    }

    async fn next(&self) -> Step {
        let next = self.answer_by.within(self.next_or_end()).await;
        next.unwrap_or_else(|error| Step::Last(error.into()))
    }

    async fn next_or_end(&self) -> Step {
        if let CallJob::Ended(_, outcome) = &self.job {
            return Step::Last(self.end(outcome));
        }
        let next = tokio::select! {
            biased;
            next = self.stream.next(&self.jobs.kernel.clock) => next,
            () = self.stop.token.cancelled() => {
                self.jobs.stop_soon(self.job.id());
                NextItem::End
            }
        };
        match next {
            NextItem::Chunk(chunk) => {
                Step::Chunk(ResponseEnvelope::StreamChunk { stream_id: self.stream_id(), chunk })
            }
            NextItem::Lagged => Step::Last(self.lagged().into()),
            NextItem::End => Step::Last(self.end(&self.job.outcome().await)),
        }
    }

    fn end(&self, outcome: &Outcome) -> ResponseEnvelope {
        match outcome.as_ref() {
            Ok(response) => ResponseEnvelope::StreamEnd {
                stream_id: self.stream_id(),
                final_response: Some(response.clone()),
            },
            Err(error) => error.clone().into(),
        }
    }

    fn lagged(&self) -> Error {
        let message = format!(
            "the stream's reader gave no credit for too long (lagged); the work continues as {}",
            self.job.id()
        );
        Error::new(ErrorKind::Busy, message).with_certainty(Certainty::MayHaveRun)
    }
}

impl Drop for FollowedJob {
    /// A caller that cancels and leaves immediately has still cancelled.
    fn drop(&mut self) {
        if self.stop.token.is_cancelled() {
            self.jobs.stop_soon(self.job.id());
        }
    }
}

/// The one reply to a call that creates a job and does not stream.
pub(crate) async fn job_reply(
    jobs: &Arc<Jobs>,
    row: &'static ToolRow,
    job: CallJob,
    waiting: ReplyMode,
    stop: &CallStop,
) -> ResponseEnvelope {
    let wait = match waiting {
        ReplyMode::No | ReplyMode::Stream => return handed_out(row, &job),
        ReplyMode::Command => return acknowledged(jobs, &job, stop).await,
        ReplyMode::For(wait) => wait,
    };
    let outcome = tokio::select! {
        biased;
        outcome = job.outcome() => outcome,
        () = tokio::time::sleep(wait) => return handed_out(row, &job),
        () = stop.token.cancelled() => {
            jobs.stop_soon(job.id());
            job.outcome().await
        }
    };
    reply(outcome.as_ref().clone())
}

/// The reply to a command: an acknowledgement with the id of its job, or the error. A command goes on
/// when its caller leaves.
async fn acknowledged(jobs: &Arc<Jobs>, job: &CallJob, stop: &CallStop) -> ResponseEnvelope {
    let job_id = job.hand_out();
    let outcome = tokio::select! {
        biased;
        outcome = job.outcome() => outcome,
        () = stop.token.cancelled() => {
            jobs.stop_soon(job_id);
            job.outcome().await
        }
    };
    match outcome.as_ref().clone() {
        Ok(ToolResponse::Ack(AckResponse { message })) => {
            ResponseEnvelope::Ack { message, job_id: Some(job_id) }
        }
        outcome => reply(outcome),
    }
}

pub(crate) fn reply(outcome: Result<ToolResponse>) -> ResponseEnvelope {
    match outcome {
        Ok(response) => ResponseEnvelope::Success { response },
        Err(error) => error.into(),
    }
}

fn handed_out(row: &'static ToolRow, job: &CallJob) -> ResponseEnvelope {
    let job_id = job.hand_out();
    match row.timing {
        ToolTiming::FireAndForget => ResponseEnvelope::Ack {
            message: format!("`{}` is accepted", row.name),
            job_id: Some(job_id),
        },
        ToolTiming::Sync
        | ToolTiming::AsyncShort
        | ToolTiming::AsyncMedium
        | ToolTiming::AsyncLong => ResponseEnvelope::JobStarted {
            job_id,
            tool: row.name.to_owned(),
            expected_timing: row.timing,
        },
    }
}
