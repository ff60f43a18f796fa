//! Projects and workspaces: `project_*`, `workspace_*`, `config_limits`.

use super::{ContainerInfo, wire_struct};
use crate::ids::{ProjectId, SessionId, WorkspaceId};
use crate::money::MicroUsd;
use crate::network::NetworkPolicy;
use crate::permission::PermissionPolicy;
use crate::principal::KeyLevel;

wire_struct! {
    /// A project to make.
    ProjectCreateRequest {
        /// What you call it.
        name: String,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// What its sessions are limited to. Above the daemon's own limits needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limits: Option<ProjectLimits>,
        /// The agent its sessions run, unless they say otherwise; the daemon's own if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The level of the key each of its sessions gets, never above your own; `none` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_level: Option<KeyLevel>,
        /// What its sessions may reach, unless they say otherwise; only the model of their agent if
        /// absent. Above that needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPolicy>,
        /// The image its sessions and its container run in: a name of the configuration
        /// (`sandbox.images`), or, which needs admin, any image that the engine has.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// What is answered when its agents ask for permission; as the agent's settings or the
        /// daemon's say if absent. More than those needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permissions: Option<PermissionPolicy>,
    }

    /// What of a project is to be another one. What is absent stays.
    ProjectUpdateRequest {
        /// The project.
        project_id: ProjectId,
        /// What is answered when its agents ask for permission, from the next question on; an empty
        /// policy leaves it to the agent's settings. More than those needs admin.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permissions: Option<PermissionPolicy>,
    }

    /// What the sessions of a project are limited to; the daemon's own limit where absent.
    #[derive(Default, Copy, Eq)]
    ProjectLimits {
        /// How many sessions deep agents may start sessions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_depth: Option<u32>,
        /// How many sessions one session and its descendants may start in all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_agents: Option<u32>,
        /// How many sessions may live at the same time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_sessions: Option<u32>,
        /// After how long without a message a session is ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        idle_ms: Option<u64>,
        /// How many tokens a session may spend before somebody is asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_tokens: Option<u64>,
        /// How long the agents of a session may be at work before somebody is asked, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_time_ms: Option<u64>,
        /// What a session may cost before somebody is asked, in millionths of a US dollar.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_micro_usd: Option<MicroUsd>,
    }

    /// A project.
    ProjectResponse {
        /// Its id.
        project_id: ProjectId,
        /// What a person calls it.
        name: String,
        /// What it is for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        description: Option<String>,
        /// What its sessions are limited to, where that was said.
        limits: ProjectLimits,
        /// The agent its sessions run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agent: Option<String>,
        /// The level of the key each of its sessions gets; absent if they get none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key_level: Option<KeyLevel>,
        /// When it was made.
        created_at: u64,
        /// What its sessions may reach, where that was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        network: Option<NetworkPolicy>,
        /// The image its sessions and its container run in, where that was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// How its container is, if it had one since the daemon was started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        container: Option<ContainerInfo>,
        /// What is answered when its agents ask for permission, where that was said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        permissions: Option<PermissionPolicy>,
    }

    /// Which projects.
    #[derive(Default)]
    ProjectListRequest {
        /// Only with this in their name, in capitals or not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name_contains: Option<String>,
        /// At most so many: 50 if absent, 500 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// Where the page before this one ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A page of projects, newest first.
    ProjectListResponse {
        /// The projects you may see.
        projects: Vec<ProjectResponse>,
        /// Where the next page starts; absent on the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    /// Which project.
    ProjectGetRequest {
        /// Its id.
        project_id: ProjectId,
    }

    /// Which project to delete.
    ProjectDeleteRequest {
        /// Its id.
        project_id: ProjectId,
    }

    /// Whose workspaces.
    WorkspaceListRequest {
        /// The project.
        project_id: ProjectId,
    }

    /// The workspaces of a project, newest first.
    WorkspaceListResponse {
        /// The workspaces.
        workspaces: Vec<WorkspaceInfo>,
    }

    /// A workspace.
    WorkspaceInfo {
        /// Its id.
        workspace_id: WorkspaceId,
        /// When it was made.
        created_at: u64,
        /// When a session last began in it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_session_at: Option<u64>,
    }

    /// Which workspace to delete.
    WorkspaceDeleteRequest {
        /// Its project.
        project_id: ProjectId,
        /// Its id.
        workspace_id: WorkspaceId,
    }

    /// Whose limits.
    ConfigLimitsRequest {
        /// The project.
        project_id: ProjectId,
        /// A session of it, to learn what remains for its agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[serde(deserialize_with = "super::empty_as_none")]
        #[schemars(with = "Option<SessionId>")]
        session_id: Option<SessionId>,
    }

    /// The limits that hold, and what remains of them.
    LimitsResponse {
        /// How many sessions deep agents may start sessions.
        max_depth: u32,
        /// How many sessions one session and its descendants may start in all.
        max_agents: u32,
        /// How many sessions of the project may live at the same time.
        max_sessions: u32,
        /// After how long without a message a session is ended.
        idle_ms: u64,
        /// What remains.
        remaining: RemainingLimits,
    }

    /// What remains of the limits.
    #[derive(Copy, Eq)]
    RemainingLimits {
        /// How many sessions deeper the session named may go.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        depth: Option<u32>,
        /// How many sessions the session named and its descendants may still start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        agents: Option<u32>,
        /// How many more sessions of the project may live now.
        sessions: u32,
    }
}
