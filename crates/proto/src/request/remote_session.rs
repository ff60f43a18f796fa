//! A session for an agent that runs elsewhere: `session_open`.

use super::{CallerTool, SessionContext, wire_struct};
use crate::ids::{ProjectId, SessionId};
use crate::secret::Secret;

wire_struct! {
    /// A session for an agent that runs elsewhere, or a new token for an existing one.
    #[derive(Default)]
    SessionOpenRequest {
        /// The id of the project; your own project `elsewhere` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<ProjectId>")]
        project_id: Option<ProjectId>,
        /// The id of an existing session of yours: it gets a new token, and the previous one
        /// becomes invalid.
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
        /// How long the session may go unused before it ends, in milliseconds; as set by the
        /// project if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttl_ms: Option<u64>,
    }

    /// A session that is reachable at a URL.
    SessionOpenedResponse {
        /// The id of the session.
        session_id: SessionId,
        /// The MCP endpoint of its tools.
        url: String,
        /// The bearer token for that URL. It is shown only once.
        token: Secret,
    }
}
