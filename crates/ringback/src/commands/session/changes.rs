//! The changes an agent made.

use ringback_client::Client;
use ringback_proto::ids::SessionId;
use ringback_proto::request::{SessionGetRequest, WorkspaceDiffRequest, WorkspaceDiffResponse};
use ringback_proto::tool::tools::{SessionGet, WorkspaceDiff};

use crate::failure::Failure;
use crate::screen::Screen;

/// Returns the changes in a session's workspace, at or below a path.
pub(in crate::commands) async fn of(
    client: &Client,
    session_id: SessionId,
    path: Option<String>,
) -> Result<WorkspaceDiffResponse, Failure> {
    let session = client.call::<SessionGet>(SessionGetRequest { session_id }).await?;
    let (project_id, workspace_id) = (session.project_id, session.workspace_id);
    let request = WorkspaceDiffRequest { project_id, workspace_id, path };
    Ok(client.call::<WorkspaceDiff>(request).await?)
}

/// Shows the changes. "Nothing changed" goes to standard error, so that standard output stays a
/// valid (empty) diff.
pub(super) async fn show(
    client: &Client,
    screen: Screen,
    session: SessionId,
    path: Option<String>,
) -> Result<(), Failure> {
    let changed = of(client, session, path).await?;
    remark_skipped(screen, &changed);
    if changed.changes.is_empty() && !screen.is_json() {
        screen.remark("nothing changed");
        return Ok(());
    }
    screen.answer(&changed, |changed| shown(screen, changed))
}

/// Lists the files that could not be compared.
pub(in crate::commands) fn remark_skipped(screen: Screen, changed: &WorkspaceDiffResponse) {
    for skipped in &changed.skipped {
        let path = screen.printable(&skipped.path);
        screen.remark(format_args!("`{path}` was not compared: {}", skipped.reason));
    }
}

/// Formats a diff for people, with a remark if it is incomplete.
pub(in crate::commands) fn shown(screen: Screen, changed: &WorkspaceDiffResponse) -> String {
    if changed.changes.is_empty() {
        return "nothing changed".to_owned();
    }
    if changed.truncated {
        screen.remark("the diff is cut; `--json` lists every changed file");
    }
    screen.diff(&changed.diff)
}
