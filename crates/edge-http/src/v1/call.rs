//! `POST /v1/tools/{name}/call`: JSON in, JSON or server-sent events out.

use std::convert::Infallible;
use std::num::NonZeroU64;

use axum::Json;
use axum::body::Body;
use axum::extract::State as With;
use axum::http::header::{CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use ringback_broker::{Answer, Call, CallControl, Edge, Replies, request_from_json};
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::ids::{JobId, StreamId};
use ringback_proto::value::Value;
use ringback_proto::{Error, ResponseEnvelope, StreamChunk, ToolResponse, ToolTiming};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::preferences::{idempotency_key, preferences, wants_events};
use super::unexpected;
use crate::api::{Content, Operation};
use crate::caller::Caller;
use crate::edge::State;
use crate::error::{ErrorBody, HttpError};
use crate::extractors::{PathValue, QueryValue, RawBody, check_json, invalid};
use crate::sse;

/// The query parameters.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Query {
    /// The deadline; the call fails if it has not ended by then.
    #[schemars(with = "Option<u64>", range(min = 1))]
    deadline_ms: Option<NonZeroU64>,
}

/// The tool's answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Answered {
    /// The result, as the tool returned it.
    #[schemars(with = "Value")]
    result: Box<RawValue>,
}

/// The call continues as a job.
#[derive(Debug, Serialize, JsonSchema)]
struct Accepted {
    job: StartedJob,
}

/// The job of a call.
#[derive(Debug, Serialize, JsonSchema)]
struct StartedJob {
    /// Its id.
    job_id: JobId,
    /// The tool it runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    /// The expected duration.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected_timing: Option<ToolTiming>,
    /// What a command did.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The first event of a stream.
#[derive(Serialize)]
struct StreamStart {
    stream_id: StreamId,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<JobId>,
}

pub(super) fn operation(tag: &'static str) -> Operation {
    const EVENTS: &str = "With `Accept: text/event-stream`: `start`, `chunk`, and finally \
        `result`, `job` or `error`.";
    Operation::new(tag, "call_tool", "Calls a tool with the body as its arguments.")
        .query::<Query>()
        .header("Prefer", "`respond-async` does not wait; `wait=10` waits 10 s for the result.")
        .header("Idempotency-Key", "The same key from the same token identifies the same call.")
        .optional_body(Content::json::<std::collections::BTreeMap<String, Value>>())
        .answers(200, "The tool's answer.", Content::json::<Answered>())
        .or(Content::Events(EVENTS))
        .answers(202, "The call continues as a job.", Content::json::<Accepted>())
        .with("Location", "The URL of the job.")
        .fails([404, 409, 499, 502, 504])
}

pub(super) async fn call(
    With(state): With<State>,
    Caller(credential): Caller,
    PathValue(name): PathValue<String>,
    asked: Result<QueryValue<Query>, HttpError>,
    headers: HeaderMap,
    RawBody(body): RawBody,
) -> Result<Response, HttpError> {
    state.broker().may_call(&credential, Edge::Http, &name)?;
    let QueryValue(asked) = asked?;
    check_json(&headers)?;
    let stream = wants_events(&headers);
    let options = CallOptions { stream, deadline_ms: asked.deadline_ms, ..preferences(&headers)? };
    let call = Call {
        credential: &credential,
        edge: Edge::Http,
        envelope: RequestEnvelope { request: request(name, body)?, options },
        request_id: idempotency_key(&headers)?,
    };
    match state.broker().call(call) {
        Answer::Now(reply) if stream => {
            Ok(sse::response(&state, credential, stream::iter([event(reply)])))
        }
        Answer::Later(replies, control) if stream => {
            Ok(sse::response(&state, credential, events(replies, control)))
        }
        Answer::Now(reply) => answer(reply),
        Answer::Later(mut replies, _) => answer(replies.next().await.ok_or_else(unexpected)?),
    }
}

/// Builds the call from a name and a JSON object. An absent body is an empty object. The input of a
/// tool that is not native is checked and passed on unchanged.
fn request(name: String, body: Bytes) -> Result<ToolCall, HttpError> {
    let body = if body.is_empty() { Bytes::from_static(b"{}") } else { body };
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Error::invalid("the arguments must be a JSON object").into());
    }
    let misfit = |error: serde_json::Error| invalid(&format!("the input of `{name}`"), &error);
    match request_from_json(&name, &body) {
        Some(request) => Ok(ToolCall::Native(request.map_err(misfit)?)),
        None => {
            serde_json::from_slice::<&RawValue>(&body).map_err(misfit)?;
            let arguments = Any { format: Format::Json, bytes: body };
            Ok(ToolCall::Named { name, arguments })
        }
    }
}

