//! Sessions of agents: `session_*`.

use ringback_core::policy;
use ringback_proto::Result;
use ringback_proto::record::{Record, SessionRecord, SessionState, SpendingRecord};
use ringback_proto::request::{
    AckResponse, CleanedResponse, ModelUsage, SessionCleanupRequest, SessionEndRequest,
    SessionEventsRequest, SessionEventsResponse, SessionGetRequest, SessionListRequest,
    SessionListResponse, SessionMessageRequest, SessionMessagedResponse, SessionModel,
    SessionNetworkRequest, SessionOpenRequest, SessionOpenedResponse, SessionResponse,
    SessionSpawnRequest,
};
use ringback_proto::tool::tools;
use ringback_store::SessionFilter;

use super::{Native, list_limit};
use crate::handler::{Context, Handler};
use crate::sessions::{
    ELSEWHERE, Origin, SessionDetails, Sessions, StartChoice, StartSession, offered,
};
use crate::sync::lock;

/// The notice of a session whose agent is not confined.
const NOT_CONFINED: &str = "the agent runs as the daemon's own user, in its own process group and \
    directory, without further confinement";
/// The notice of a session whose agent runs elsewhere and whose tool server is not confined.
const SERVER_NOT_CONFINED: &str = "the tool server runs as the daemon's own user, in its own \
    process group and directory, without further confinement";

/// The most sessions that one cleanup removes.
const CLEANUP_MAX: usize = 500;
const MS_PER_HOUR: u64 = 60 * 60 * 1000;

impl Handler<tools::SessionSpawn> for Native {
    async fn handle(ctx: Context, request: SessionSpawnRequest) -> Result<SessionResponse> {
        let SessionSpawnRequest {
            project_id,
            workspace_id,
            create_workspace,
            agent,
            context,
            caller_id,
            caller_tools,
            network,
            limits,
            toolchains,
            model,
            permissions,
        } = request;
        if toolchains.is_some() {
            policy::may_show_toolchains(&ctx.principal)?;
        }
        let offer = offered(&ctx.principal, context, caller_id, caller_tools)?;
        let (rooms, principal) = (&ctx.rooms, &ctx.principal);
        let project = rooms.workspaces.visible_project(principal, project_id).await?;
        let workspace = rooms
            .workspaces
            .workspace_for(principal, &project, workspace_id, create_workspace)
            .await?;
        let origin = Origin::of(principal);
        let principal = std::sync::Arc::clone(principal);
        let key = None;
        let choice = StartChoice { model, key: None, permissions };
        let start = StartSession {
            principal,
            project,
            workspace,
            agent,
            key,
            origin,
            network,
            limits,
            toolchains,
            choice,
        };
        let record = rooms.sessions.start_session(start).await?;
        if let Some(offer) = offer
            && let Err(error) = rooms.offers.take_offer(&ctx.principal, record.id, offer).await
        {
            let why = "its tools were refused";
            rooms.sessions.end_session(record.id, SessionState::Failed, why).await?;
            return Err(error);
        }
        Ok(rooms.sessions.shown_session(record))
    }
}

impl Handler<tools::SessionMessage> for Native {
    async fn handle(
        ctx: Context,
        request: SessionMessageRequest,
    ) -> Result<SessionMessagedResponse> {
        ctx.rooms.sessions.session_message(&ctx.principal, request).await
    }
}

impl Handler<tools::SessionEvents> for Native {
    async fn handle(ctx: Context, request: SessionEventsRequest) -> Result<SessionEventsResponse> {
        ctx.rooms.register.visible_session(&ctx.principal, request.session_id).await?;
        ctx.rooms.conversations.events_of(request).await
    }
}

impl Handler<tools::SessionList> for Native {
    async fn handle(ctx: Context, request: SessionListRequest) -> Result<SessionListResponse> {
        let limit = list_limit(request.limit)?;
        let (visible, tree) = (ctx.visible(), policy::tree(&ctx.principal));
        let page = ctx
            .read(move |store| {
                let filter =
                    SessionFilter { project: request.project_id, state: request.status, tree };
                store.sessions(&visible, filter, request.cursor.as_deref(), limit)
            })
            .await?;
        let shown = |record| ctx.rooms.sessions.shown_session(record);
        let sessions = page.items.into_iter().map(shown).collect();
        Ok(SessionListResponse { sessions, next_cursor: page.next_cursor })
    }
}

impl Handler<tools::SessionGet> for Native {
    async fn handle(ctx: Context, request: SessionGetRequest) -> Result<SessionResponse> {
        let record = ctx.rooms.register.visible_session(&ctx.principal, request.session_id).await?;
        Ok(ctx.rooms.sessions.shown_session(record))
    }
}

