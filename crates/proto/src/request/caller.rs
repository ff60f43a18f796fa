//! Tools that callers offer the agents of their sessions, and calls to them: `caller_tool_*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire_struct;
use crate::ids::SessionId;
use crate::network::NetworkPolicy;
use crate::raw::Raw;

/// The type of a [`CallerToolRequestInfo`], which distinguishes it from other messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallerMessageType {
    /// A call that waits for its caller's answer.
    #[default]
    CallerToolRequest,
}

/// The access of a tool server to the workspace of its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerWorkspace {
    /// No access.
    #[default]
    None,
    /// Read access to all of it.
    Read,
    /// Read and write access to all of it.
    Write,
}

wire_struct! {
    /// The tools you offer the agent of a session.
    #[derive(Default)]
    SessionContext {
        /// Your name as a caller. It keeps your tools apart from those of other callers in the same
        /// session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_id: Option<String>,
        /// Your tools. They replace the tools that you offered before; an empty list withdraws
        /// them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_tools: Option<Vec<CallerTool>>,
        /// An MCP server on the daemon's machine that offers your tools, instead of `caller_tools`.
        /// Needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_server: Option<Box<CallerServer>>,
    }

    /// An MCP server that the daemon starts for a session in its own sandbox, talks to over stdin
    /// and stdout, and stops with the session.
    CallerServer {
        /// The program to run.
        command: String,
        /// Its arguments. Every user of the machine can see them.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<String>>")]
        args: Vec<String>,
        /// The names of variables to pass on from the daemon's environment, besides `PATH` and
        /// `HOME`.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<String>>")]
        env: Vec<String>,
        /// Its access to the session's workspace at `/workspace`: `none`, `read` or `write`. In
        /// `args`, `{workspace}` is replaced by that path.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<ServerWorkspace>")]
        workspace: ServerWorkspace,
        /// Its network policy; no network if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPolicy>,
    }

    /// A tool that you run yourself.
    CallerTool {
        /// Its name.
        name: String,
        /// What it does, for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The JSON Schema of its input; any object if absent.
        #[serde(default, rename = "inputSchema", skip_serializing_if = "Option::is_none")]
        input_schema: Option<Raw>,
        /// How long a call may take, in milliseconds.
        #[serde(default, rename = "timeoutMs", skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// Whether the agent may call it without a permission request, unless a rule of the
        /// project decides about it.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        #[schemars(with = "Option<bool>")]
        allowed: bool,
    }

    /// The answer to a call to your tool.
    CallerToolResponseRequest {
        /// The id of the session.
        session_id: SessionId,
        /// The id of the call.
        request_id: String,
        /// The result of the call; null if this and `error` are absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Raw>,
        /// The error, if the call failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    }

    /// The progress of a call to your tool.
    CallerToolProgressRequest {
        /// The id of the session.
        session_id: SessionId,
        /// The id of the call.
        request_id: String,
        /// The progress in percent, from 0 to 100.
        percent: f32,
        /// The current step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }

    /// The filter for pending calls to your tools.
    CallerToolRequestsRequest {
        /// The id of the session.
        session_id: SessionId,
        /// Only calls to tools offered under this caller id.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_id: Option<String>,
        /// How long to wait for the first call, in milliseconds: default 0, at most 30 s.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
    }

    /// The calls that wait for an answer.
    CallerToolRequestsResponse {
        /// The calls, oldest first.
        requests: Vec<CallerToolRequestInfo>,
    }

    /// A call to your tool.
    CallerToolRequestInfo {
        /// Always `caller_tool_request`.
        #[serde(rename = "type")]
        kind: CallerMessageType,
        /// The session whose agent makes the call.
        session_id: SessionId,
        /// The session in which you offered the tool.
        root_session_id: SessionId,
        /// The id to use in the answer.
        request_id: String,
        /// The caller id under which you offered the tool.
        caller_id: String,
        /// The tool.
        tool: String,
        /// Its input, as the agent wrote it.
        arguments: Raw,
        /// How long the answer may take, in milliseconds.
        deadline_ms: u64,
    }
}
