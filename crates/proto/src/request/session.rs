//! Sessions of agents: `session_*`.

use super::{CallerTool, ModelUsage, SessionContext, SessionPause, SpendLimits, wire_struct};
use crate::data::Data;
use crate::ids::{ProjectId, SessionId, WorkspaceId};
use crate::network::NetworkPolicy;
use crate::record::SessionState;
use crate::secret::Secret;

wire_struct! {
    /// A session to start.
    SessionSpawnRequest {
        /// The project.
        project_id: ProjectId,
        /// The workspace its agent works in; the project's last used one if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<WorkspaceId>")]
        workspace_id: Option<WorkspaceId>,
        /// Whether to make a new workspace for it.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        create_workspace: bool,
        /// The agent; the project's if absent.
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
        /// What it may reach; what the project says if absent. Above that needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPolicy>,
        /// What it may spend before somebody is asked; what the project says where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<SpendLimits>,
    }

    /// A session.
    SessionResponse {
        /// Its id.
        session_id: SessionId,
        /// The first of its ancestors; itself if it has no parent.
        root_session_id: SessionId,
        /// The session whose agent started it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        parent_id: Option<SessionId>,
        /// Its project.
        project_id: ProjectId,
        /// The workspace its agent works in.
        workspace_id: WorkspaceId,
        /// The agent it runs.
        agent: String,
        /// Where it stands.
        status: SessionState,
        /// How many ancestors it has.
        depth: u32,
        /// When it was made.
        created_at: u64,
        /// When its state last changed.
        updated_at: u64,
        /// When it came to be without an agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ended_at: Option<u64>,
        /// The index of its last event; -1 if it has none.
        last_event_index: i64,
        /// Whether its agent is confined to its workspace.
        confined: bool,
        /// The directory its agent works in.
        workspace_path: String,
        /// What you should know of it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        notice: Option<String>,
        /// Where its tools are, as MCP, while it is live; `session_open` gives a token for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// What it may reach, if it is confined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPolicy>,
        /// What it has asked of its models, once it has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_usage: Option<ModelUsage>,
        /// What it may spend before somebody is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<SpendLimits>,
        /// How long its agent was at work, in milliseconds; of a session that has no parent, with those
        /// of the sessions that come from it.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<u64>")]
        working_ms: u64,
        /// The limit that it has reached, while somebody is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        paused: Option<SessionPause>,
    }

    /// A message to an agent: name a session, or a project to start one in.
    #[derive(Default)]
    SessionMessageRequest {
        /// The project, if the message is to start a session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<ProjectId>")]
        project_id: Option<ProjectId>,
        /// The session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<SessionId>")]
        session_id: Option<SessionId>,
        /// The workspace of a session that the message starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<WorkspaceId>")]
        workspace_id: Option<WorkspaceId>,
        /// Whether to make a new workspace for a session that the message starts.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        create_workspace: bool,
        /// What to say. Left out with `answer` or `abort`.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<String>")]
        message: String,
        /// Files that go with it.
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
        /// A token of your own that the agent of a session which the message starts or continues acts
        /// as: its key ends with the session, and the token stays with you.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        api_key: Option<Secret>,
        /// Whether to stay and be sent the session's events, on an edge that streams.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        follow: bool,
        /// The answer to a `permission_request` of the session's agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        answer: Option<Box<PermissionAnswer>>,
        /// Whether the agent is to stop what it does, and forget what it was told and has not begun.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        abort: bool,
        /// What a session that the message starts may reach; what the project says if absent. Above
        /// that needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<Box<NetworkPolicy>>,
        /// What a session that the message starts may spend before somebody is asked; what the project
        /// says where absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<SpendLimits>,
    }

    /// What an agent may do.
    PermissionAnswer {
        /// The `request_id` of the event that asks.
        request_id: String,
        /// The `id` of the option chosen; without one the question is taken back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
    }

    /// A file that goes with a message.
    Attachment {
        /// Its name, without directories.
        filename: String,
        /// Its type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its content.
        data: Data,
    }

    /// The agent has the message.
    SessionMessagedResponse {
        /// The session.
        session_id: SessionId,
        /// The first of its ancestors; itself if it has no parent.
        root_session_id: SessionId,
        /// The workspace its agent works in.
        workspace_id: WorkspaceId,
        /// Whether the message started the session.
        spawned: bool,
        /// Whether a workspace was made for it.
        workspace_created: bool,
        /// The index of the last event before the message: read the answer's events after it. -1 if
        /// there was none.
        last_event_index: i64,
        /// Whether its agent is confined to its workspace.
        confined: bool,
        /// Where the session's tools are, as MCP, for an agent that runs elsewhere.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        url: Option<String>,
        /// The bearer token of that URL, with the first message after the session was started. It is
        /// shown once; `session_open` gives another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        token: Option<Secret>,
    }

    /// Which events of a session.
    SessionEventsRequest {
        /// The session.
        session_id: SessionId,
        /// Only events after this index; all that are kept if absent or -1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since_index: Option<i64>,
        /// At most so many: 100 if absent, 1000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_events: Option<u32>,
        /// How long to wait for the first event: not at all if absent, 30 s at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
        /// Whether to add the events of sessions that its agent started.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        include_children: bool,
        /// Whether to stay and be sent further events, on an edge that streams.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<bool>")]
        follow: bool,
    }

    /// Events of a session, in their order.
    SessionEventsResponse {
        /// The session.
        session_id: SessionId,
        /// The events after the index given.
        events: Vec<SessionEventInfo>,
        /// Where to go on: the index of the session's last event here, or the one given. -1 at the
        /// very start.
        last_index: i64,
        /// Where the session stands.
        status: SessionState,
        /// How many events after the index given are gone.
        dropped_events: u64,
        /// The index of the oldest event that is kept.
        oldest_index: u64,
    }

    /// Something that happened in a session.
    SessionEventInfo {
        /// Its place among the events of its session, from 0.
        index: u64,
        /// Its session.
        session_id: SessionId,
        /// When.
        at_ms: u64,
        /// What kind of event it is.
        #[serde(rename = "type")]
        kind: String,
        /// What was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
        /// The tool it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool_name: Option<String>,
        /// Who said it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        role: Option<String>,
        /// The call it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        request_id: Option<String>,
        /// Where the session stands now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<SessionState>,
        /// The answers to a `permission_request`.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Vec<PermissionChoice>>")]
        options: Vec<PermissionChoice>,
        /// What a turn cost, at its `completion`, where the agent tells.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
    }

    /// An answer that an agent offers.
    PermissionChoice {
        /// What to answer with.
        id: String,
        /// What it says.
        name: String,
        /// `allow_once`, `allow_always`, `reject_once`, `reject_always` or `other`.
        kind: String,
    }

    /// Tokens, as an agent counts them.
    TokenUsage {
        /// Read by its model.
        input_tokens: u64,
        /// Written by its model.
        output_tokens: u64,
        /// All of them.
        total_tokens: u64,
    }

    /// Which sessions.
    #[derive(Default)]
    SessionListRequest {
        /// Only of this project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project_id: Option<ProjectId>,
        /// Only in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<SessionState>,
        /// At most so many: 50 if absent, 500 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// Where the page before this one ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A page of sessions, newest first.
    SessionListResponse {
        /// The sessions you may see.
        sessions: Vec<SessionResponse>,
        /// Where the next page starts; absent on the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    /// Which session.
    SessionGetRequest {
        /// Its id.
        session_id: SessionId,
    }

    /// Which session to end.
    SessionEndRequest {
        /// Its id.
        session_id: SessionId,
    }

    /// What a live session may reach from now on.
    SessionNetworkRequest {
        /// The session.
        session_id: SessionId,
        /// What it may reach. More than before needs admin.
        network: NetworkPolicy,
    }

    /// Which sessions to delete: those that are over.
    #[derive(Default)]
    SessionCleanupRequest {
        /// Only those that have been over for so many hours; all of them if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_age_hours: Option<u64>,
        /// Only of this project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project_id: Option<ProjectId>,
    }

    /// The sessions are gone.
    CleanedResponse {
        /// How many were deleted.
        deleted: u64,
    }
}
