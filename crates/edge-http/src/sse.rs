//! Server-sent events, for every stream of this edge.

use std::convert::Infallible;
use std::pin::Pin;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use ringback_broker::Credential;
use serde::Serialize;

use crate::edge::State;

/// Makes buffering proxies pass events on immediately.
pub(crate) const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// A stream that ends with its events, with its caller's token, or with the daemon.
pub(crate) fn response(
    state: &State,
    credential: Credential,
    events: impl Stream<Item = Event> + Send + 'static,
) -> Response {
    let events = events.take_until(over(state, credential)).map(Ok::<_, Infallible>);
    let mut response = Sse::new(events).keep_alive(KeepAlive::default()).into_response();
    response.headers_mut().insert(X_ACCEL_BUFFERING, HeaderValue::from_static("no"));
    response
}

/// A frame up to this size goes out in one piece: copying it costs less than the chunks of several.
const ONE_PIECE_BYTES_MAX: usize = 4 << 10;

/// The same for encoded frames, each in several pieces: large data that is passed on goes out
/// uncopied.
pub(crate) fn frames(
    state: &State,
    credential: Credential,
    frames: impl Stream<Item = Vec<Bytes>> + Send + 'static,
) -> Response {
    let pieces = frames
        .take_until(over(state, credential))
        .flat_map(|pieces| stream::iter(joined(pieces).into_iter().map(Ok::<_, Infallible>)));
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-cache"),
        (X_ACCEL_BUFFERING, "no"),
    ];
    (headers, Body::from_stream(pieces)).into_response()
}

/// Makes one piece of a small frame.
fn joined(pieces: Vec<Bytes>) -> Vec<Bytes> {
    let n_bytes = pieces.iter().map(Bytes::len).sum::<usize>();
    if pieces.len() > 1 && n_bytes <= ONE_PIECE_BYTES_MAX {
        return vec![pieces.concat().into()];
    }
    pieces
}

/// Resolves when a stream must end, whatever is still to come.
pub(crate) fn over(
    state: &State,
    credential: Credential,
) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    let stopping = state.stopping().clone();
    Box::pin(async move {
        tokio::select! {
            () = credential.ended() => {}
            () = stopping.cancelled() => {}
        }
    })
}

/// Builds an event with a name and JSON data.
pub(crate) fn named<T: Serialize>(name: &str, data: &T) -> Event {
    let data = serde_json::to_string(data).expect("what the types define can be written as JSON");
    Event::default().event(name).data(data)
}
