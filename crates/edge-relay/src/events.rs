//! Session events in the format of the clients that came before this daemon: they send a greeting,
//! start a session, and read its events until it is `completed` or has `failed`.

use ringback_proto::record::SessionState;
use ringback_proto::request::{SessionEventInfo, SessionEventsResponse};
use serde::Serialize;

/// The answer to `session_events` of a client that has greeted.
#[derive(Debug, Serialize)]
pub(crate) struct Events {
    session_id: String,
    status: Status,
    /// The status for other clients.
    state: SessionState,
    last_index: i64,
    events: Vec<SessionEventInfo>,
    completed: bool,
    failed: bool,
    dropped_events: u64,
}

/// The status of a session for such a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Running,
    Completed,
    Failed,
}

impl Status {
    /// An agent that waits for the next message has completed the last one, unless it broke off:
    /// then the next message starts another, which such a client does not learn.
    const fn of(state: SessionState, broke_off: bool) -> Self {
        match state {
            SessionState::Starting | SessionState::Running => Self::Running,
            SessionState::Idle if broke_off => Self::Failed,
            SessionState::Idle | SessionState::Ended => Self::Completed,
            SessionState::Failed | SessionState::Interrupted => Self::Failed,
        }
    }
}

impl From<SessionEventsResponse> for Events {
    fn from(response: SessionEventsResponse) -> Self {
        let SessionEventsResponse {
            session_id, events, last_index, status, dropped_events, ..
        } = response;
        let mut ends = events.iter().rev().filter(|event| event.session_id == session_id);
        let last = ends.find(|event| event.kind == "completion" || event.kind == "error");
        let seen = Status::of(status, last.is_some_and(|event| event.kind == "error"));
        Self {
            session_id: session_id.to_string(),
            status: seen,
            state: status,
            last_index,
            events,
            completed: seen == Status::Completed,
            failed: seen == Status::Failed,
            dropped_events,
        }
    }
}
