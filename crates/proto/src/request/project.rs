//! Projects and workspaces: `project_*`, `workspace_*`, `config_limits`.

use super::{ContainerInfo, wire_struct};
use crate::ids::{ProjectId, SessionId, WorkspaceId};
use crate::money::MicroUsd;
use crate::network::NetworkPolicy;
use crate::permission::PermissionPolicy;
use crate::principal::KeyLevel;

wire_struct! {
    /// A project to create.
    ProjectCreateRequest {
        /// Its name.
        name: String,
        /// Its purpose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The limits of its sessions. Limits above the daemon's own need admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<ProjectLimits>,
        /// The agent of its sessions, unless a session sets another; the daemon's default if
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The scope of the key that each of its sessions gets, never above your own; `none` if
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_level: Option<KeyLevel>,
        /// The network policy of its sessions, unless a session sets another; only the agent's
        /// model if absent. A wider policy needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPolicy>,
        /// The image of its sessions and its container: a name from the configuration
        /// (`sandbox.images`) or, with admin, any image that the engine has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// The answers to the permission requests of its agents; the settings of the agent or the
        /// daemon if absent. A more permissive policy needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permissions: Option<PermissionPolicy>,
    }

    /// The changes to a project. Absent fields stay unchanged.
    ProjectUpdateRequest {
        /// The id of the project.
        project_id: ProjectId,
        /// The answers to the permission requests of its agents, from the next request on; an empty
        /// policy means the agent's settings. A more permissive policy needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permissions: Option<PermissionPolicy>,
    }

    /// The limits of a project's sessions; the daemon's own limit for each that is absent.
    #[derive(Default, Copy, Eq)]
    ProjectLimits {
        /// The maximum depth of sessions that agents start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_depth: Option<u32>,
        /// The maximum number of sessions that one session and its descendants may start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_agents: Option<u32>,
        /// The maximum number of sessions that may be live at the same time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_sessions: Option<u32>,
        /// How long a session may go without a message before it is ended, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle_ms: Option<u64>,
        /// The number of tokens a session may spend before it pauses for approval.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u64>,
        /// How long the agents of a session may work before it pauses for approval, in
        /// milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_time_ms: Option<u64>,
        /// The cost a session may incur before it pauses for approval, in millionths of a US
        /// dollar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_micro_usd: Option<MicroUsd>,
    }

    /// A project.
    ProjectResponse {
        /// The id of the project.
        project_id: ProjectId,
        /// Its name.
        name: String,
        /// Its purpose.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// The limits of its sessions, where set.
        limits: ProjectLimits,
        /// The agent of its sessions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The scope of the key that each of its sessions gets; absent if they get none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_level: Option<KeyLevel>,
        /// When it was created.
        created_at: u64,
        /// The network policy of its sessions, if set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPolicy>,
        /// The image of its sessions and its container, if set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// The state of its container, if it has had one since the daemon started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        container: Option<ContainerInfo>,
        /// The answers to the permission requests of its agents, if set.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permissions: Option<PermissionPolicy>,
    }

    /// The filter for projects.
    #[derive(Default)]
    ProjectListRequest {
        /// Only projects whose name contains this text, ignoring case.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name_contains: Option<String>,
        /// The maximum number of projects to return: default 50, at most 500.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// The `next_cursor` of the previous page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A page of projects, newest first.
    ProjectListResponse {
        /// The projects you may see.
        projects: Vec<ProjectResponse>,
        /// The cursor of the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    /// The project to look up.
    ProjectGetRequest {
        /// The id of the project.
        project_id: ProjectId,
    }

    /// The project to delete.
    ProjectDeleteRequest {
        /// The id of the project.
        project_id: ProjectId,
    }

    /// The project whose workspaces to list.
    WorkspaceListRequest {
        /// The id of the project.
        project_id: ProjectId,
    }

    /// The workspaces of a project, newest first.
    WorkspaceListResponse {
        /// The workspaces.
        workspaces: Vec<WorkspaceInfo>,
    }

    /// A workspace.
    WorkspaceInfo {
        /// The id of the workspace.
        workspace_id: WorkspaceId,
        /// When it was created.
        created_at: u64,
        /// When a session last started in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_session_at: Option<u64>,
    }

    /// The workspace to delete.
    WorkspaceDeleteRequest {
        /// The id of the project.
        project_id: ProjectId,
        /// The id of the workspace.
        workspace_id: WorkspaceId,
    }

    /// The project whose limits to read.
    ConfigLimitsRequest {
        /// The id of the project.
        project_id: ProjectId,
        /// The id of one of its sessions, to see what remains for its agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<SessionId>")]
        session_id: Option<SessionId>,
    }

    /// The limits in force, and what remains of them.
    LimitsResponse {
        /// The maximum depth of sessions that agents start.
        max_depth: u32,
        /// The maximum number of sessions that one session and its descendants may start.
        max_agents: u32,
        /// The maximum number of sessions of the project that may be live at the same time.
        max_sessions: u32,
        /// How long a session may go without a message before it is ended, in milliseconds.
        idle_ms: u64,
        /// What remains.
        remaining: RemainingLimits,
    }

    /// What remains of the limits.
    #[derive(Copy, Eq)]
    RemainingLimits {
        /// The number of levels of sessions that can still be started below the given session.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        depth: Option<u32>,
        /// The number of sessions that the given session and its descendants may still start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agents: Option<u32>,
        /// The number of sessions of the project that can still be started now.
        sessions: u32,
    }
}
