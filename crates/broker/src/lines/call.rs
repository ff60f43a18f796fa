//! A call on a line, from its admission to its outcome.

use std::sync::Arc;

use ringback_core::deadline::Deadline;
use ringback_core::lines::{LineKind, NewCall, Recall};
use ringback_core::repeats::Occurrence;
use ringback_proto::any::Any;
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::{BlobHash, CallId, RequestId, SessionId, StreamId};
use ringback_proto::principal::Principal;
use ringback_proto::record::RepeatKey;
use ringback_proto::{Certainty, Error, Event, ResponseEnvelope, Result, ToolResponse};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::follower::LineFollower;
use super::parties::{CallContext, LineRequest};
use super::{CallChunks, LineCall, Lines, OfferedTool, Waiter, spoken};
use crate::call::{ActiveCall, Answer, CallControl, Edge};
use crate::repeats::{FirstAnswer, OwedAnswer};
use crate::replies::Replies;
use crate::stream::Stream;
use crate::sync::lock;
use crate::{failure, payload};

/// Larger payloads are checked on the broker's own threads: an edge's thread has sockets to serve.
const INLINE_BYTES_MAX: usize = 64 << 10;

/// The caller of a tool on a line, and its options.
#[derive(Debug)]
pub(crate) struct LineCaller {
    pub(crate) id: CallId,
    pub(crate) tool: Arc<str>,
    pub(crate) principal: Arc<Principal>,
    pub(crate) edge: Edge,
    pub(crate) deadline: Deadline,
    pub(crate) request_id: Option<RequestId>,
    /// The calling session, if any.
    pub(crate) session: Option<SessionId>,
}

/// A call to be delivered.
pub(super) struct Outgoing {
    pub(super) tool: Arc<OfferedTool>,
    pub(super) arguments: Any,
    pub(super) custom_id: Option<Arc<str>>,
    pub(super) context: CallContext,
    /// Where its chunks go, if its caller follows it.
    pub(super) stream: Option<Arc<Stream>>,
}

impl Lines {
    /// Takes a call of a tool on a line. It creates no job: the caller waits, or follows its
    /// chunks.
    #[must_use]
    pub fn call(self: &Arc<Self>, request: LineRequest<'_>) -> Answer {
        let now = self.kernel.now();
        let id = CallId::from_random(self.kernel.entropy.bytes());
        let LineRequest { credential, edge, tool: name, arguments, options, .. } = request;
        let found = credential.principal(now).and_then(|principal| {
            let tool = lock(&self.table).registry().find(principal, &name)?;
            let deadline = self.deadline(now, &tool, &options);
            let admitted = self.calls.admit(id, principal.id, deadline)?;
            Ok((Arc::clone(principal), tool, deadline, admitted))
        });
        let (principal, tool, deadline, admitted) = match found {
            Ok(found) => found,
            Err(error) => {
                self.kernel.auditor.refused(now, credential, (edge, &name), id, &error);
                return Answer::Now(error.into());
            }
        };
        let caller = LineCaller {
            id,
            tool: Arc::clone(&tool.full_name),
            session: principal.held_by.map(|held_by| held_by.session),
            principal,
            edge,
            deadline,
            request_id: request.request_id,
        };
        let stream = followed(&options);
        let (custom_id, context) = (request.custom_id, request.context);
        let out = Outgoing { tool, arguments, custom_id, context, stream };
        self.start_call(now, caller, out, admitted)
    }

    /// Starts a call that was admitted.
    pub(super) fn start_call(
        self: &Arc<Self>,
        now: ringback_core::Now,
        caller: LineCaller,
        out: Outgoing,
        admitted: ActiveCall,
    ) -> Answer {
        self.kernel.auditor.line_admitted(now, &caller, &out.tool.line);
        let (tool, stream) = (Arc::clone(&caller.tool), out.stream.clone());
        let id = StreamId::from_random(*caller.id.as_bytes());
        let control = CallControl { stop: Arc::clone(&admitted.stop), stream: stream.clone() };
        let running = Box::pin(Arc::clone(self).run_call(caller, out, admitted));
        let replies = match stream {
            None => Replies::one(Box::pin(async move { passed(running.await) })),
            Some(stream) => Replies::on_line(LineFollower {
                lines: Arc::clone(self),
                id,
                tool,
                stream,
                running: Some(running),
                outcome: None,
                started: false,
            }),
        };
        Answer::Later(replies, control)
    }

