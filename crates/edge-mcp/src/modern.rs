//! The modern era: every request stands alone, with no state between two of them.

mod headers;
mod parked_calls;
mod session_subscription;
mod subscription;

use std::sync::Arc;

use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use ringback_mcp_wire::elicitation::takes_forms;
use ringback_mcp_wire::outgoing::{self, Cache, CacheScope, DiscoverResult};
use ringback_mcp_wire::{CallTool, ClientRequest, Code, Era, Fault, Id, Message, Object, Request};

use self::parked_calls::ParkedCall;
pub(crate) use self::parked_calls::ParkedCalls;
use self::session_subscription::Client;
use crate::peer::Peer;
use crate::state::State;
use crate::tools::{
    self, CallRequest, CallState, Interest, NotificationOptions, Outcome, RunningCall, Step,
};
use crate::{caller, reach, response};

/// The answer to `server/discover` changes only with the build.
const DISCOVER_TTL_MS: u64 = 3_600_000;

/// Answers one message.
pub(crate) async fn post(
    state: Arc<State>,
    peer: Peer,
    headers: HeaderMap,
    message: Message<'_>,
) -> Response {
    let request = match message {
        Message::Request(request) => request,
        // Closing the stream cancels a call; no notification is needed.
        Message::Notification(_) | Message::Reply(_) => return response::accepted(),
    };
    match answer(&state, peer, &headers, &request).await {
        Ok(response) => response,
        Err(fault) => response::fault(Some(&request.id), &fault, Era::Modern),
    }
}

async fn answer(
    state: &Arc<State>,
    peer: Peer,
    headers: &HeaderMap,
    request: &Request<'_>,
) -> Result<Response, Fault> {
    let meta = request.meta()?;
    headers::check(request, &meta, headers)?;
    let wanted = NotificationOptions { progress: meta.progress_token()?, log: meta.log_level()? };
    let id = &request.id;
    match ClientRequest::of(request, Era::Modern)? {
        ClientRequest::Discover => Ok(ok(discover(state, &peer, id))),
        ClientRequest::ListTools { cursor } => {
            let page = tools::page(&state.broker, &peer, id, cursor, state.stamp());
            page.map(ok).map_err(|error| tools::list_fault(&error))
        }
        ClientRequest::CallTool(call) => {
            let takes_forms = meta.client_capabilities().is_some_and(|can| takes_forms(&can));
            let client = Client { id: id.clone(), tool: call.name.to_string(), takes_forms };
            if let Some(name) = call.state.clone() {
                let can_follow = can_follow(headers, &wanted);
                return go_on(state, &peer, client, &name, &call.responses, can_follow).await;
            }
            Ok(call_tool(state, &peer, headers, client, call, wanted).await)
        }
        ClientRequest::Listen(filter) => {
            Ok(subscription::open(Arc::clone(state), peer, id.clone(), filter))
        }
        ClientRequest::Initialize(_) | ClientRequest::Ping | ClientRequest::SetLevel(_) => {
            Err(Fault::method_not_found(&request.method))
        }
    }
}

fn discover(state: &State, peer: &Peer, id: &Id) -> String {
    let cache = Cache { ttl_ms: DISCOVER_TTL_MS, scope: CacheScope::Public };
    let instructions = peer.instructions();
    outgoing::answer(id, &DiscoverResult { instructions, cache }, state.stamp())
}

async fn call_tool(
    state: &Arc<State>,
    peer: &Peer,
    headers: &HeaderMap,
    client: Client,
    call: CallTool<'_>,
    wanted: NotificationOptions,
) -> Response {
    let id = &client.id;
    let takes_events = response::accepts_events(headers);
    let can_follow = can_follow(headers, &wanted);
    let mut follow =
        match tools::begin(&state.broker, CallRequest { id, peer, call, wanted, can_follow }) {
            CallState::Done(outcome) => return done(state, peer, headers, id, &outcome),
            CallState::Later(follow) => *follow,
        };
    match peer {
        Peer::Caller(credential) if follow.interest().is_some_and(Interest::follows) => {
            let (state, credential) = (Arc::clone(state), credential.clone());
            response::events(session_subscription::events(state, credential, client, follow))
        }
        Peer::Caller(_) if follow.is_long() && takes_events => {
            response::events(events(Arc::clone(state), id.clone(), follow))
        }
        Peer::Agent(pass) if follow.is_long() && takes_events => {
            let pass = pass.clone();
            let until = Box::pin(async move { pass.ended().await });
            let events = events(Arc::clone(state), id.clone(), follow);
            response::events(events.take_until(until))
        }
        Peer::Caller(_) | Peer::Agent(_) => {
            let outcome = follow.end().await;
            done(state, peer, headers, id, &outcome)
        }
    }
}

