//! Shows what an agent does as it happens.

use ringback_client::Client;
use ringback_proto::ids::SessionId;
use ringback_proto::record::SessionState;
use ringback_proto::request::{SessionEventInfo, SessionEventsRequest};
use ringback_proto::tool::tools::SessionEvents;

use super::keyboard::Keyboard;
use crate::failure::Failure;
use crate::screen::Screen;

/// How long one poll waits for events.
const WAIT_MS: u64 = 20_000;
/// How long the daemon's own answer to a question may take, which follows at once.
const ANSWER_MS: u64 = 200;

/// The last known state of a session.
#[derive(Debug)]
pub(in crate::commands) struct SessionStatus {
    pub(in crate::commands) state: SessionState,
    /// The first error after the last message.
    pub(in crate::commands) error: Option<String>,
}

/// Shows events until the session ends, or until it is idle if `until_idle` is set or the input has
/// ended. Returns the last state.
pub(in crate::commands) async fn follow(
    client: &Client,
    screen: Screen,
    session: SessionId,
    mut until_idle: bool,
    keyboard: &mut Keyboard,
) -> Result<SessionStatus, Failure> {
    let (mut since, mut error, mut rests) = (-1, None, false);
    loop {
        let request = SessionEventsRequest {
            session_id: session,
            since_index: Some(since),
            max_events: None,
            wait_ms: Some(match (rests, keyboard.is_stuck()) {
                (true, _) => 0,
                (false, true) => ANSWER_MS,
                (false, false) => WAIT_MS,
            }),
            include_children: true,
            follow: false,
        };
        // An input line cancels the poll, which is repeated from the same index.
        let page = tokio::select! {
            page = client.call::<SessionEvents>(request) => page?,
            line = keyboard.line() => {
                match line {
                    Some(line) => keyboard.typed(client, &line).await?,
                    // The next poll does not wait, and shows whether the session is idle.
                    None => (until_idle, rests) = (true, true),
                }
                continue;
            }
        };
        since = page.last_index;
        for event in &page.events {
            screen.item(event, |event| screen.printable(&told(event)))?;
            keyboard.note(event)?;
            match event.kind.as_str() {
                "error" if error.is_none() => error.clone_from(&event.text),
                "message" if event.role.as_deref() == Some("user") => error = None,
                _ => {}
            }
        }
        if page.events.is_empty() {
            keyboard.check_unstuck()?;
        }
        let state = page.status;
        // Only when no events are left: the state is newer than the events read so far.
        if rests && page.events.is_empty() && !is_at_work(state, until_idle) {
            return Ok(SessionStatus { state, error });
        }
        rests = !is_at_work(state, until_idle);
    }
}

/// Whether more events may come.
const fn is_at_work(state: SessionState, until_idle: bool) -> bool {
    match state {
        SessionState::Ended | SessionState::Failed | SessionState::Interrupted => false,
        SessionState::Idle => !until_idle,
        SessionState::Starting | SessionState::Running => true,
    }
}

fn told(event: &SessionEventInfo) -> String {
    let text = event.text.as_deref().unwrap_or_default();
    let tool = event.tool_name.as_deref().unwrap_or_default();
    match event.kind.as_str() {
        "message" => match event.role.as_deref() {
            Some("user") => format!("> {text}"),
            Some(_) | None => text.to_owned(),
        },
        "thought" => format!("  ({text})"),
        "permission_request" => {
            let (session, request) = (event.session_id, event.request_id.as_deref());
            let request = request.unwrap_or_default();
            format!(
                "  allow {tool}? ({text})\n  ringback session answer {session} {request} OPTION"
            )
        }
        "tool_call" => format!("  calls {tool}"),
        "tool_result" => format!("  {tool} {text}"),
        "status" => {
            let status = event.status.map_or("", SessionState::as_str);
            if text.is_empty() { format!("  ({status})") } else { format!("  ({status}: {text})") }
        }
        kind => format!("  {kind} {text}").trim_end().to_owned(),
    }
}
