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
use crate::extractors::QueryValue;

/// A part of the audit log.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Query {
    /// Where to continue: the `next_cursor` of the previous page.
    cursor: Option<String>,
    /// The number of entries; 100 if absent, 1000 at most.
    limit: Option<u32>,
}

/// A part of the audit log, newest first.
#[derive(Debug, Serialize, JsonSchema)]
struct Page {
    /// Calls, and gaps where calls are missing.
    entries: Vec<Entry>,
    /// Where the next page starts; absent on the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// An ended call, or a gap.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum Entry {
    /// A call.
    Call(CallEntry),
    /// Calls that are missing here because the disk was too slow or failed.
    Dropped {
        /// The approximate time.
        at_ms: u64,
        /// The number of missing calls.
        dropped: u64,
    },
}

/// An ended call.
#[derive(Debug, Serialize, JsonSchema)]
struct CallEntry {
    /// When it ended.
    at_ms: u64,
    /// The id of the call; `call_why` explains it.
    call_id: CallId,
    /// The caller: a token's id, or `local`.
    principal: String,
    /// The session it was made for.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    /// The tool.
    tool: String,
    /// The edge it came through.
    edge: Cow<'static, str>,
    /// `success`, `job_started`, `ack`, or the code of the error.
    outcome: Cow<'static, str>,
    /// Whether the tool ran, for an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    certainty: Option<Certainty>,
    /// The duration.
    duration_us: u64,
    /// Bytes sent out of the sandbox, through a proxy of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_up: Option<u64>,
    /// Bytes received.
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
                tool: entry.tool.to_string(),
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
        Operation::new("audit", "list_audit", about).query::<Query>().answers(
            200,
            "A page of the audit log.",
            Content::json::<Page>(),
        ),
    )]
}

async fn list(
    With(state): With<State>,
    Caller(credential): Caller,
    asked: Result<QueryValue<Query>, HttpError>,
) -> Result<Json<Page>, HttpError> {
    // Scope before arguments, as everywhere.
    let audit = state.broker().audit(&credential)?;
    let QueryValue(asked) = asked?;
    let page = audit.page(asked.cursor.as_deref(), asked.limit).await?;
    let entries = page.lines.into_iter().map(Entry::from).collect();
    Ok(Json(Page { entries, next_cursor: page.next_cursor }))
}