impl Handler<tools::SessionEnd> for Native {
    async fn handle(ctx: Context, request: SessionEndRequest) -> Result<AckResponse> {
        let id = request.session_id;
        ctx.rooms.register.visible_session(&ctx.principal, id).await?;
        ctx.rooms.sessions.end_session(id, SessionState::Ended, "it was ended").await?;
        Ok(AckResponse { message: format!("{id} has ended") })
    }
}

impl Handler<tools::SessionNetwork> for Native {
    async fn handle(ctx: Context, request: SessionNetworkRequest) -> Result<SessionResponse> {
        let record = ctx.rooms.networks.change_network(&ctx.principal, request).await?;
        Ok(ctx.rooms.sessions.shown_session(record))
    }
}

impl Handler<tools::SessionCleanup> for Native {
    async fn handle(ctx: Context, request: SessionCleanupRequest) -> Result<CleanedResponse> {
        let now = ctx.now().unix;
        let age_ms = request.max_age_hours.unwrap_or(0).saturating_mul(MS_PER_HOUR);
        let before = now.saturating_sub(age_ms);
        let (visible, tree) = (ctx.visible(), policy::tree(&ctx.principal));
        // Sessions whose end waits for disk space have ended as well.
        ctx.rooms.kernel.store_waiting().await;
        let over = ctx
            .read(move |store| match tree {
                None => store.sessions_over(&visible, request.project_id, before, CLEANUP_MAX),
                Some(_) => {
                    let filter = SessionFilter { project: request.project_id, state: None, tree };
                    let mut all = store.sessions(&visible, filter, None, CLEANUP_MAX)?.items;
                    all.retain(|session| session.ended_at.is_some_and(|at| at <= before));
                    Ok(all)
                }
            })
            .await?;
        let mut deleted = 0;
        for record in over {
            // The files go first: that makes space for the record.
            ctx.rooms.conversations.forget_journal(record.id).await?;
            ctx.commit_end(vec![Record::SessionDeleted { id: record.id }]).await?;
            lock(&ctx.rooms.register.table).forget(record.id);
            deleted += 1;
        }
        Ok(CleanedResponse { deleted })
    }
}

impl Handler<tools::SessionOpen> for Native {
    async fn handle(ctx: Context, request: SessionOpenRequest) -> Result<SessionOpenedResponse> {
        ctx.rooms.sessions.open_session(&ctx.principal, request).await
    }
}

impl Sessions {
    /// Returns the notice for a session with this agent.
    fn notice(&self, session: ringback_proto::ids::SessionId, agent: &str) -> Option<&'static str> {
        let has_server = || self.register.live(session).is_some_and(|live| live.has_server());
        if self.sandboxes.confiner.is_some() {
            None
        } else if agent != ELSEWHERE {
            Some(NOT_CONFINED)
        } else {
            has_server().then_some(SERVER_NOT_CONFINED)
        }
    }

    fn shown_session(&self, record: SessionRecord) -> SessionResponse {
        let (last_index, state) = {
            let table = lock(&self.register.table);
            (table.last_index(record.id), table.find(record.id).map(|(_, state)| state))
        };
        let details = self.register.outside(record.id).unwrap_or(SessionDetails {
            network: None,
            spending: record.spending,
            paused: None,
            model: None,
        });
        let SessionDetails { network, spending, paused, model } = details;
        let model = model.map(|model| match state {
            // While it works, a request may still succeed.
            Some(SessionState::Starting | SessionState::Running) => {
                SessionModel { failure: None, ..model }
            }
            Some(_) | None => model,
        });
        let SpendingRecord { limits, usage, working_ms } = spending;
        let agent = record.agent;
        let (confined, notice) = (self.sandboxes.confines(&agent), self.notice(record.id, &agent));
        SessionResponse {
            session_id: record.id,
            root_session_id: record.root,
            parent_id: record.parent,
            project_id: record.project,
            workspace_id: record.workspace,
            agent,
            status: state.unwrap_or(record.state),
            depth: record.depth,
            created_at: record.created_at,
            updated_at: record.updated_at,
            ended_at: record.ended_at,
            last_event_index: last_index
                .map_or(-1, |index| i64::try_from(index).unwrap_or(i64::MAX)),
            confined,
            workspace_path: self.workspaces.workspace_path(record.workspace).into_string(),
            notice: notice.map(str::to_owned),
            url: state
                .filter(|state| state.is_live())
                .and_then(|_| self.url_tokens.session_url(record.id)),
            network: network.or(record.network),
            model_usage: (usage != ModelUsage::default()).then_some(usage),
            limits: (!limits.is_none()).then_some(limits),
            working_ms,
            paused,
            model,
        }
    }
}
