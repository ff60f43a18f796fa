//! Shows what an agent does as it happens.

use std::time::Duration;

use ringback_client::Client;
use ringback_proto::ids::SessionId;
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    SessionEventInfo, SessionEventsRequest, SessionEventsResponse, SessionGetRequest,
};
use ringback_proto::tool::tools::{SessionEvents, SessionGet};

use super::keyboard::Keyboard;
use super::transcript::Transcript;
use crate::commands::spending::totals;
use crate::failure::Failure;

/// How long one poll waits for events.
const WAIT_MS: u64 = 20_000;
/// How often the time in the status line moves.
const TICK: Duration = Duration::from_secs(1);
/// How long the daemon's own answer to a question may take, which follows at once.
const ANSWER_MS: u64 = 200;

/// The last known state of a session.
#[derive(Debug)]
pub(in crate::commands) struct SessionStatus {
    pub(in crate::commands) state: SessionState,
    /// The first error after the last message.
    pub(in crate::commands) error: Option<String>,
}

/// What wakes a follower.
enum Woken {
    Page(SessionEventsResponse),
    Line(Option<String>),
}

/// Shows events until the session ends, or until it is idle if `until_idle` is set or the input has
/// ended. Returns the last state.
pub(in crate::commands) async fn follow(
    client: &Client,
    transcript: &Transcript,
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
        let page = match woken(client, request, transcript, keyboard).await? {
            Woken::Page(page) => page,
            Woken::Line(Some(line)) => {
                keyboard.typed(client, &line).await?;
                continue;
            }
            Woken::Line(None) => {
                // The next poll does not wait, and shows whether the session is idle.
                (until_idle, rests) = (true, true);
                continue;
            }
        };
        since = page.last_index;
        for event in &page.events {
            transcript.event(event)?;
            keyboard.note(event);
            match event.kind.as_str() {
                "error" if error.is_none() => error.clone_from(&event.text),
                "message" if event.role.as_deref() == Some("user") => error = None,
                _ => {}
            }
        }
        count(client, transcript, session, &page.events).await;
        // Not before: a later event of the page may have answered it.
        keyboard.ask()?;
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

/// Waits for events or input, and moves the clock meanwhile.
async fn woken(
    client: &Client,
    request: SessionEventsRequest,
    transcript: &Transcript,
    keyboard: &mut Keyboard,
) -> Result<Woken, Failure> {
    let page = client.call::<SessionEvents>(request);
    tokio::pin!(page);
    loop {
        tokio::select! {
            page = &mut page => return Ok(Woken::Page(page?)),
            line = keyboard.line() => return Ok(Woken::Line(line)),
            () = tokio::time::sleep(TICK) => transcript.tick(),
        }
    }
}

/// Updates the tokens and the cost in the status line after model requests.
async fn count(
    client: &Client,
    transcript: &Transcript,
    session_id: SessionId,
    events: &[SessionEventInfo],
) {
    if !transcript.is_live() || !events.iter().any(|event| event.kind == "model_request") {
        return;
    }
    match client.call::<SessionGet>(SessionGetRequest { session_id }).await {
        Ok(session) => transcript.used(&session),
        Err(error) => tracing::debug!(%error, "cannot read what a session has used"),
    }
}

/// Shows what the session has used of its model, if it has one.
pub(super) async fn show_totals(
    client: &Client,
    transcript: &Transcript,
    session_id: SessionId,
) -> Result<(), Failure> {
    let session = client.call::<SessionGet>(SessionGetRequest { session_id }).await?;
    if let Some(totals) = totals(&session) {
        transcript.remark(totals);
    }
    Ok(())
}

/// Whether more events may come.
const fn is_at_work(state: SessionState, until_idle: bool) -> bool {
    match state {
        SessionState::Ended | SessionState::Failed | SessionState::Interrupted => false,
        SessionState::Idle => !until_idle,
        SessionState::Starting | SessionState::Running => true,
    }
}
