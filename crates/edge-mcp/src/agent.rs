//! `/mcp/s/{session_id}`: an agent session as a URL. A client with its token is that session, like
//! a client at its socket, and sees the same tools.

mod call;
mod catalog;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State as With};
use axum::http::header::WWW_AUTHENTICATE;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use ringback_broker::SessionPass;
use ringback_mcp_wire::{Code, Fault};
use ringback_proto::ids::SessionId;
use ringback_proto::{Error, ErrorKind, Result};

pub(crate) use self::call::begin;
pub(crate) use self::catalog::page;

use crate::peer::Peer;
use crate::state::State;
use crate::{caller, legacy, post, response};

/// The header for an agent's own key, in place of the session's.
const API_KEY: &str = "oubliette-api-key";

/// `POST`: one message.
pub(crate) async fn post(
    With(state): With<Arc<State>>,
    Path(session): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    match enter(&state, &session, &headers) {
        Ok(pass) => post::answer(state, Peer::Agent(pass), headers, body).await,
        Err(error) => refusal(&error),
    }
}

/// `GET`: the messages to an MCP session.
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

/// `DELETE`: ends an MCP session.
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

/// Admits a request. An open daemon needs the token too: it identifies the session.
fn enter(state: &State, session: &str, headers: &HeaderMap) -> Result<SessionPass> {
    let secret = caller::secret(headers).ok_or_else(|| {
        let message = "send the header `Authorization: Bearer TOKEN` with the session's own token";
        Error::new(ErrorKind::Unauthenticated, message)
    })?;
    let session: SessionId = session.parse().map_err(|_| Error::not_found("session", session))?;
    let pass = state.broker.enter_session(session, secret)?;
    let Some(key) = headers.get(API_KEY) else { return Ok(pass) };
    // An invalid key gives no access, but the caller tools stay available.
    let key = key.to_str().ok().and_then(|key| state.broker.authenticate_in(session, key).ok());
    Ok(pass.with_key(key))
}

/// A refused client learns whether the session is over or the token is wrong, and nothing else.
fn refusal(error: &Error) -> Response {
    let fault = Fault::new(Code::InvalidRequest, error.message());
    if error.kind() == ErrorKind::NotFound {
        return response::refusal(StatusCode::NOT_FOUND, None, &fault);
    }
    let mut response = response::refusal(StatusCode::UNAUTHORIZED, None, &fault);
    let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}
