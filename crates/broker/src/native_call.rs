//! A call of a native tool, and how it runs without a job: once, however often it is repeated.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use ringback_core::deadline::Deadline;
use ringback_core::repeats::Occurrence;
use ringback_proto::ids::{CallId, RequestId};
use ringback_proto::principal::Principal;
use ringback_proto::record::RepeatKey;
use ringback_proto::tool::ToolRow;
use ringback_proto::{Error, ResponseEnvelope, ToolRequest};
use tokio::time::Instant;

use crate::call::ActiveCall;
use crate::failure;
use crate::handler::{self, Context, ToolFuture};
use crate::identity::Credential;
use crate::repeats::{FirstAnswer, OwedAnswer, repeat_key};
use crate::replies::reply;
use crate::rooms::Rooms;

/// A call of a native tool that was admitted.
#[derive(Debug)]
pub(crate) struct NativeCall {
    pub(crate) id: CallId,
    pub(crate) row: &'static ToolRow,
    pub(crate) principal: Arc<Principal>,
    /// The session key, if an agent calls.
    pub(crate) held: Option<Credential>,
    pub(crate) edge: crate::Edge,
    pub(crate) deadline: Deadline,
    /// The caller's id for it, if repeats are to be recognised.
    pub(crate) request_id: Option<RequestId>,
    pub(crate) repeat: Option<RepeatKey>,
    /// The trace it belongs to, if any.
    pub(crate) trace: tracing::Span,
}

impl NativeCall {
    /// Computes the fingerprint that identifies a repeat. The input may be large, so this does not
    /// run on the thread that took the call.
    pub(crate) fn identified(self, request: &ToolRequest) -> Self {
        let repeat = self.request_id.map(|request_id| repeat_key(request_id, request));
        Self { repeat, ..self }
    }
}

/// A call that runs once, however often it is repeated.
pub(crate) async fn once(
    rooms: &Arc<Rooms>,
    call: NativeCall,
    key: RepeatKey,
    request: ToolRequest,
    admitted: ActiveCall,
) -> ResponseEnvelope {
    let owed = OwedAnswer::new();
    let principal = call.principal.id;
    match rooms.calls.repeats.begin(
        rooms.kernel.now(),
        principal,
        key,
        FirstAnswer::Plain(owed.place()),
    ) {
        Err(error) => error.into(),
        Ok(Occurrence::Again(FirstAnswer::Plain(first))) => {
            rooms.kernel.auditor.repeated(rooms.kernel.now(), &call, None);
            tokio::select! {
                biased;
                answer = first.wait() => answer.clone().unwrap_or_else(Into::into),
                error = admitted.stop.stopped(call.row.name) => error.into(),
            }
        }
        Ok(Occurrence::Again(FirstAnswer::Job(_))) => {
            Error::internal("repeat", "one request id is used for two kinds of call").into()
        }
        Ok(Occurrence::First) => {
            let reply = match rooms.calls.unused_for_a_job(principal, key).await {
                Ok(()) => plain(rooms, &call, request, &admitted).await,
                Err(error) => error.into(),
            };
            if let ResponseEnvelope::Error(error) = &reply {
                rooms.calls.repeats.reconsider(principal, key.request_id, &error.clone().into());
            }
            owed.answer(Ok(reply.clone()));
            reply
        }
    }
}

/// Runs a call and records its end.
pub(crate) async fn plain(
    rooms: &Arc<Rooms>,
    call: &NativeCall,
    request: ToolRequest,
    admitted: &ActiveCall,
) -> ResponseEnvelope {
    let started = Instant::now();
    let ctx = Context {
        rooms: Arc::clone(rooms),
        principal: Arc::clone(&call.principal),
        tool: call.row.name,
        job: None,
        edge: Some(call.edge),
        stop: admitted.stop.token.clone(),
    };
    let mut work = handler::work(ctx, request);
    // Much of the work ends without a wait, and then needs neither a task nor a stop.
    let outcome = match poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await {
        Poll::Ready(outcome) => outcome,
        Poll::Pending => {
            if call.row.recognises_repeats() {
                work = finishing(rooms, work);
            }
            tokio::select! {
                biased;
                outcome = work => outcome,
                error = admitted.stop.stopped(call.row.name) => Err(error),
            }
        }
    };
    rooms.kernel.auditor.each(rooms.kernel.now(), call, outcome.as_ref().err(), started);
    reply(outcome)
}

/// A write that has started is finished and announced even when its caller's time is up.
fn finishing(rooms: &Rooms, work: ToolFuture) -> ToolFuture {
    let running = rooms.kernel.tasks.spawn(work);
    Box::pin(async move { running.await.unwrap_or_else(|error| Err(failure::internal(error))) })
}
