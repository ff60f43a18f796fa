//! Runs a call of a native tool without a job: once, however often it is repeated.

use std::sync::Arc;

use ringback_core::repeats::Begin;
use ringback_proto::record::RepeatKey;
use ringback_proto::{Error, ResponseEnvelope, ToolRequest};
use tokio::time::Instant;

use crate::broker::Asked;
use crate::call::Admitted;
use crate::failure;
use crate::handler::{self, Context};
use crate::repeats::{Answered, Owed};
use crate::replies::{Pending, reply};
use crate::rooms::Rooms;

/// A call that runs once, however often it is repeated.
pub(crate) async fn once(
    rooms: &Arc<Rooms>,
    asked: Asked,
    key: RepeatKey,
    request: ToolRequest,
    admitted: Admitted,
) -> ResponseEnvelope {
    let owed = Owed::new();
    let principal = asked.principal.id;
    match rooms.calls.repeats.begin(
        rooms.kernel.now(),
        principal,
        key,
        Answered::Plain(owed.place()),
    ) {
        Err(error) => error.into(),
        Ok(Begin::Again(Answered::Plain(first))) => {
            rooms.kernel.auditor.repeated(rooms.kernel.now(), &asked, None);
            tokio::select! {
                biased;
                answer = first.wait() => answer.clone().unwrap_or_else(Into::into),
                error = admitted.stop.stopped(asked.row.name) => error.into(),
            }
        }
        Ok(Begin::Again(Answered::Job(_))) => {
            Error::internal("repeat", "one request id is used for two kinds of call").into()
        }
        Ok(Begin::First) => {
            let reply = match rooms.calls.unused_for_a_job(principal, key).await {
                Ok(()) => plain(rooms, &asked, request, &admitted).await,
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

pub(crate) async fn plain(
    rooms: &Arc<Rooms>,
    asked: &Asked,
    request: ToolRequest,
    admitted: &Admitted,
) -> ResponseEnvelope {
    let started = Instant::now();
    let ctx = Context {
        rooms: Arc::clone(rooms),
        principal: Arc::clone(&asked.principal),
        job: None,
        edge: Some(asked.edge),
        stop: admitted.stop.token.clone(),
    };
    let work: Pending<_> = if asked.row.recognises_repeats() {
        // A write that has started is finished and announced even when its caller's time is up.
        let running = rooms.kernel.tasks.spawn(handler::work(ctx, request));
        Box::pin(async move { running.await.unwrap_or_else(|error| Err(failure::internal(error))) })
    } else {
        handler::work(ctx, request)
    };
    let outcome = tokio::select! {
        biased;
        outcome = work => outcome,
        error = admitted.stop.stopped(asked.row.name) => Err(error),
    };
    rooms.kernel.auditor.each(rooms.kernel.now(), asked, outcome.as_ref().err(), started);
    reply(outcome)
}
