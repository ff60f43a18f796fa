//! `/v1/audit`, for admins.

use std::borrow::Cow;

use axum::Json;
use axum::extract::State as With;
use ringback_broker::AuditLine;
use ringback_proto::Certainty;
use ringback_proto::ids::{CallId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::api::{Content, Operation, Route};
use crate::caller::Caller;
use crate::edge::State;
use crate::error::HttpError;
use crate::extract::InQuery;

/// Which part of the audit.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Asked {
    /// Where to go on: the `next_cursor` of the page before.
    cursor: Option<String>,
    /// How many; 100 if absent, 1000 at most.
    limit: Option<u32>,
}

/// A part of the audit, newest first.
#[derive(Debug, Serialize, JsonSchema)]
struct Page {
    /// Calls, and where some are missing.
    entries: Vec<Entry>,
    /// Where the next page starts; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A call that has ended, or calls that are missing.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Entry {
    /// A call.
    Call(CallEntry),
    /// Calls that are missing here, because the disk was too slow or failed.
    Dropped {
        /// When, about.
        at_ms: u64,
        /// How many.
        dropped: u64,
    },
}

/// A call that has ended.
#[derive(Debug, Serialize, JsonSchema)]
struct CallEntry {
    /// When it ended.
    at_ms: u64,
    /// Which call; `call_why` explains it.
    call_id: CallId,
    /// Who called: a token's id, or `local`.
    principal: String,
    /// For which session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    /// Which tool.
    tool: String,
    /// Through which edge.
    edge: Cow<'static, str>,
    /// `success`, `job_started`, `ack`, or the code of the error.
    outcome: Cow<'static, str>,
    /// Whether it ran, for an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    certainty: Option<Certainty>,
    /// How long it took.
    duration_us: u64,
    /// Bytes that left the sandbox, through a door of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_up: Option<u64>,
    /// Bytes that came back.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_down: Option<u64>,
}

impl From<AuditLine> for Entry {
    fn from(line: AuditLine) -> Self {
        match line {
            AuditLine::Call(entry) => Self::Call(CallEntry {
                at_ms: entry.at_ms,
                call_id: entry.call,
                principal: entry.principal.to_string(),
                session_id: entry.session,
                tool: entry.tool,
                edge: entry.edge,
                outcome: entry.outcome,
                certainty: entry.certainty,
                duration_us: entry.duration_us,
                bytes_up: entry.bytes.map(|bytes| bytes.up),
                bytes_down: entry.bytes.map(|bytes| bytes.down),
            }),
            AuditLine::Dropped { at_ms, count } => Self::Dropped { at_ms, dropped: count },
        }
    }
}

pub(super) fn routes() -> Vec<Route> {
    let about = "Lists calls with their callers and outcomes, newest first.";
    vec![Route::get(
        "/v1/audit",
        list,
        Operation::new("audit", "list_audit", about).query::<Asked>().answers(
            200,
            "A page of the audit log.",
            Content::json::<Page>(),
        ),
    )]
}

async fn list(
    With(state): With<State>,
    Caller(credential): Caller,
    InQuery(asked): InQuery<Asked>,
) -> Result<Json<Page>, HttpError> {
    let page = state.broker().audit(&credential, asked.cursor.as_deref(), asked.limit).await?;
    let entries = page.lines.into_iter().map(Entry::from).collect();
    Ok(Json(Page { entries, next_cursor: page.next_cursor }))
}
