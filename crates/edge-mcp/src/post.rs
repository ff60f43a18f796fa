//! `POST /mcp`: one message, of either era.

use std::error::Error as _;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State as With;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use http_body_util::{BodyExt as _, LengthLimitError};
use ringback_mcp_wire::{Code, Era, Fault, Message, Object, Version, keys};

use crate::peer::Peer;
use crate::state::State;
use crate::{caller, legacy, modern, response};

/// The header with the protocol version of a request.
pub(crate) const PROTOCOL_VERSION: &str = "mcp-protocol-version";

pub(crate) async fn post(
    With(state): With<Arc<State>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let credential = match caller::authenticate(&state, &headers) {
        Ok(credential) => credential,
        Err(response) => return *response,
    };
    answer(state, Peer::Caller(credential), headers, body).await
}

/// Answers one message of any peer.
pub(crate) async fn answer(
    state: Arc<State>,
    peer: Peer,
    headers: HeaderMap,
    body: Body,
) -> Response {
    if !is_json(&headers) {
        let fault = Fault::new(Code::InvalidRequest, "send `Content-Type: application/json`");
        return response::refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, None, &fault);
    }
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return unread(&error),
    };
    let message = match Message::decode(&body, state.limits()) {
        Ok(message) => message,
        Err(malformed) => {
            return response::fault(malformed.id.as_ref(), &malformed.fault, Era::Modern);
        }
    };
    match era(&headers, &message) {
        Era::Modern => modern::post(state, peer, headers, message).await,
        Era::Legacy => legacy::post(state, peer, headers, message).await,
    }
}

/// The answer to a body that did not come whole. The listener limits its size and its time.
fn unread(error: &axum::Error) -> Response {
    let is_too_large = error.source().is_some_and(|cause| cause.is::<LengthLimitError>());
    let status = if is_too_large { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
    let fault = Fault::new(Code::InvalidRequest, format!("cannot read the body: {error}"));
    response::refusal(status, None, &fault)
}

/// A request with a version in its `_meta`, or with a version without a handshake in its header,
/// stands alone. Nothing is taken from an earlier one on the same connection.
fn era(headers: &HeaderMap, message: &Message<'_>) -> Era {
    let (method, params) = match message {
        Message::Request(request) => (request.method.as_ref(), &request.params),
        Message::Notification(told) => (told.method.as_ref(), &told.params),
        Message::Reply(_) => return Era::Legacy,
    };
    let meta = params.get("_meta").and_then(|raw| Object::of(raw).ok());
    let names_version = meta.is_some_and(|meta| meta.get(keys::PROTOCOL_VERSION).is_some());
    let header = headers.get(PROTOCOL_VERSION).map(|value| value.to_str().unwrap_or_default());
    let is_legacy_header = header.is_none_or(|name| {
        Version::parse(name.trim()).is_some_and(|version| version.era() == Era::Legacy)
    });
    if names_version || !is_legacy_header || method == "server/discover" {
        Era::Modern
    } else {
        Era::Legacy
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    kind.trim().eq_ignore_ascii_case("application/json")
}