fn answer(reply: ResponseEnvelope) -> Result<Response, HttpError> {
    match reply {
        ResponseEnvelope::Success { response: ToolResponse::Passed(Any { bytes, .. }) } => {
            Ok(passed(bytes))
        }
        ResponseEnvelope::Success { response } => {
            Ok(Json(Answered { result: raw(&response)? }).into_response())
        }
        ResponseEnvelope::JobStarted { job_id, tool, expected_timing } => {
            let (tool, expected_timing) = (Some(tool), Some(expected_timing));
            Ok(accepted(StartedJob { job_id, tool, expected_timing, message: None }))
        }
        ResponseEnvelope::Ack { job_id: Some(job_id), message } => {
            let message = Some(message);
            Ok(accepted(StartedJob { job_id, tool: None, expected_timing: None, message }))
        }
        ResponseEnvelope::Error(error) => Err(Error::from(error).into()),
        ResponseEnvelope::Ack { job_id: None, .. }
        | ResponseEnvelope::StreamStart { .. }
        | ResponseEnvelope::StreamChunk { .. }
        | ResponseEnvelope::StreamEnd { .. } => Err(unexpected()),
    }
}

/// The answer of a tool that is not native: its own bytes, not copied.
fn passed(bytes: Bytes) -> Response {
    let pieces = [Bytes::from_static(b"{\"result\":"), bytes, Bytes::from_static(b"}")];
    let body = Body::from_stream(stream::iter(pieces.map(Ok::<_, Infallible>)));
    ([(CONTENT_TYPE, "application/json")], body).into_response()
}

/// An answer as JSON: serialized if it is ours, unchanged if it is only passed on.
fn raw(response: &ToolResponse) -> Result<Box<RawValue>, HttpError> {
    let written = if let ToolResponse::Passed(Any { bytes, .. }) = response {
        serde_json::from_slice(bytes)
    } else {
        serde_json::value::to_raw_value(response)
    };
    written.map_err(|_| unexpected())
}

fn accepted(job: StartedJob) -> Response {
    let location = [(LOCATION, format!("/v1/jobs/{}", job.job_id))];
    (StatusCode::ACCEPTED, location, Json(Accepted { job })).into_response()
}

/// The control stays with the stream: a caller that leaves drops both.
fn events(
    replies: Replies,
    control: CallControl,
) -> impl futures_util::Stream<Item = Event> + Send + 'static {
    stream::unfold((replies, control), |(mut replies, control)| async move {
        let reply = replies.next().await?;
        if let ResponseEnvelope::StreamChunk { chunk, .. } = &reply {
            // The connection asks for the next chunk once this one is written: that is the
            // backpressure.
            control.add_credit(u64::try_from(chunk.weight()).unwrap_or(u64::MAX));
        }
        Some((event(reply), (replies, control)))
    })
}

fn event(reply: ResponseEnvelope) -> Event {
    match reply {
        ResponseEnvelope::StreamStart { stream_id, tool, job_id } => {
            sse::named("start", &StreamStart { stream_id, tool, job_id })
        }
        ResponseEnvelope::StreamChunk { chunk, .. } => sse::named::<StreamChunk>("chunk", &chunk),
        ResponseEnvelope::Success { response }
        | ResponseEnvelope::StreamEnd { final_response: Some(response), .. } => {
            match raw(&response) {
                Ok(raw) => sse::named("result", &raw),
                Err(_) => Event::default().event("end"),
            }
        }
        ResponseEnvelope::StreamEnd { final_response: None, .. } => Event::default().event("end"),
        ResponseEnvelope::JobStarted { job_id, .. }
        | ResponseEnvelope::Ack { job_id: Some(job_id), .. } => sse::named("job", &job_id),
        ResponseEnvelope::Ack { job_id: None, message } => sse::named("ack", &message),
        ResponseEnvelope::Error(error) => {
            sse::named("error", &ErrorBody::from(&Error::from(error)))
        }
    }
}
