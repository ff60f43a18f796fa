//! `POST /v1/tools/{name}/call`: JSON in, JSON or server-sent events out.

use std::convert::Infallible;
use std::num::NonZeroU64;

use axum::Json;
use axum::extract::{Path, Query, State as With};
use axum::http::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use ringback_broker::{Answer, Call, Edge, Replies};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::ids::{JobId, RequestId, StreamId};
use ringback_proto::{
    Error, ErrorKind, ResponseEnvelope, StreamChunk, ToolRequest, ToolResponse, ToolTiming,
};
use serde::{Deserialize, Serialize};

use super::error::ErrorBody;
use super::{Caller, HttpError, State, unexpected};

/// What a caller may ask for in the address.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Asked {
    /// The call fails when it has not ended by then.
    deadline_ms: Option<NonZeroU64>,
}

/// What an answer carries.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answered {
    Result(Box<ToolResponse>),
    Job {
        job_id: JobId,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        expected_timing: Option<ToolTiming>,
    },
}

pub(super) async fn call(
    With(state): With<State>,
    Caller(credential): Caller,
    Path(name): Path<String>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, HttpError> {
    let request = request(&name, &headers, &body).map_err(HttpError)?;
    let stream = wants_events(&headers);
    let options = CallOptions {
        stream,
        deadline_ms: asked.deadline_ms,
        ..preferences(&headers).map_err(HttpError)?
    };
    let call = Call {
        credential: &credential,
        edge: Edge::Http,
        envelope: RequestEnvelope { request: ToolCall::Native(request), options },
        request_id: idempotency_key(&headers).map_err(HttpError)?,
    };
    match state.broker.call(call) {
        Answer::Now(reply) if stream => Ok(events(Some(reply), None)),
        Answer::Later(replies, _) if stream => Ok(events(None, Some(replies))),
        Answer::Now(reply) => answer(reply),
        Answer::Later(mut replies, _) => answer(replies.next().await.ok_or_else(unexpected)?),
    }
}

/// The typed request behind a name and a JSON object. No body is an empty object.
fn request(name: &str, headers: &HeaderMap, body: &Bytes) -> Result<ToolRequest, Error> {
    let body = if body.is_empty() { b"{}".as_slice() } else { body };
    let is_json =
        |value: &str| value.split(';').next().unwrap_or_default().trim().ends_with("json");
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if content_type.is_some_and(|value| !is_json(value)) {
        let message = "arguments are JSON: send `Content-Type: application/json`";
        return Err(Error::new(ErrorKind::UnsupportedContentType, message));
    }
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Error::invalid("the arguments are a JSON object"));
    }
    let mut decoder = serde_json::Deserializer::from_slice(body);
    let request = ToolRequest::deserialize_named(name, &mut decoder)
        .ok_or_else(|| Error::not_found("tool", name))?;
    let misfit = |error: serde_json::Error| {
        let text: String = error.to_string().chars().take(400).collect();
        Error::invalid(format!("the arguments of `{name}` do not fit: {text}"))
    };
    let request = request.map_err(misfit)?;
    decoder.end().map_err(misfit)?;
    Ok(request)
}

fn wants_events(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// `Prefer: respond-async` and `Prefer: wait=SECONDS` (RFC 7240). Other preferences are ignored, as
/// that standard says.
fn preferences(headers: &HeaderMap) -> Result<CallOptions, Error> {
    let mut options = CallOptions::default();
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    for preference in values.flat_map(|value| value.split(',')).map(str::trim) {
        if preference.eq_ignore_ascii_case("respond-async") {
            options.wait_ms = Some(0);
        } else if let Some(seconds) = preference.strip_prefix("wait=") {
            let seconds: u64 = seconds
                .parse()
                .map_err(|_| Error::invalid("`Prefer: wait=` takes a whole number of seconds"))?;
            options.wait_ms = Some(seconds.saturating_mul(1000));
        }
    }
    Ok(options)
}

/// The same key from the same caller is the same call. Any text will do: its hash is the id.
fn idempotency_key(headers: &HeaderMap) -> Result<Option<RequestId>, Error> {
    /// Longer than any UUID or hash, short enough to be a header.
    const KEY_BYTES_MAX: usize = 255;
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        let message = format!("an Idempotency-Key has 1 to {KEY_BYTES_MAX} bytes");
        return Err(Error::invalid(message));
    }
    let hash = blake3::hash(key.as_bytes());
    let id = hash.as_bytes().first_chunk().copied().unwrap_or_default();
    Ok(Some(RequestId::from_bytes(id)))
}

fn answer(reply: ResponseEnvelope) -> Result<Response, HttpError> {
    match reply {
        ResponseEnvelope::Success { response } => {
            Ok(Json(Answered::Result(Box::new(response))).into_response())
        }
        ResponseEnvelope::JobStarted { job_id, tool, expected_timing } => {
            Ok(accepted(job_id, Some(tool), Some(expected_timing)))
        }
        ResponseEnvelope::Ack { job_id: Some(job_id), .. } => Ok(accepted(job_id, None, None)),
        ResponseEnvelope::Error(error) => Err(HttpError(error.into())),
        ResponseEnvelope::Ack { job_id: None, .. }
        | ResponseEnvelope::StreamStart { .. }
        | ResponseEnvelope::StreamChunk { .. }
        | ResponseEnvelope::StreamEnd { .. } => Err(unexpected()),
    }
}

fn accepted(job_id: JobId, tool: Option<String>, expected_timing: Option<ToolTiming>) -> Response {
    let location = [(LOCATION, format!("/v1/jobs/{job_id}"))];
    let job = Answered::Job { job_id, tool, expected_timing };
    (StatusCode::ACCEPTED, location, Json(job)).into_response()
}

/// What is sent as server-sent events: `start`, `chunk`, and at the end `result`, `job` or `error`.
#[derive(Serialize)]
struct Started {
    stream_id: StreamId,
    tool: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<JobId>,
}

fn events(first: Option<ResponseEnvelope>, replies: Option<Replies>) -> Response {
    let events = stream::unfold((first, replies), |(first, mut replies)| async move {
        let reply = match (first, &mut replies) {
            (Some(reply), _) => reply,
            (None, Some(replies)) => replies.next().await?,
            (None, None) => return None,
        };
        Some((Ok::<_, Infallible>(event(reply)), (None, replies)))
    });
    Sse::new(events).keep_alive(KeepAlive::default()).into_response()
}

fn event(reply: ResponseEnvelope) -> Event {
    match reply {
        ResponseEnvelope::StreamStart { stream_id, tool, job_id } => {
            named("start", &Started { stream_id, tool, job_id })
        }
        ResponseEnvelope::StreamChunk { chunk, .. } => named::<StreamChunk>("chunk", &chunk),
        ResponseEnvelope::Success { response }
        | ResponseEnvelope::StreamEnd { final_response: Some(response), .. } => {
            named("result", &response)
        }
        ResponseEnvelope::StreamEnd { final_response: None, .. } => Event::default().event("end"),
        ResponseEnvelope::JobStarted { job_id, .. }
        | ResponseEnvelope::Ack { job_id: Some(job_id), .. } => named("job", &job_id),
        ResponseEnvelope::Ack { job_id: None, message } => named("ack", &message),
        ResponseEnvelope::Error(error) => {
            let error = Error::from(error);
            named("error", &ErrorBody::from(&error))
        }
    }
}

fn named<T: Serialize>(name: &str, data: &T) -> Event {
    let data = serde_json::to_string(data).expect("what the table defines can be written as JSON");
    Event::default().event(name).data(data)
}
