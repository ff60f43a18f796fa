//! `GET` and `DELETE` of an MCP session.

use std::sync::Arc;

use axum::extract::State as With;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use ringback_mcp_wire::{Code, Era, Fault, Version};

use super::courier::StreamReader;
use super::log::{StreamLog, parse_event_id};
use super::{find, session::Session};
use crate::peer::Peer;
use crate::post::PROTOCOL_VERSION;
use crate::state::State;
use crate::{caller, modern, response};

/// `GET /mcp`: the messages to the MCP session, from now on or after the last event read.
pub(crate) async fn get_stream(With(state): With<Arc<State>>, headers: HeaderMap) -> Response {
    match caller::authenticate(&state, &headers) {
        Ok(credential) => get(state, Peer::Caller(credential), &headers),
        Err(response) => *response,
    }
}

/// The same for any peer.
pub(crate) fn get(state: Arc<State>, peer: Peer, headers: &HeaderMap) -> Response {
    let session = match admitted(&state, &peer, headers) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    if !response::accepts_events(headers) {
        let fault = Fault::new(Code::InvalidRequest, "send `Accept: text/event-stream`");
        return response::refusal(StatusCode::NOT_ACCEPTABLE, None, &fault);
    }
    let (log, after) = match headers.get("last-event-id") {
        None => (Arc::clone(&session.standalone), None),
        Some(value) => {
            let place = value.to_str().ok().and_then(parse_event_id);
            let log = place.and_then(|(stream, _)| session.stream(stream));
            let Some((log, (_, message))) = log.zip(place) else {
                let fault =
                    Fault::new(Code::InvalidRequest, "no stream can resume from that event");
                return response::refusal(StatusCode::BAD_REQUEST, None, &fault);
            };
            (log, Some(message))
        }
    };
    follow(state, peer, &session, log, after)
}

/// A stream of an MCP session, until the MCP session, its reader's token or the daemon ends.
pub(super) fn follow(
    state: Arc<State>,
    peer: Peer,
    session: &Arc<Session>,
    log: Arc<StreamLog>,
    after: Option<u64>,
) -> Response {
    let ended = session.ended.clone().cancelled_owned();
    let waits_for_news = log.number == 0;
    let read_before = log.read_up_to();
    let (reader, events) = log.read(after, session.primes());
    let news = waits_for_news.then(|| {
        // A reader that names its last event gets the rest; any other starts from scratch.
        let known = if after.is_some() { 0 } else { read_before };
        StreamReader::new(Arc::clone(&state), Arc::clone(session), reader, known)
    });
    let until = async move {
        tokio::select! {
            () = ended => {}
            () = peer.ended() => {}
            () = state.stopping.cancelled(), if waits_for_news => {}
        }
    };
    match news {
        Some(news) => response::events(news.along(events).take_until(Box::pin(until))),
        None => response::events(events.take_until(Box::pin(until))),
    }
}

/// `DELETE /mcp`: ends the MCP session and cancels its calls.
pub(crate) async fn delete_session(With(state): With<Arc<State>>, headers: HeaderMap) -> Response {
    match caller::authenticate(&state, &headers) {
        Ok(credential) => delete(&state, &Peer::Caller(credential), &headers),
        Err(response) => *response,
    }
}

/// The same for any peer.
pub(crate) fn delete(state: &State, peer: &Peer, headers: &HeaderMap) -> Response {
    match admitted(state, peer, headers) {
        Ok(session) => {
            state.sessions.close(&session);
            StatusCode::NO_CONTENT.into_response()
        }
        Err(response) => *response,
    }
}

fn admitted(
    state: &State,
    peer: &Peer,
    headers: &HeaderMap,
) -> Result<Arc<Session>, Box<Response>> {
    let version = headers.get(PROTOCOL_VERSION).and_then(|value| value.to_str().ok());
    let is_modern = |name: &str| {
        Version::parse(name.trim()).is_some_and(|version| version.era() == Era::Modern)
    };
    if version.is_some_and(is_modern) {
        return Err(Box::new(modern::not_allowed()));
    }
    find(state, peer, headers, None)
}
