//! The legacy era: a handshake, an MCP session, and streams that can be resumed.

mod call;
mod courier;
mod log;
mod session;
mod sessions;
mod streams;

use std::sync::Arc;

use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use ringback_mcp_wire::elicitation::takes_forms;
use ringback_mcp_wire::outgoing::{self, Capabilities, InitializeResult, Stamp};
use ringback_mcp_wire::{
    ClientRequest, Code, Era, Fault, Id, Initialize, Message, Notification, Request, Version,
};
use serde::Serialize;

pub(crate) use self::sessions::Sessions;
pub(crate) use self::streams::{delete, delete_session, get, get_stream};

use self::session::{ClientProfile, Session};
use crate::peer::Peer;
use crate::post::PROTOCOL_VERSION;
use crate::state::State;
use crate::{caller, response, tools};

const SESSION_ID: &str = "mcp-session-id";

/// The answer to a request without a result.
#[derive(Serialize)]
struct EmptyResult {}

/// Answers one message.
pub(crate) async fn post(
    state: Arc<State>,
    peer: Peer,
    headers: HeaderMap,
    message: Message<'_>,
) -> Response {
    match message {
        Message::Request(request) if request.method == "initialize" => {
            handshake(&state, peer, &request)
        }
        Message::Request(request) => match find(&state, &peer, &headers, Some(&request.id)) {
            Ok(session) => on_request(&state, &session, &peer, &headers, &request).await,
            Err(response) => *response,
        },
        Message::Notification(told) => match find(&state, &peer, &headers, None) {
            Ok(session) => on_notification(&session, &told),
            Err(response) => *response,
        },
        Message::Reply(reply) => match find(&state, &peer, &headers, None) {
            Ok(session) => {
                courier::on_reply(&state, &session, &peer, &reply).await;
                response::accepted()
            }
            Err(response) => *response,
        },
    }
}

fn handshake(state: &State, peer: Peer, request: &Request<'_>) -> Response {
    let id = &request.id;
    let asked = match ClientRequest::of(request, Era::Legacy) {
        Ok(ClientRequest::Initialize(asked)) => asked,
        Ok(_) => return response::fault(Some(id), &Fault::method_not_found("?"), Era::Legacy),
        Err(fault) => return response::fault(Some(id), &fault, Era::Legacy),
    };
    let Initialize { protocol_version, capabilities } = asked;
    let (version, instructions) = (Version::settle(&protocol_version), peer.instructions());
    let opened = ClientProfile {
        tools: peer.fingerprint(&state.broker),
        // Older versions have no forms.
        takes_forms: version >= Version::V2025_06_18 && takes_forms(&capabilities),
    };
    let Some(session) = state.sessions.open(peer, version, opened) else {
        let fault = Fault::new(Code::Internal, "too many MCP sessions are open; try again later");
        return response::refusal(StatusCode::SERVICE_UNAVAILABLE, Some(id), &fault);
    };
    let result = InitializeResult {
        protocol_version: version,
        capabilities: Capabilities::default(),
        server_info: &state.server,
        instructions,
    };
    let mut response = response::json(StatusCode::OK, outgoing::result(id, &result));
    if let Ok(value) = HeaderValue::from_str(session.id()) {
        response.headers_mut().insert(SESSION_ID, value);
    }
    response
}

/// Finds the MCP session of a request. One of another principal is reported as unknown.
fn find(
    state: &State,
    peer: &Peer,
    headers: &HeaderMap,
    id: Option<&Id>,
) -> Result<Arc<Session>, Box<Response>> {
    let refuse = |status, message: &str| {
        let fault = Fault::new(Code::InvalidRequest, message);
        Err(Box::new(response::refusal(status, id, &fault)))
    };
    if let Some(value) = headers.get(PROTOCOL_VERSION) {
        let version = value.to_str().ok().and_then(|name| Version::parse(name.trim()));
        if version.is_none_or(|version| version.era() == Era::Modern) {
            return refuse(
                StatusCode::BAD_REQUEST,
                "MCP sessions do not support this protocol version",
            );
        }
    }
    let Some(value) = headers.get(SESSION_ID) else {
        let message = "send the header `Mcp-Session-Id` from the answer to `initialize`";
        return refuse(StatusCode::BAD_REQUEST, message);
    };
    match value.to_str().ok().and_then(|name| state.sessions.find(name, peer.owner())) {
        Some(session) => Ok(session),
        None => refuse(StatusCode::NOT_FOUND, "no such MCP session; initialize a new one"),
    }
}

async fn on_request(
    state: &Arc<State>,
    session: &Arc<Session>,
    peer: &Peer,
    headers: &HeaderMap,
    request: &Request<'_>,
) -> Response {
    match answer(state, session, peer, headers, request).await {
        Ok(response) => response,
        Err(fault) => response::fault(Some(&request.id), &fault, Era::Legacy),
    }
}

async fn answer(
    state: &Arc<State>,
    session: &Arc<Session>,
    peer: &Peer,
    headers: &HeaderMap,
    request: &Request<'_>,
) -> Result<Response, Fault> {
    let id = &request.id;
    let nothing = || response::json(StatusCode::OK, outgoing::result(id, &EmptyResult {}));
    match ClientRequest::of(request, Era::Legacy)? {
        ClientRequest::Ping => Ok(nothing()),
        ClientRequest::SetLevel(level) => {
            session.set_level(level);
            Ok(nothing())
        }
        ClientRequest::ListTools { cursor } => {
            tools::page(&state.broker, peer, id, cursor, Stamp::Legacy)
                .map(|page| response::json(StatusCode::OK, page))
                .map_err(|error| tools::list_fault(&error))
        }
        ClientRequest::CallTool(asked) => {
            let progress = request.meta()?.progress_token()?;
            let caller = call::Caller { state, session, peer, headers };
            Ok(caller.call(id, asked, progress).await)
        }
        ClientRequest::Initialize(_) | ClientRequest::Discover | ClientRequest::Listen(_) => {
            Err(Fault::method_not_found(&request.method))
        }
    }
}

fn on_notification(session: &Session, told: &Notification<'_>) -> Response {
    match told.method.as_ref() {
        "notifications/initialized" => session.set_initialized(),
        "notifications/cancelled" => {
            // A call that was answered in the meantime is gone, which is not an error.
            if let Some(id) = told.params.get("requestId").and_then(Id::from_raw) {
                session.cancel(&id);
            }
        }
        _ => {}
    }
    response::accepted()
}

/// The answer to an ended call, where it is not a stream.
fn done(
    state: &State,
    peer: &Peer,
    headers: &HeaderMap,
    id: &Id,
    outcome: &tools::Outcome,
) -> Response {
    match outcome {
        tools::Outcome::Unauthenticated(error) if peer.has_token() => {
            caller::unauthenticated(state, headers, Some("invalid_token"), error)
        }
        tools::Outcome::Forbidden(error) if peer.has_token() && caller::can_ask_for_more(state) => {
            caller::forbidden(state, headers, id, error)
        }
        tools::Outcome::Forbidden(_)
        | tools::Outcome::Unauthenticated(_)
        | tools::Outcome::Fault(_)
        | tools::Outcome::Native(_)
        | tools::Outcome::Passed(_)
        | tools::Outcome::Job(_)
        | tools::Outcome::Failed(_)
        | tools::Outcome::Silent => outcome
            .encode(id, Stamp::Legacy)
            .map_or_else(response::accepted, |body| response::json(StatusCode::OK, body)),
    }
}
