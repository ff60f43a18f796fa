//! Answers as HTTP.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use ringback_mcp_wire::{Era, Fault, Id, outgoing};
use tokio::time::timeout;

/// Half of the shortest idle timeout of common proxies.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// A response with serialized JSON.
pub(crate) fn json(status: StatusCode, body: String) -> Response {
    let json = HeaderValue::from_static("application/json");
    (status, [(CONTENT_TYPE, json)], body).into_response()
}

/// An error as JSON-RPC, with the matching status.
pub(crate) fn fault(id: Option<&Id>, fault: &Fault, era: Era) -> Response {
    let status = StatusCode::from_u16(fault.code.http_status(era));
    json(status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), outgoing::error(id, fault))
}

/// An error as JSON-RPC with an explicit status.
pub(crate) fn refusal(status: StatusCode, id: Option<&Id>, error: &Fault) -> Response {
    json(status, outgoing::error(id, error))
}

/// The answer to an accepted notification.
pub(crate) fn accepted() -> Response {
    StatusCode::ACCEPTED.into_response()
}

/// One server-sent event. Its data is JSON on one line, or empty.
pub(crate) fn event(id: Option<&str>, data: &str) -> Bytes {
    match id {
        Some(id) => format!("id: {id}\ndata: {data}\n\n").into(),
        None => format!("data: {data}\n\n").into(),
    }
}

/// Server-sent events, with comments while there is nothing to send.
pub(crate) fn events(events: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    /// Asks proxies not to hold events back.
    const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
    let kept_alive = stream::unfold(Box::pin(events), async |mut events| {
        match timeout(KEEP_ALIVE, events.next()).await {
            Ok(event) => Some((Ok::<_, Infallible>(event?), events)),
            Err(_) => Some((Ok(Bytes::from_static(b":\n\n")), events)),
        }
    });
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform")),
        (BUFFERING, HeaderValue::from_static("no")),
    ];
    (headers, Body::from_stream(kept_alive)).into_response()
}

/// Whether the client accepts server-sent events.
pub(crate) fn accepts_events(headers: &HeaderMap) -> bool {
    accepts(headers, "text/event-stream")
}

/// Whether the client accepts this type; one without an `Accept` header accepts all.
pub(crate) fn accepts(headers: &HeaderMap, wanted: &str) -> bool {
    let mut kinds = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|kind| kind.split(';').next().unwrap_or_default().trim())
        .peekable();
    let family = wanted.split('/').next().unwrap_or_default();
    kinds.peek().is_none()
        || kinds.any(|kind| {
            kind == "*/*"
                || kind.eq_ignore_ascii_case(wanted)
                || kind.strip_suffix("/*").is_some_and(|kind| kind.eq_ignore_ascii_case(family))
        })
}
