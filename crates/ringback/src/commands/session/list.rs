//! `ringback session list`: which session is which, by its message and its directory.

use std::path::{Path, PathBuf};

use futures_util::{StreamExt as _, stream};
use ringback_client::Client;
use ringback_proto::ids::SessionId;
use ringback_proto::request::{SessionEventsRequest, SessionListRequest};
use ringback_proto::tool::tools::{SessionEvents, SessionList};

use super::origin::Origins;
use super::standing;
use crate::failure::Failure;
use crate::pick::shortened;
use crate::screen::{Screen, ago, cut, one_line};

/// Sessions whose messages are read at the same time.
const AT_ONCE: usize = 16;
/// The first message is among the first events of a session.
const EVENTS_MAX: u32 = 8;
/// The longest message in a row.
const MESSAGE_COLUMNS_MAX: usize = 72;

/// Lists sessions: for people with short ids, on a terminal, and with what they are about.
pub(super) async fn show(
    client: &Client,
    screen: Screen,
    origins: &Origins,
    request: SessionListRequest,
) -> Result<(), Failure> {
    let listed = client.call::<SessionList>(request).await?;
    if screen.is_json() {
        return screen.json_document(&listed);
    }
    let ids: Vec<_> = listed.sessions.iter().map(|session| session.session_id).collect();
    let messages: Vec<_> =
        stream::iter(&ids).map(|id| message(client, *id)).buffered(AT_ONCE).collect().await;
    let ids_shown = if screen.is_terminal() {
        shortened(&ids)
    } else {
        ids.iter().map(ToString::to_string).collect()
    };
    let rows = listed.sessions.iter().zip(ids_shown).zip(messages);
    let rows = rows.map(|((session, id), message)| {
        let dir = origins.find(session.session_id).map(|origin| short_dir(&origin.dir));
        let dir = dir.unwrap_or_else(|| "-".to_owned());
        let age = ago(session.created_at);
        [id, session.agent.clone(), standing(session), age, dir, message]
    });
    let none = "no sessions; start one with `ringback run` or `ringback session start`";
    let head = ["SESSION", "AGENT", "STATUS", "CREATED", "DIRECTORY", "MESSAGE"];
    screen.text(screen.table(head, rows, none))
}

/// Returns the first line of the first message to a session, if it can still be read.
async fn message(client: &Client, session_id: SessionId) -> String {
    let request = SessionEventsRequest {
        session_id,
        since_index: None,
        max_events: Some(EVENTS_MAX),
        wait_ms: None,
        include_children: false,
        follow: false,
    };
    let events = client.call::<SessionEvents>(request).await.map(|page| page.events);
    let events = events.unwrap_or_default();
    let by_user = events
        .iter()
        .find(|event| event.kind == "message" && event.role.as_deref() == Some("user"));
    let text = by_user.and_then(|event| event.text.as_deref()?.trim().lines().next());
    text.map_or_else(|| "-".to_owned(), |line| cut(&one_line(line), MESSAGE_COLUMNS_MAX))
}

/// Returns a directory as the user would write it.
fn short_dir(dir: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match home.as_deref().and_then(|home| dir.strip_prefix(home).ok()) {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => dir.display().to_string(),
    }
}
