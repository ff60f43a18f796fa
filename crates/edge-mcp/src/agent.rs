//! `/mcp/s/{session_id}`: a session of an agent as a URL. Whoever has its token is that session, as
//! whoever is at its socket, and sees what is offered to it there.

mod call;
mod catalog;

use std::sync::Arc;

use axum::extract::{Path, State as With};
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use ringback_broker::SessionPass;
use ringback_mcp_wire::{Code, Fault};
use ringback_proto::ids::SessionId;
use ringback_proto::{Error, ErrorKind, Result};

pub(crate) use self::call::begin;
pub(crate) use self::catalog::page;

use crate::peer::Peer;
use crate::state::State;
use crate::{caller, legacy, post, respond};

/// Where an agent shows a key of its own, in place of the session's.
const API_KEY: &str = "oubliette-api-key";

/// `POST`: one message.
pub(crate) async fn post(
    With(state): With<Arc<State>>,
    Path(session): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    match enter(&state, &session, &headers) {
        Ok(pass) => post::answer(state, Peer::Agent(pass), headers, body).await,
        Err(error) => refusal(&error),
    }
}

/// `GET`: what a session of MCP is told.
pub(crate) async fn get_stream(
    With(state): With<Arc<State>>,
    Path(session): Path<String>,
    headers: HeaderMap,
) -> Response {
    match enter(&state, &session, &headers) {
        Ok(pass) => legacy::get(state, Peer::Agent(pass), &headers),
        Err(error) => refusal(&error),
    }
}

/// `DELETE`: ends a session of MCP.
pub(crate) async fn delete(
    With(state): With<Arc<State>>,
    Path(session): Path<String>,
    headers: HeaderMap,
) -> Response {
    match enter(&state, &session, &headers) {
        Ok(pass) => legacy::delete(&state, &Peer::Agent(pass), &headers),
        Err(error) => refusal(&error),
    }
}

/// Lets a request in. An open daemon asks for the token too: it says which session this is.
fn enter(state: &State, session: &str, headers: &HeaderMap) -> Result<SessionPass> {
    let secret = caller::secret(headers).ok_or_else(|| {
        let message = "send the header `Authorization: Bearer TOKEN` with the session's own token";
        Error::new(ErrorKind::Unauthenticated, message)
    })?;
    let session: SessionId = session.parse().map_err(|_| Error::not_found("session", session))?;
    let pass = state.broker.enter_session(session, secret)?;
    let Some(key) = headers.get(API_KEY) else { return Ok(pass) };
    // A key that is not valid opens nothing, and the callers' tools are there all the same.
    let key = key.to_str().ok().and_then(|key| state.broker.authenticate_in(session, key).ok());
    Ok(pass.with_key(key))
}

/// Whoever is refused learns whether the session is over or the token is wrong, and nothing else.
fn refusal(error: &Error) -> Response {
    let fault = Fault::new(Code::InvalidRequest, error.message());
    if error.kind() == ErrorKind::NotFound {
        return respond::refusal(StatusCode::NOT_FOUND, None, &fault);
    }
    let mut response = respond::refusal(StatusCode::UNAUTHORIZED, None, &fault);
    let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}
