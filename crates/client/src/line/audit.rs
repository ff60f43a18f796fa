//! The audit log over HTTP, newest first.

use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use super::LineCaller;
use super::error::LineError;
use super::http::HttpRequest;
use super::read_json;

/// A page of the audit log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AuditPage {
    /// Calls, and gaps between them.
    pub entries: Vec<AuditEntry>,
    /// The cursor of the next page; absent on the last page.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A call that has ended, or a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AuditEntry {
    /// A call.
    Call(AuditCall),
    /// Calls that are missing here.
    Dropped {
        /// The approximate time.
        at_ms: u64,
        /// The number of missing calls.
        dropped: u64,
    },
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditCall {
    /// When it ended.
    pub at_ms: u64,
    /// The id of the call.
    pub call_id: String,
    /// The principal that called: a token's id, or `local`.
    pub principal: String,
    /// The session it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The tool.
    pub tool: String,
    /// The edge it came in on.
    pub edge: String,
    /// `success`, `job_started`, `ack`, or the error code.
    pub outcome: String,
    /// Whether the tool ran, for an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<String>,
    /// How long it took.
    pub duration_us: u64,
    /// Bytes that left the sandbox through a proxy of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_up: Option<u64>,
    /// Bytes that came into the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_down: Option<u64>,
}

impl AuditEntry {
    /// Returns the approximate time at which it ended.
    #[must_use]
    pub const fn at_ms(&self) -> u64 {
        match self {
            Self::Call(call) => call.at_ms,
            Self::Dropped { at_ms, .. } => *at_ms,
        }
    }
}

impl LineCaller {
    /// Reads the page of the audit log at a cursor.
    ///
    /// # Errors
    /// If the daemon cannot be reached, or this token may not read the log.
    pub async fn audit(&self, cursor: Option<&str>, limit: u32) -> Result<AuditPage, LineError> {
        let action = "read the audit log";
        let mut path = format!("/v1/audit?limit={limit}");
        if let Some(cursor) = cursor {
            path.push_str(&format!("&cursor={}", utf8_percent_encode(cursor, NON_ALPHANUMERIC)));
        }
        let answer =
            self.http.ask(HttpRequest { action, method: Method::GET, path, body: None }).await?;
        read_json(action, &answer)
    }
}
