//! `GET /v1/sessions/{session_id}/events`: the events of a session, and the calls of the tools that
//! the reader offers its agents, as they happen. The reader serves the agents until the stream
//! closes.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::State as With;
use axum::http::{HeaderMap, Version};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use ringback_broker::{
    CallerStream, Credential, LineCall, PartyMessage, SessionFollower, StreamMode,
};
use ringback_proto::ids::SessionId;
use ringback_proto::request::{SessionEventInfo, SessionGetRequest, SessionResponse};
use ringback_proto::tool::tools::SessionGet;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Interval;

use super::{ask, id};
use crate::api::{Auth, Content, Operation};
use crate::caller::StreamCaller;
use crate::client_tools::frames::{PING, Pieces, one_line};
use crate::client_tools::pings;
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::{PathValue, QueryValue};
use crate::sse;

const ABOUT: &str = "Events of the session and its children, named by type, with the index as \
    `id`; `caller_tool_request` and `caller_tool_cancel` for the tools you offer its agents; \
    `ping`; finally `end`, the session in its final state.";

/// The query value of a reader that wants no calls.
const NO_CALLERS: &str = "no";

/// The query parameters.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(super) struct Query {
    /// Only events after this index; all stored events if absent or -1. `Last-Event-ID` takes
    /// precedence.
    since_index: Option<i64>,
    /// The callers whose calls to include: a `caller_id`, several with commas, or `no`. All of
    /// yours if absent.
    callers: Option<String>,
}

/// A call that no longer needs an answer.
#[derive(Serialize)]
struct CancelledCall<'a> {
    r#type: &'static str,
    root_session_id: SessionId,
    request_id: &'a str,
    reason: &'static str,
}

/// A follower of a session.
struct Follower {
    state: State,
    credential: Credential,
    session: SessionId,
    root: SessionId,
    /// `None` for readers that want no calls, and once the session is over.
    calls: Option<CallerStream>,
    said: SessionFollower,
    pings: Interval,
    waiting: VecDeque<Pieces>,
    has_ended: bool,
}

/// What comes next.
enum NextItem {
    Post(Option<PartyMessage<Arc<LineCall>>>),
    Said(Option<Vec<SessionEventInfo>>),
    Ping,
}

pub(super) fn operation(tag: &'static str) -> Operation {
    Operation::new(tag, "follow_session", "Follows a session until it ends.")
        .auth(Auth::TokenOrTicket)
        .query::<Query>()
        .header("Last-Event-ID", "The `id` of the last event you received.")
        .answers(200, "The events of the session.", Content::Events(ABOUT))
        .fails([404, 504])
}

pub(super) async fn events(
    With(state): With<State>,
    version: Version,
    StreamCaller(credential): StreamCaller,
    PathValue(session_id): PathValue<String>,
    QueryValue(asked): QueryValue<Query>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    if version < Version::HTTP_11 {
        return Err(HttpError::NoStreaming);
    }
    let session: SessionId = id("session_id", &session_id)?;
    let shown = look(&state, &credential, session).await?;
    let since = last_event(&headers)
        .or_else(|| asked.since_index.and_then(|index| u64::try_from(index).ok()));
    let said = state.broker().follow_session(&credential, session, since).await?;
    let calls = match asked.callers.as_deref() {
        Some(NO_CALLERS) => None,
        _ if !shown.status.is_live() => None,
        callers => {
            let named = callers.map(|names| names.split(',').map(Arc::from).collect());
            let (root, holding) = (shown.root_session_id, StreamMode::Lasting);
            Some(state.broker().callers().open(&credential, root, named, holding)?)
        }
    };
    let follower = Follower {
        credential: credential.clone(),
        session,
        root: shown.root_session_id,
        calls,
        said,
        pings: pings(&state),
        waiting: VecDeque::new(),
        has_ended: false,
        state: state.clone(),
    };
    Ok(sse::frames(&state, credential, stream::unfold(follower, Follower::step)))
}

impl Follower {
    async fn step(mut self) -> Option<(Pieces, Self)> {
        loop {
            if let Some(pieces) = self.waiting.pop_front() {
                return Some((pieces, self));
            }
            if self.has_ended {
                return None;
            }
            match self.next().await {
                NextItem::Post(Some(post)) => self.waiting.extend(self.told(&post)),
                NextItem::Post(None) => self.calls = None,
                NextItem::Said(Some(events)) => {
                    self.waiting.extend(events.iter().filter_map(told_event));
                }
                NextItem::Said(None) => self.end().await,
                NextItem::Ping => self.waiting.push_back(vec![PING]),
            }
        }
    }

    /// A call goes before an event: an agent is waiting for it.
    async fn next(&mut self) -> NextItem {
        let calls = self.calls.as_mut();
        let post = async {
            match calls {
                Some(calls) => calls.next().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            post = post => NextItem::Post(post),
            events = self.said.next() => NextItem::Said(events),
            _ = self.pings.tick() => NextItem::Ping,
        }
    }

    fn told(&self, post: &PartyMessage<Arc<LineCall>>) -> Option<Pieces> {
        match post {
            PartyMessage::Call(call) => {
                let request = self.state.broker().caller_request(self.root, call);
                frame("event: caller_tool_request\n", &request)
            }
            PartyMessage::Cancel { call, custom_id, reason } => {
                let own = call.to_string();
                let cancelled = CancelledCall {
                    r#type: "caller_tool_cancel",
                    root_session_id: self.root,
                    request_id: custom_id.as_deref().unwrap_or(&own),
                    reason: reason.as_str(),
                };
                frame("event: caller_tool_cancel\n", &cancelled)
            }
        }
    }

    /// Ends the stream with the final state of the session, if the caller may still see it.
    async fn end(&mut self) {
        self.has_ended = true;
        if let Ok(session) = look(&self.state, &self.credential, self.session).await {
            self.waiting.extend(frame("event: end\n", &session));
        }
    }
}

async fn look(
    state: &State,
    credential: &Credential,
    session_id: SessionId,
) -> Result<SessionResponse, HttpError> {
    ask::<SessionGet>(state, credential, SessionGetRequest { session_id }).await
}

fn told_event(event: &SessionEventInfo) -> Option<Pieces> {
    frame(&format!("id: {}\nevent: {}\n", event.index, event.kind), event)
}

/// A frame with JSON on one line; `None` if it cannot be serialized.
fn frame(head: &str, data: &impl Serialize) -> Option<Pieces> {
    let json = Bytes::from(serde_json::to_vec(data).ok()?);
    Some(vec![format!("{head}data: ").into(), one_line(&json), Bytes::from_static(b"\n\n")])
}

/// The last index that a returning reader received. An invalid value is ignored.
fn last_event(headers: &HeaderMap) -> Option<u64> {
    headers.get("last-event-id")?.to_str().ok()?.parse().ok()
}
