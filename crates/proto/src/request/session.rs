//! Agent sessions: `session_*`.

use std::collections::BTreeMap;

use super::{
    CallerTool, ModelChoice, ModelUsage, SessionContext, SessionModel, SessionPause, SpendLimits,
    wire_struct,
};
use crate::data::Data;
use crate::ids::{ProjectId, SessionId, WorkspaceId};
use crate::network::NetworkPolicy;
use crate::permission::PermissionMode;
use crate::record::SessionState;
use crate::secret::Secret;

wire_struct! {
    /// A session to start.
    SessionSpawnRequest {
        /// The id of the project.
        project_id: ProjectId,
        /// The workspace of its agent; the project's most recently used one if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<WorkspaceId>")]
        workspace_id: Option<WorkspaceId>,
        /// Whether to create a new workspace for it.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        create_workspace: bool,
        /// The agent to run; the project's if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The tools you offer the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<SessionContext>,
        /// The same as `caller_id` in `context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_id: Option<String>,
        /// The same as `caller_tools` in `context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_tools: Option<Vec<CallerTool>>,
        /// Its network policy; the project's if absent. A wider policy needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPolicy>,
        /// What it may spend before it pauses for approval; the project's limits where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<SpendLimits>,
        /// The model of its agent; as configured where absent. Not for agents.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelChoice>,
        /// The answer to its agent's permission requests; as configured if absent. A looser one
        /// needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permissions: Option<PermissionMode>,
        /// Your toolchains, which its sandbox shows read-only; for the daemon's own user only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        toolchains: Option<SessionToolchains>,
    }

    /// Where the toolchains of a user are.
    #[derive(Default, Eq)]
    SessionToolchains {
        /// The user's `PATH`: directories that are known as toolchains are shown.
        path: String,
        /// Variables that name toolchains, such as `JAVA_HOME`; others are ignored.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<BTreeMap<String, String>>")]
        variables: BTreeMap<String, String>,
        /// The directory the user works on: the caches of its package managers outlive the session,
        /// and only sessions of the same project and directory have them. No caches if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        directory: Option<String>,
    }

    /// A session.
    SessionResponse {
        /// The id of the session.
        session_id: SessionId,
        /// Its first ancestor; itself if it has no parent.
        root_session_id: SessionId,
        /// The session whose agent started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<SessionId>,
        /// The id of its project.
        project_id: ProjectId,
        /// The workspace of its agent.
        workspace_id: WorkspaceId,
        /// Its agent.
        agent: String,
        /// Its state.
        status: SessionState,
        /// The number of its ancestors.
        depth: u32,
        /// When it was created.
        created_at: u64,
        /// When its state last changed.
        updated_at: u64,
        /// When it ended, failed or was interrupted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_at: Option<u64>,
        /// The index of its last event; -1 if it has no events.
        last_event_index: i64,
        /// Whether its agent is confined to its workspace.
        confined: bool,
        /// The working directory of its agent.
        workspace_path: String,
        /// A notice about the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
        /// The MCP endpoint of its tools while it is live; `session_open` returns a token for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// Its network policy, if it is confined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPolicy>,
        /// Its model usage, once it has used a model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_usage: Option<ModelUsage>,
        /// What it may spend before it pauses for approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<SpendLimits>,
        /// How long its agent has worked, in milliseconds. A session without a parent includes the
        /// time of its descendants.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<u64>")]
        working_ms: u64,
        /// The limit that it has reached, while it is paused for approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paused: Option<SessionPause>,
        /// The model of its agent, while it is live and has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<SessionModel>,
    }

    /// A message to an agent. Give a session, or a project to start a session in.
    #[derive(Default)]
    SessionMessageRequest {
        /// The id of the project, if the message starts a session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<ProjectId>")]
        project_id: Option<ProjectId>,
        /// The id of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<SessionId>")]
        session_id: Option<SessionId>,
        /// The id of the workspace for a session that the message starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<WorkspaceId>")]
        workspace_id: Option<WorkspaceId>,
        /// Whether to create a new workspace for a session that the message starts.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        create_workspace: bool,
        /// The text of the message. Leave it out with `answer` or `abort`, or to only offer tools to
        /// a live session.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<String>")]
        message: String,
        /// Files to send with the message.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<Attachment>>")]
        attachments: Vec<Attachment>,
        /// The agent of a session that the message starts; the project's if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The tools you offer the agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context: Option<SessionContext>,
        /// The same as `caller_id` in `context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_id: Option<String>,
        /// The same as `caller_tools` in `context`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        caller_tools: Option<Vec<CallerTool>>,
        /// A token of yours that the agent acts as, if the message starts or continues a session.
        /// The agent's key ends with the session; the token remains yours.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        api_key: Option<Secret>,
        /// Whether to keep streaming the session's events, on an edge that streams.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        follow: bool,
        /// The answer to a `permission_request` of the session's agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Box<PermissionAnswer>>,
        /// Whether the agent is to stop its current work and discard messages that it has not
        /// started on.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        abort: bool,
        /// The network policy of a session that the message starts; the project's if absent. A
        /// wider policy needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<Box<NetworkPolicy>>,
        /// What a session that the message starts may spend before it pauses for approval; the
        /// project's limits where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<SpendLimits>,
        /// The model of a session that the message starts; as configured where absent. Not for
        /// agents. For a session that exists, only its own `provider`, with `model_key`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<Box<ModelChoice>>,
        /// A key of `model.provider` for this session, used if the daemon has no secret for it. The
        /// daemon keeps it in memory until the session ends. Only for the daemon's own user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_key: Option<Secret>,
        /// The answer to permission requests of the agent of a session that the message starts; as
        /// configured if absent. A looser one needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permissions: Option<PermissionMode>,
    }

    /// The answer to a permission request.
    PermissionAnswer {
        /// The `request_id` of the `permission_request` event.
        request_id: String,
        /// The `id` of the chosen option; if absent, the request is withdrawn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
    }

    /// A file sent with a message.
    Attachment {
        /// Its name, without directories.
        filename: String,
        /// Its MIME type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its content.
        data: Data,
    }

    /// The accepted message.
    SessionMessagedResponse {
        /// The id of the session.
        session_id: SessionId,
        /// The first ancestor of the session; itself if it has no parent.
        root_session_id: SessionId,
        /// The workspace of its agent.
        workspace_id: WorkspaceId,
        /// Whether the message started the session.
        spawned: bool,
        /// Whether a workspace was created for it.
        workspace_created: bool,
        /// The index of the last event before the message; the answer's events come after it. -1 if
        /// there were no events.
        last_event_index: i64,
        /// Whether its agent is confined to its workspace.
        confined: bool,
        /// The MCP endpoint of the session's tools, for an agent that runs elsewhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// The bearer token for that URL, with the first message after the session started. It is
        /// shown only once; `session_open` returns a new one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<Secret>,
    }

    /// The filter for events of a session.
    SessionEventsRequest {
        /// The id of the session.
        session_id: SessionId,
        /// Only events after this index; all kept events if absent or -1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_index: Option<i64>,
        /// The maximum number of events to return: default 100, at most 1000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_events: Option<u32>,
        /// How long to wait for the first event, in milliseconds: default 0, at most 30 s.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
        /// Whether to include the events of sessions that its agent started.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        include_children: bool,
        /// Whether to keep streaming further events, on an edge that streams.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        follow: bool,
    }

    /// Events of a session, in order.
    SessionEventsResponse {
        /// The id of the session.
        session_id: SessionId,
        /// The events after the given index.
        events: Vec<SessionEventInfo>,
        /// The index to continue from: that of the session's last event in this answer, or else the
        /// given index. -1 at the very start.
        last_index: i64,
        /// The state of the session.
        status: SessionState,
        /// The number of events after the given index that are no longer kept.
        dropped_events: u64,
        /// The index of the oldest kept event.
        oldest_index: u64,
    }

    /// An event of a session.
    SessionEventInfo {
        /// Its index among the events of its session, from 0.
        index: u64,
        /// The id of its session.
        session_id: SessionId,
        /// When it happened.
        at_ms: u64,
        /// The kind of event.
        #[serde(rename = "type")]
        kind: String,
        /// The text of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The tool it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_name: Option<String>,
        /// The author of the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// The call it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
        /// The arguments of a `tool_call`, or of the call that a `permission_request` is about: JSON
        /// on one line, without secrets. At most 4 KiB, or 64 KiB of a question; the rest is cut and
        /// replaced by ` [cut]`. Only while the session's events are in memory.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        arguments: Option<String>,
        /// The result of a `tool_result`, like `arguments`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<String>,
        /// The new state of the session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<SessionState>,
        /// The possible answers to a `permission_request`.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<PermissionChoice>>")]
        options: Vec<PermissionChoice>,
        /// The tokens used by a turn, with its `completion`, if the agent reports them.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
    }

    /// A possible answer that an agent offers.
    PermissionChoice {
        /// The id to answer with.
        id: String,
        /// Its label.
        name: String,
        /// `allow_once`, `allow_always`, `reject_once`, `reject_always` or `other`.
        kind: String,
    }

    /// Token counts, as reported by an agent.
    TokenUsage {
        /// Tokens read by its model.
        input_tokens: u64,
        /// Tokens written by its model.
        output_tokens: u64,
        /// All tokens.
        total_tokens: u64,
    }

    /// The filter for sessions.
    #[derive(Default)]
    SessionListRequest {
        /// Only sessions of this project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project_id: Option<ProjectId>,
        /// Only sessions in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<SessionState>,
        /// The maximum number of sessions to return: default 50, at most 500.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// The `next_cursor` of the previous page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A page of sessions, newest first.
    SessionListResponse {
        /// The sessions you may see.
        sessions: Vec<SessionResponse>,
        /// The cursor of the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    /// The session to look up.
    SessionGetRequest {
        /// The id of the session.
        session_id: SessionId,
    }

    /// The session to end.
    SessionEndRequest {
        /// The id of the session.
        session_id: SessionId,
    }

    /// A new network policy for a live session.
    SessionNetworkRequest {
        /// The id of the session.
        session_id: SessionId,
        /// The new network policy. A wider policy needs admin.
        network: NetworkPolicy,
    }

    /// The filter for sessions to delete. Live sessions are never deleted.
    #[derive(Default)]
    SessionCleanupRequest {
        /// Only sessions that have not been live for this many hours; all of them if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_age_hours: Option<u64>,
        /// Only sessions of this project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project_id: Option<ProjectId>,
    }

    /// The result of a cleanup.
    CleanedResponse {
        /// The number of deleted sessions.
        deleted: u64,
    }
}
