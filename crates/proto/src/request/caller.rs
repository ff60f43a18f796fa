//! Tools that callers offer the agents of their sessions, and calls of them: `caller_tool_*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire_struct;
use crate::ids::SessionId;
use crate::network::NetworkPolicy;
use crate::raw::Raw;

/// What a [`CallerToolRequestInfo`] is, for callers that find it among other messages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallerMessageType {
    /// A call that waits for its caller.
    #[default]
    CallerToolRequest,
}

/// What a server of tools sees of the workspace of its session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerWorkspace {
    /// Nothing.
    #[default]
    None,
    /// All of it, to read.
    Read,
    /// All of it, to read and write.
    Write,
}

wire_struct! {
    /// The tools you offer the agent of a session.
    #[derive(Default)]
    SessionContext {
        /// What you call yourself: your tools are apart from those of others in the same session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_id: Option<String>,
        /// Your tools, in place of those you offered before; an empty list takes them back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_tools: Option<Vec<CallerTool>>,
        /// In place of `caller_tools`: an MCP server on the daemon's machine whose tools are yours. Only
        /// for administrators.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_server: Option<Box<CallerServer>>,
    }

    /// An MCP server that is started for a session in a sandbox of its own, spoken to over its pipes, and
    /// ended with it.
    CallerServer {
        /// The program.
        command: String,
        /// Its arguments. They are for everybody on the machine to see.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<String>>")]
        args: Vec<String>,
        /// Names of the daemon's environment that it gets, besides `PATH` and `HOME`.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<String>>")]
        env: Vec<String>,
        /// What it sees of the session's workspace, at `/workspace`: `none`, `read` or `write`. In `args`,
        /// `{workspace}` stands for where it is.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<ServerWorkspace>")]
        workspace: ServerWorkspace,
        /// What it may reach; nothing if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPolicy>,
    }

    /// A tool you carry out yourself.
    CallerTool {
        /// Its name.
        name: String,
        /// What it does, for the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The JSON Schema of its input; any object if absent.
        #[serde(default, rename = "inputSchema", skip_serializing_if = "Option::is_none")]
        input_schema: Option<Raw>,
        /// How long a call may take.
        #[serde(default, rename = "timeoutMs", skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
    }

    /// The answer to a call of your tool.
    CallerToolResponseRequest {
        /// The session.
        session_id: SessionId,
        /// Which call.
        request_id: String,
        /// Its result; null if absent and there is no error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Raw>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    }

    /// How far a call of your tool is.
    CallerToolProgressRequest {
        /// The session.
        session_id: SessionId,
        /// Which call.
        request_id: String,
        /// 0 to 100.
        percent: f32,
        /// What is being done.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    }

    /// Which calls of your tools.
    CallerToolRequestsRequest {
        /// The session.
        session_id: SessionId,
        /// Only of the tools offered under this name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_id: Option<String>,
        /// How long to wait for the first call: not at all if absent, 30 s at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
    }

    /// Calls that wait for their answer.
    CallerToolRequestsResponse {
        /// The calls, oldest first.
        requests: Vec<CallerToolRequestInfo>,
    }

    /// A call of your tool.
    CallerToolRequestInfo {
        /// Always `caller_tool_request`.
        #[serde(rename = "type")]
        kind: CallerMessageType,
        /// The session whose agent calls.
        session_id: SessionId,
        /// The session you offered the tool in.
        root_session_id: SessionId,
        /// The id to answer with.
        request_id: String,
        /// The name you offered the tool under.
        caller_id: String,
        /// The tool.
        tool: String,
        /// Its input, as the agent wrote it.
        arguments: Raw,
        /// How long the answer may take.
        deadline_ms: u64,
    }
}
