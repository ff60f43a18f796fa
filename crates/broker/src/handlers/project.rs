//! Projects and workspaces: `project_*`, `workspace_*`, `config_limits`.

use ringback_core::network::is_within;
use ringback_core::policy::{may_loosen, sight_of_projects};
use ringback_core::sessions::{DeletionTarget, SessionLimits};
use ringback_proto::ids::ProjectId;
use ringback_proto::network::{NetworkMode, NetworkPolicy};
use ringback_proto::principal::KeyLevel;
use ringback_proto::record::{ProjectRecord, Record, WorkspaceRecord};
use ringback_proto::request::{
    AckResponse, ConfigLimitsRequest, LimitsResponse, ProjectCreateRequest, ProjectDeleteRequest,
    ProjectGetRequest, ProjectLimits, ProjectListRequest, ProjectListResponse, ProjectResponse,
    ProjectUpdateRequest, RemainingLimits, WorkspaceDeleteRequest, WorkspaceInfo,
    WorkspaceListRequest, WorkspaceListResponse,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, ErrorKind, Result};

use super::{Native, check_text, list_limit};
use crate::containers::Containers;
use crate::handler::{Context, Handler};
use crate::rooms::visible;
use crate::sessions::check_network;
use crate::sync::lock;

/// The most characters of a project's name.
const NAME_CHARS_MAX: usize = 100;
/// The most characters of a project's description.
const DESCRIPTION_CHARS_MAX: usize = 4000;

impl Handler<tools::ProjectCreate> for Native {
    async fn handle(ctx: Context, request: ProjectCreateRequest) -> Result<ProjectResponse> {
        let ProjectCreateRequest {
            name,
            description,
            limits,
            agent,
            key_level,
            network,
            image,
            permissions,
        } = request;
        check_text("name", &name, NAME_CHARS_MAX)?;
        if let Some(description) = &description {
            check_text("description", description, DESCRIPTION_CHARS_MAX)?;
        }
        let key_level = key_level.unwrap_or_default();
        if key_level != KeyLevel::None {
            may_loosen(&ctx.principal, "giving the agents of a project a key")?;
        }
        let limits = limits.unwrap_or_default();
        if raises(ctx.rooms.kernel.config.sessions.limits, &limits) {
            may_loosen(&ctx.principal, "raising limits above the daemon's own")?;
        }
        if let Some(network) = &network {
            check_network(network)?;
            if !is_within(network, &NetworkPolicy::of(NetworkMode::Model)) {
                may_loosen(&ctx.principal, "network access beyond the agent's model")?;
            }
        }
        let permissions = permissions.filter(|policy| !policy.is_empty());
        if let Some(permissions) = &permissions {
            ctx.rooms.sessions.check_permissions(&ctx.principal, permissions)?;
        }
        if let Some(agent) = &agent {
            ctx.rooms.sessions.choices.check_agent(agent)?;
        }
        let image = match image {
            Some(image) => Some(ctx.rooms.images.wanted_image(&ctx.principal, &image).await?),
            None => None,
        };
        let record = ProjectRecord {
            id: ProjectId::from_random(ctx.rooms.kernel.entropy.bytes()),
            name,
            description,
            owner: ctx.principal.id,
            agent,
            key_level,
            limits,
            network,
            image,
            permissions,
            created_at: ctx.now().unix,
        };
        ctx.commit(vec![Record::ProjectCreated(Box::new(record.clone()))]).await?;
        Ok(ctx.rooms.containers.shown(record))
    }
}

impl Handler<tools::ProjectList> for Native {
    async fn handle(ctx: Context, request: ProjectListRequest) -> Result<ProjectListResponse> {
        let limit = list_limit(request.limit)?;
        let visible = visible(sight_of_projects(&ctx.principal));
        let page = ctx
            .read(move |store| {
                let (name, cursor) = (request.name_contains.as_deref(), request.cursor.as_deref());
                store.projects(&visible, name, cursor, limit)
            })
            .await?;
        let projects =
            page.items.into_iter().map(|record| ctx.rooms.containers.shown(record)).collect();
        Ok(ProjectListResponse { projects, next_cursor: page.next_cursor })
    }
}

impl Handler<tools::ProjectGet> for Native {
    async fn handle(ctx: Context, request: ProjectGetRequest) -> Result<ProjectResponse> {
        let record =
            ctx.rooms.workspaces.visible_project(&ctx.principal, request.project_id).await?;
        Ok(ctx.rooms.containers.shown(record))
    }
}

impl Handler<tools::ProjectUpdate> for Native {
    async fn handle(ctx: Context, request: ProjectUpdateRequest) -> Result<ProjectResponse> {
        let ProjectUpdateRequest { project_id: id, permissions } = request;
        let mut project = ctx.rooms.workspaces.visible_project(&ctx.principal, id).await?;
        let Some(permissions) = permissions else {
            let message = "nothing to change: set `permissions`, the only field that can change";
            return Err(Error::invalid_field("permissions", message));
        };
        ctx.rooms.sessions.check_permissions(&ctx.principal, &permissions)?;
        project.permissions = Some(permissions).filter(|policy| !policy.is_empty());
        let permissions = project.permissions.clone();
        ctx.commit(vec![Record::ProjectPermissions { id, permissions }]).await?;
        ctx.rooms.sessions.follow_permissions(id, project.permissions.as_ref())?;
        Ok(ctx.rooms.containers.shown(project))
    }
}

