//! The audit, over HTTP: which calls there were, newest first.

use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use super::LineCaller;
use super::error::LineError;
use super::http::Ask;
use super::read_json;

/// A part of the audit, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct AuditPage {
    /// Calls, and where some are missing.
    pub entries: Vec<AuditEntry>,
    /// Where the next page starts; absent on the last.
    #[serde(default)]
    pub next_cursor: Option<String>,
}

/// A call that has ended, or calls that are missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AuditEntry {
    /// A call.
    Call(AuditCall),
    /// Calls that are missing here.
    Dropped {
        /// When, about.
        at_ms: u64,
        /// How many.
        dropped: u64,
    },
}

/// A call that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditCall {
    /// When it ended.
    pub at_ms: u64,
    /// Which call.
    pub call_id: String,
    /// Who called: a token's id, or `local`.
    pub principal: String,
    /// For which session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Which tool.
    pub tool: String,
    /// Through which edge.
    pub edge: String,
    /// `success`, `job_started`, `ack`, or the code of the error.
    pub outcome: String,
    /// Whether it ran, for an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certainty: Option<String>,
    /// How long it took.
    pub duration_us: u64,
    /// Bytes that left the sandbox, through a door of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_up: Option<u64>,
    /// Bytes that came back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_down: Option<u64>,
}

impl AuditEntry {
    /// When it ended, about.
    #[must_use]
    pub const fn at_ms(&self) -> u64 {
        match self {
            Self::Call(call) => call.at_ms,
            Self::Dropped { at_ms, .. } => *at_ms,
        }
    }
}

impl LineCaller {
    /// A page of the audit, after the one that gave the cursor.
    ///
    /// # Errors
    /// If the daemon cannot be asked, or this token may not see it.
    pub async fn audit(&self, cursor: Option<&str>, limit: u32) -> Result<AuditPage, LineError> {
        let action = "read the audit";
        let mut path = format!("/v1/audit?limit={limit}");
        if let Some(cursor) = cursor {
            path.push_str(&format!("&cursor={}", utf8_percent_encode(cursor, NON_ALPHANUMERIC)));
        }
        let answer = self.http.ask(Ask { action, method: Method::GET, path, body: None }).await?;
        read_json(action, &answer)
    }
}
