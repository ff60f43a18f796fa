//! How to reach callers and followers of sessions in both eras: as log messages, the only thing
//! that a server may send to any client unasked.

use std::collections::VecDeque;
use std::sync::Arc;

use ringback_broker::{Broker, Credential, LineCall, PartyMessage, SessionFollower};
use ringback_mcp_wire::outgoing::{self, ServerNotification};
use ringback_mcp_wire::{LogLevel, RawValue, compact};
use ringback_proto::ids::SessionId;
use ringback_proto::request::SessionEventInfo;
use serde::Serialize;
use serde_json::value::to_raw_value;

/// The logger of calls.
const CALLER_TOOL: &str = "oubliette.caller_tool";
/// The logger of all other events of a session.
const SESSION: &str = "oubliette.session";

/// The level of all of them.
pub(crate) const LEVEL: LogLevel = LogLevel::Info;

/// A call that no longer needs an answer.
#[derive(Serialize)]
struct CancelledCall<'a> {
    r#type: &'static str,
    root_session_id: SessionId,
    request_id: &'a str,
    reason: &'static str,
}

/// The message to a caller about a call for it.
pub(crate) fn post(broker: &Broker, root: SessionId, post: &PartyMessage<Arc<LineCall>>) -> String {
    match post {
        PartyMessage::Call(call) => log(CALLER_TOOL, &broker.caller_request(root, call)),
        PartyMessage::Cancel { call, custom_id, reason } => {
            let own = call.to_string();
            let cancelled = CancelledCall {
                r#type: "caller_tool_cancel",
                root_session_id: root,
                request_id: custom_id.as_deref().unwrap_or(&own),
                reason: reason.as_str(),
            };
            log(CALLER_TOOL, &cancelled)
        }
    }
}

/// The message to a follower about an event.
pub(crate) fn said(event: &SessionEventInfo) -> String {
    log(SESSION, event)
}

fn log(logger: &str, data: &impl Serialize) -> String {
    let data = to_raw_value(data).unwrap_or_else(|error| {
        tracing::warn!(%error, logger, "cannot write an event as JSON");
        RawValue::NULL.to_owned()
    });
    // An event consists of lines, so there must be none inside. They only stand between tokens.
    let data = if data.get().contains(['\n', '\r']) { compact(&data) } else { data };
    outgoing::notification(&ServerNotification::Log { level: LEVEL, logger, data: &data })
}

/// A reader of the events of a session and its children, one at a time.
#[derive(Debug)]
pub(crate) struct EventReader {
    broker: Broker,
    credential: Credential,
    session: SessionId,
    since: Option<u64>,
    follower: Option<SessionFollower>,
    waiting: VecDeque<SessionEventInfo>,
}

impl EventReader {
    /// Reads the events after an index.
    pub(crate) const fn new(
        broker: Broker,
        credential: Credential,
        session: SessionId,
        since: Option<u64>,
    ) -> Self {
        Self { broker, credential, session, since, follower: None, waiting: VecDeque::new() }
    }

    /// Returns the next event. `None` when the session is over, or not visible to this caller.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub(crate) async fn next(&mut self) -> Option<SessionEventInfo> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some(event);
            }
            if self.follower.is_none() {
                let (credential, session) = (&self.credential, self.session);
                let opened = self.broker.follow_session(credential, session, self.since).await;
                self.follower = Some(opened.ok()?);
            }
            self.waiting = self.follower.as_mut()?.next().await?.into();
        }
    }
}