impl Handler<tools::ProjectDelete> for Native {
    async fn handle(ctx: Context, request: ProjectDeleteRequest) -> Result<AckResponse> {
        let id = request.project_id;
        ctx.rooms.workspaces.visible_project(&ctx.principal, id).await?;
        let _closed = ctx.rooms.workspaces.close_for_deletion(DeletionTarget::Project(id))?;
        let leaving = ctx.rooms.containers.leave_container(id).await?;
        let workspaces = ctx.read(move |store| store.workspaces(id)).await?;
        // The files go first: as long as some are left, there is a record to try again with.
        for workspace in workspaces {
            ctx.rooms.workspaces.remove_workspace_dirs(workspace.id).await?;
        }
        ctx.rooms.workspaces.remove_caches(id).await?;
        leaving.remove_dir().await?;
        ctx.commit_end(vec![Record::ProjectDeleted { id }]).await?;
        leaving.gone();
        Ok(AckResponse { message: format!("{id} is deleted, with its workspaces") })
    }
}

impl Handler<tools::WorkspaceList> for Native {
    async fn handle(ctx: Context, request: WorkspaceListRequest) -> Result<WorkspaceListResponse> {
        let id = request.project_id;
        ctx.rooms.workspaces.visible_project(&ctx.principal, id).await?;
        let workspaces = ctx.rooms.workspaces.workspaces_of(&ctx.principal, id).await?;
        let shown = |workspace: WorkspaceRecord| WorkspaceInfo {
            workspace_id: workspace.id,
            created_at: workspace.created_at,
            last_session_at: workspace.last_session_at,
        };
        Ok(WorkspaceListResponse { workspaces: workspaces.into_iter().map(shown).collect() })
    }
}

impl Handler<tools::WorkspaceDelete> for Native {
    async fn handle(ctx: Context, request: WorkspaceDeleteRequest) -> Result<AckResponse> {
        let WorkspaceDeleteRequest { project_id, workspace_id } = request;
        let project = ctx.rooms.workspaces.visible_project(&ctx.principal, project_id).await?;
        let workspace =
            ctx.rooms.workspaces.workspace_of(&ctx.principal, &project, workspace_id).await?;
        let _closed =
            ctx.rooms.workspaces.close_for_deletion(DeletionTarget::Workspace(workspace.id))?;
        if ctx.rooms.containers.is_used(workspace_id) {
            let message =
                format!("a command is running in {workspace_id}; wait for it to end, or cancel it");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        ctx.rooms.workspaces.remove_workspace_dirs(workspace_id).await?;
        ctx.commit_end(vec![Record::WorkspaceDeleted { id: workspace_id }]).await?;
        Ok(AckResponse { message: format!("{workspace_id} is deleted") })
    }
}

impl Handler<tools::ConfigLimits> for Native {
    async fn handle(ctx: Context, request: ConfigLimitsRequest) -> Result<LimitsResponse> {
        let id = request.project_id;
        let project = ctx.rooms.workspaces.visible_project(&ctx.principal, id).await?;
        let limits = ctx.rooms.kernel.config.sessions.limits_of(&project.limits);
        let mut remaining = RemainingLimits { depth: None, agents: None, sessions: 0 };
        if let Some(session) = request.session_id {
            let record = ctx.rooms.register.visible_session(&ctx.principal, session).await?;
            if record.project != id {
                return Err(Error::not_found("session", session));
            }
            let n_agents = lock(&ctx.rooms.register.table).n_agents(record.root);
            remaining.depth = Some(limits.depth_max.saturating_sub(record.depth));
            remaining.agents = Some(limits.agents_max.saturating_sub(n_agents));
        }
        let n_live = lock(&ctx.rooms.register.table).n_live(id);
        remaining.sessions =
            limits.live_max.saturating_sub(u32::try_from(n_live).unwrap_or(u32::MAX));
        Ok(LimitsResponse {
            max_depth: limits.depth_max,
            max_agents: limits.agents_max,
            max_sessions: limits.live_max,
            idle_ms: limits.idle_ms,
            remaining,
        })
    }
}

/// Returns whether a project asks for more than the daemon's own limits.
fn raises(usual: SessionLimits, limits: &ProjectLimits) -> bool {
    limits.max_depth.is_some_and(|depth| depth > usual.depth_max)
        || limits.max_agents.is_some_and(|agents| agents > usual.agents_max)
        || limits.max_sessions.is_some_and(|sessions| sessions > usual.live_max)
        || limits.idle_ms.is_some_and(|idle_ms| idle_ms > usual.idle_ms)
}

impl Containers {
    fn shown(&self, record: ProjectRecord) -> ProjectResponse {
        ProjectResponse {
            container: self.info(record.id),
            project_id: record.id,
            name: record.name,
            description: record.description,
            limits: record.limits,
            agent: record.agent,
            key_level: Some(record.key_level).filter(|level| *level != KeyLevel::None),
            created_at: record.created_at,
            network: record.network,
            image: record.image.map(|image| image.as_str().to_owned()),
            permissions: record.permissions,
        }
    }
}