    /// The tool's own limit applies; without one, an HTTP client's tool has the default time unless
    /// the request sets one, and a caller's tool always has the default.
    pub(super) fn deadline(
        &self,
        now: ringback_core::Now,
        tool: &OfferedTool,
        options: &CallOptions,
    ) -> Deadline {
        let caller_ms = options.deadline_ms.map(std::num::NonZeroU64::get);
        let settings = &self.settings;
        let usual_ms = match tool.line.kind() {
            LineKind::Client if caller_ms.is_none() => Some(settings.client_call_ms_default),
            LineKind::Caller => Some(settings.caller_call_ms_default),
            LineKind::Client | LineKind::Worker => None,
        };
        let tool_ms = tool.timeout_ms.or(usual_ms);
        Deadline::smallest(now, caller_ms, tool_ms, self.kernel.config.call_ms_max)
    }

    /// Runs the call once, however often it is repeated.
    async fn run_call(
        self: Arc<Self>,
        caller: LineCaller,
        out: Outgoing,
        admitted: ActiveCall,
    ) -> Result<Any> {
        let started = Instant::now();
        let outcome = match caller.request_id {
            None => self.put_on_line(&caller, out, &admitted).await,
            Some(request_id) => {
                let key = repeat_key(request_id, &out);
                self.call_once(&caller, key, out, &admitted).await
            }
        };
        self.kernel.auditor.line_ended(self.kernel.now(), &caller, outcome.as_ref().err(), started);
        outcome
    }

    async fn call_once(
        self: &Arc<Self>,
        caller: &LineCaller,
        key: RepeatKey,
        out: Outgoing,
        admitted: &ActiveCall,
    ) -> Result<Any> {
        let owed = OwedAnswer::new();
        let principal = caller.principal.id;
        let begin = self.calls.repeats.begin(
            self.kernel.now(),
            principal,
            key,
            FirstAnswer::Plain(owed.place()),
        )?;
        let first = match begin {
            Occurrence::First => None,
            Occurrence::Again(FirstAnswer::Plain(first)) => Some(first),
            Occurrence::Again(FirstAnswer::Job(_)) => {
                return Err(Error::internal("repeat", "one request id is used for two calls"));
            }
        };
        if let Some(first) = first {
            return tokio::select! {
                biased;
                answer = first.wait() => taken_apart(answer.clone()),
                error = admitted.stop.stopped(&caller.tool) => Err(error),
            };
        }
        let mut abandoned = RepeatGuard { owed: Some(owed) };
        let outcome = match self.calls.unused_for_a_job(principal, key).await {
            Ok(()) => self.put_on_line(caller, out, admitted).await,
            Err(error) => Err(error),
        };
        if let Err(error) = &outcome {
            self.calls.repeats.reconsider(principal, key.request_id, error);
        }
        abandoned.answer(passed(outcome.clone()));
        outcome
    }

    /// Puts the call on its line and waits for its end.
    async fn put_on_line(
        self: &Arc<Self>,
        caller: &LineCaller,
        out: Outgoing,
        admitted: &ActiveCall,
    ) -> Result<Any> {
        let Outgoing { tool, arguments, custom_id, context, stream } = out;
        let arguments = self.prepared(Arc::clone(&tool), arguments).await?;
        let chunks = CallChunks::new(caller.id, &tool, &caller.principal, stream);
        let (answer, mut answered) = oneshot::channel();
        let request_id =
            custom_id.clone().unwrap_or_else(|| Arc::from(caller.id.to_string().as_str()));
        let call = Arc::new(LineCall {
            id: caller.id,
            request_id,
            tool: Arc::clone(&tool),
            context,
            arguments,
            deadline: caller.deadline,
            job_id: None,
        });
        let new = NewCall {
            id: caller.id,
            custom_id,
            tool: Arc::clone(&tool),
            out: Arc::clone(&call),
            caller: Waiter { answer, chunks: Some(Arc::new(chunks)) },
        };
        let mut effects = Vec::new();
        lock(&self.table).call(new, &mut effects)?;
        self.tell_client_event(&call, Event::ClientToolRequest);
        drop(call);
        self.carry_out(effects);
        let mut held = LineCallGuard::new(self, caller.id);
        let outcome = tokio::select! {
            biased;
            outcome = &mut answered => {
                held.over = true;
                received(outcome)
            }
            error = admitted.stop.stopped(&caller.tool) => {
                let why =
                    if admitted.stop.timed_out() { Recall::TimedOut } else { Recall::Cancelled };
                match held.recall(why) {
                    Some(certainty) => Err(error.with_certainty(certainty)),
                    // It was answered at this very moment, and its party was notified that the
                    // answer counts.
                    None => received(answered.await),
                }
            }
        };
        let (format, outcome) = (caller.edge.format(), outcome?);
        self.off_the_edge(outcome.bytes.len(), move || payload::translate(outcome, format))
            .await
            .map_err(|error| error.with_certainty(Certainty::Ran))
    }

