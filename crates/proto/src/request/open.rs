//! A session for an agent that runs elsewhere: `session_open`.

use super::{CallerTool, SessionContext, wire_struct};
use crate::ids::{ProjectId, SessionId};
use crate::secret::Secret;

wire_struct! {
    /// A session for an agent that runs elsewhere, or another token for one that is there.
    #[derive(Default)]
    SessionOpenRequest {
        /// The project; one of your own called `elsewhere` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<ProjectId>")]
        project_id: Option<ProjectId>,
        /// A session of yours that is there: it gets another token, and the one before is void.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<SessionId>")]
        session_id: Option<SessionId>,
        /// The tools you offer the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<SessionContext>,
        /// The same as `caller_id` in `context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_id: Option<String>,
        /// The same as `caller_tools` in `context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_tools: Option<Vec<CallerTool>>,
        /// How long it may go unused before it ends; as long as the project says if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<u64>,
    }

    /// A session at a URL.
    SessionOpenedResponse {
        /// The session.
        session_id: SessionId,
        /// Where its tools are, as MCP.
        url: String,
        /// The bearer token of that URL. It is shown once.
        token: Secret,
    }
}