/// Whether the client can receive events of a session on this request.
fn can_follow(headers: &HeaderMap, wanted: &NotificationOptions) -> bool {
    response::accepts_events(headers) && wanted.log.is_some_and(|least| least <= reach::LEVEL)
}

/// Continues a call that was answered with a question. It does not run again: what it did is done.
async fn go_on(
    state: &Arc<State>,
    peer: &Peer,
    client: Client,
    name: &str,
    responses: &Object<'_>,
    can_follow: bool,
) -> Result<Response, Fault> {
    let Peer::Caller(credential) = peer else {
        return Err(Fault::invalid_params("no call is waiting for an answer here"));
    };
    if !can_follow {
        let message = "continue the call as it started: with `io.modelcontextprotocol/logLevel` in \
            `_meta`, and `text/event-stream` accepted";
        return Err(Fault::invalid_params(message));
    }
    let parked = state.parked.take(name, credential.id(), &client.tool).ok_or_else(|| {
        let message = "no call of yours is waiting under this `requestState`; follow the session \
            with `session_events`, and answer its questions with `session_message`";
        Fault::invalid_params(message)
    })?;
    let ParkedCall { question, stay, .. } = parked;
    let question = match responses.get(&question.request_id) {
        Some(result) => {
            question.answer(&state.broker, credential, result).await;
            None
        }
        None => Some(question),
    };
    let (state, credential) = (Arc::clone(state), credential.clone());
    Ok(response::events(session_subscription::resumed(state, credential, client, stay, question)))
}

/// The answer to an ended call.
fn done(state: &State, peer: &Peer, headers: &HeaderMap, id: &Id, outcome: &Outcome) -> Response {
    match outcome {
        Outcome::Unauthenticated(error) if peer.has_token() => {
            caller::unauthenticated(state, headers, Some("invalid_token"), error)
        }
        Outcome::Forbidden(error) if peer.has_token() && caller::can_ask_for_more(state) => {
            caller::forbidden(state, headers, id, error)
        }
        Outcome::Fault(fault) => response::fault(Some(id), fault, Era::Modern),
        Outcome::Native(_)
        | Outcome::Passed(_)
        | Outcome::Job(_)
        | Outcome::Failed(_)
        | Outcome::Forbidden(_)
        | Outcome::Unauthenticated(_)
        | Outcome::Silent => outcome.encode(id, state.stamp()).map_or_else(response::accepted, ok),
    }
}

/// A call as events: messages on the way, then the answer. Closing the stream cancels it.
fn events(
    state: Arc<State>,
    id: Id,
    follow: RunningCall,
) -> impl futures_util::Stream<Item = Bytes> + Send + 'static {
    stream::unfold(Some(follow), move |follow| {
        let (state, id) = (Arc::clone(&state), id.clone());
        async move {
            let mut follow = follow?;
            match follow.next().await {
                Step::Told(told) => Some((response::event(None, &told), Some(follow))),
                Step::Done(outcome) => {
                    let answer = outcome.encode(&id, state.stamp())?;
                    Some((response::event(None, &answer), None))
                }
            }
        }
    })
}

fn ok(body: String) -> Response {
    response::json(StatusCode::OK, body)
}

/// The answer to a modern client that uses a method of MCP sessions.
pub(crate) fn not_allowed() -> Response {
    let fault = Fault::new(Code::InvalidRequest, "only POST is supported without an MCP session");
    let mut response = response::refusal(StatusCode::METHOD_NOT_ALLOWED, None, &fault);
    let allow = axum::http::HeaderValue::from_static("POST");
    response.headers_mut().insert(axum::http::header::ALLOW, allow);
    response
}