    /// Returns the arguments in the party's encoding, once they match the tool's schema.
    async fn prepared(&self, tool: Arc<OfferedTool>, arguments: Any) -> Result<Any> {
        self.off_the_edge(arguments.bytes.len(), move || {
            tool.info.schema.check(&arguments)?;
            payload::translate(arguments, spoken(&tool.line))
        })
        .await
    }

    async fn off_the_edge<T: Send + 'static>(
        &self,
        n_bytes: usize,
        work: impl FnOnce() -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if n_bytes <= INLINE_BYTES_MAX {
            return work();
        }
        let running = self.kernel.tasks.spawn(async move { work() });
        running.await.unwrap_or_else(|error| Err(failure::internal(error)))
    }
}

/// Returns where the chunks of a call go, if it is to be followed.
pub(super) fn followed(options: &CallOptions) -> Option<Arc<Stream>> {
    options.stream.then(Arc::default)
}

fn passed(outcome: Result<Any>) -> ResponseEnvelope {
    match outcome {
        Ok(passed) => ResponseEnvelope::Success { response: ToolResponse::Passed(passed) },
        Err(error) => error.into(),
    }
}

/// A call on a line; dropping it withdraws it, because its caller has left.
pub(super) struct LineCallGuard<'a> {
    lines: &'a Lines,
    id: CallId,
    pub(super) over: bool,
}

impl<'a> LineCallGuard<'a> {
    pub(super) const fn new(lines: &'a Lines, id: CallId) -> Self {
        Self { lines, id, over: false }
    }

    /// Withdraws the call. Returns whether its tool may have run, unless it has ended already.
    pub(super) fn recall(&mut self, why: Recall) -> Option<Certainty> {
        self.over = true;
        let mut effects = Vec::new();
        let ended = lock(&self.lines.table).recall(self.id, why, &mut effects);
        self.lines.carry_out(effects);
        let ended = ended?;
        self.lines.tell_client_event(&ended.out, |call| {
            let error = match why {
                Recall::TimedOut => "timeout",
                Recall::Cancelled => "cancelled",
            };
            Event::ClientToolFailed { call, error: error.to_owned() }
        });
        if let Some(chunks) = &ended.caller.chunks {
            chunks.end(&self.lines.kernel);
        }
        Some(ended.certainty())
    }
}

impl Drop for LineCallGuard<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.recall(Recall::Cancelled);
        }
    }
}

/// The answer to repeats of a call whose first caller left before it ended.
struct RepeatGuard {
    owed: Option<OwedAnswer<ResponseEnvelope>>,
}

impl RepeatGuard {
    fn answer(&mut self, reply: ResponseEnvelope) {
        if let Some(owed) = self.owed.take() {
            owed.answer(Ok(reply));
        }
    }
}

impl Drop for RepeatGuard {
    fn drop(&mut self) {
        let error = Error::cancelled("its first caller left");
        self.answer(error.with_certainty(Certainty::MayHaveRun).into());
    }
}

pub(super) fn received(outcome: Result<Result<Any>, oneshot::error::RecvError>) -> Result<Any> {
    outcome.unwrap_or_else(|_| Err(Error::internal("line", "a call was dropped")))
}

fn taken_apart(answer: Result<ResponseEnvelope>) -> Result<Any> {
    match answer? {
        ResponseEnvelope::Success { response: ToolResponse::Passed(passed) } => Ok(passed),
        ResponseEnvelope::Error(error) => Err(error.into()),
        ResponseEnvelope::Success { .. }
        | ResponseEnvelope::JobStarted { .. }
        | ResponseEnvelope::Ack { .. }
        | ResponseEnvelope::StreamStart { .. }
        | ResponseEnvelope::StreamChunk { .. }
        | ResponseEnvelope::StreamEnd { .. } => {
            Err(Error::internal("repeat", "one request id is used for two kinds of call"))
        }
    }
}

fn repeat_key(request_id: RequestId, out: &Outgoing) -> RepeatKey {
    let mut hasher = blake3::Hasher::new();
    hasher.update(out.tool.full_name.as_bytes()).update(&[0]).update(&out.arguments.bytes);
    RepeatKey { request_id, body_hash: BlobHash::from_bytes(*hasher.finalize().as_bytes()) }
}
