//! Calls themselves: `call_why`.

use std::str::FromStr as _;

use ringback_core::trace::Trace;
use ringback_proto::ids::{CallId, JobId, RequestId};
use ringback_proto::request::{CallExplainedResponse, CallWhyRequest};
use ringback_proto::tool::tools;
use ringback_proto::{Error, Result};

use super::Native;
use crate::handler::{Context, Handler};

/// The ids that identify a call.
enum CallKey {
    Call(CallId),
    Job(JobId),
    Request(RequestId),
}

impl CallKey {
    fn read(id: &str) -> Result<Self> {
        CallId::from_str(id)
            .map(Self::Call)
            .or_else(|_| JobId::from_str(id).map(Self::Job))
            .or_else(|_| RequestId::from_str(id).map(Self::Request))
            .map_err(|_| {
                Error::invalid_field("id", "give a call id, a job id or a request id (a UUID)")
            })
    }

    fn is(&self, trace: &Trace) -> bool {
        match self {
            Self::Call(call) => trace.call == *call,
            Self::Job(job) => trace.job == Some(*job),
            Self::Request(request_id) => trace.request_id == Some(*request_id),
        }
    }
}

impl Handler<tools::CallWhy> for Native {
    async fn handle(ctx: Context, request: CallWhyRequest) -> Result<CallExplainedResponse> {
        let (wanted, sight) = (CallKey::read(&request.id)?, ctx.sight());
        let is_wanted = |trace: &Trace| wanted.is(trace) && sight.includes(trace.principal, None);
        let trace = ctx.rooms.kernel.auditor.explain(is_wanted).ok_or_else(|| {
            let id: String = request.id.chars().take(80).collect();
            Error::not_found("recent call", id)
        })?;
        let job_status = match trace.job {
            None => None,
            Some(id) => ctx.read(move |store| store.job(id)).await?.map(|record| record.state),
        };
        Ok(explained(trace, job_status))
    }
}

fn explained(
    trace: Trace,
    job_status: Option<ringback_proto::record::JobState>,
) -> CallExplainedResponse {
    let (had, needed) = trace.levels;
    let on_line = trace.line.as_ref();
    CallExplainedResponse {
        call_id: trace.call,
        request_id: trace.request_id.map(|id| id.to_string()),
        job_id: trace.job,
        job_status,
        admitted: format!("scope {had}, and `{}` needs {needed}", trace.tool),
        tool: trace.tool.to_string(),
        edge: trace.edge.to_owned(),
        caller: trace.principal.to_string(),
        line: on_line.map(|on_line| on_line.line.to_string()),
        delivered_at: on_line.map(|on| on.delivered.iter().map(|now| now.unix).collect()),
        late_answers: on_line.map(|on_line| on_line.n_late_answers).filter(|n_late| *n_late > 0),
        admitted_at: trace.admitted.unix,
        deadline_ms: trace.deadline.allowed_ms,
        deadline_from: trace.deadline.bound.as_str().to_owned(),
        repeat: trace.repeat,
        took_ms: trace
            .answered
            .as_ref()
            .map(|answered| answered.at.mono.saturating_sub(trace.admitted.mono)),
        outcome: trace.answered.as_ref().map(|answered| answered.outcome.to_owned()),
        certainty: trace.answered.and_then(|answered| answered.certainty),
    }
}
