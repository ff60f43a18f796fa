//! Sessions of agents: `session_*`.

use ringback_core::policy;
use ringback_proto::Result;
use ringback_proto::record::{Record, SessionRecord, SessionState, SpendingRecord};
use ringback_proto::request::{
    AckResponse, CleanedResponse, ModelUsage, SessionCleanupRequest, SessionEndRequest,
    SessionEventsRequest, SessionEventsResponse, SessionGetRequest, SessionListRequest,
    SessionListResponse, SessionMessageRequest, SessionMessagedResponse, SessionNetworkRequest,
    SessionOpenRequest, SessionOpenedResponse, SessionResponse, SessionSpawnRequest,
};
use ringback_proto::tool::tools;
use ringback_store::SessionFilter;

use super::{Native, list_limit};
use crate::handler::{Context, Handler};
use crate::sessions::{Origin, Outside, StartSession, offered};
use crate::shared::Shared;
use crate::sync::lock;

/// Sessions that one cleanup removes at most.
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
        } = request;
        let offer = offered(&ctx.principal, context, caller_id, caller_tools)?;
        let (shared, principal) = (&ctx.shared, &ctx.principal);
        let project = shared.visible_project(principal, project_id).await?;
        let workspace =
            shared.workspace_for(principal, &project, workspace_id, create_workspace).await?;
        let origin = Origin::of(principal);
        let principal = std::sync::Arc::clone(principal);
        let key = None;
        let start =
            StartSession { principal, project, workspace, agent, key, origin, network, limits };
        let record = shared.start_session(start).await?;
        if let Some(offer) = offer
            && let Err(error) = shared.take_offer(&ctx.principal, record.id, offer).await
        {
            let why = "its tools were refused";
            shared.end_session(record.id, SessionState::Failed, why).await?;
            return Err(error);
        }
        Ok(shared.shown_session(record))
    }
}

impl Handler<tools::SessionMessage> for Native {
    async fn handle(
        ctx: Context,
        request: SessionMessageRequest,
    ) -> Result<SessionMessagedResponse> {
        ctx.shared.session_message(&ctx.principal, request).await
    }
}

impl Handler<tools::SessionEvents> for Native {
    async fn handle(ctx: Context, request: SessionEventsRequest) -> Result<SessionEventsResponse> {
        ctx.shared.visible_session(&ctx.principal, request.session_id).await?;
        ctx.shared.events_of(request).await
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
        let shown = |record| ctx.shared.shown_session(record);
        let sessions = page.items.into_iter().map(shown).collect();
        Ok(SessionListResponse { sessions, next_cursor: page.next_cursor })
    }
}

impl Handler<tools::SessionGet> for Native {
    async fn handle(ctx: Context, request: SessionGetRequest) -> Result<SessionResponse> {
        let record = ctx.shared.visible_session(&ctx.principal, request.session_id).await?;
        Ok(ctx.shared.shown_session(record))
    }
}

impl Handler<tools::SessionEnd> for Native {
    async fn handle(ctx: Context, request: SessionEndRequest) -> Result<AckResponse> {
        let id = request.session_id;
        ctx.shared.visible_session(&ctx.principal, id).await?;
        ctx.shared.end_session(id, SessionState::Ended, "it was ended").await?;
        Ok(AckResponse { message: format!("{id} has ended") })
    }
}

impl Handler<tools::SessionNetwork> for Native {
    async fn handle(ctx: Context, request: SessionNetworkRequest) -> Result<SessionResponse> {
        let record = ctx.shared.change_network(&ctx.principal, request).await?;
        Ok(ctx.shared.shown_session(record))
    }
}

impl Handler<tools::SessionCleanup> for Native {
    async fn handle(ctx: Context, request: SessionCleanupRequest) -> Result<CleanedResponse> {
        let now = ctx.now().unix;
        let age_ms = request.max_age_hours.unwrap_or(0).saturating_mul(MS_PER_HOUR);
        let before = now.saturating_sub(age_ms);
        let (visible, tree) = (ctx.visible(), policy::tree(&ctx.principal));
        // Ends that wait for room on the disk are over as well.
        ctx.shared.kernel.store_waiting().await;
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
            // What is on the disk first: that makes room for the record.
            ctx.shared.forget_journal(record.id).await?;
            ctx.commit_end(vec![Record::SessionDeleted { id: record.id }]).await?;
            lock(&ctx.shared.sessions.table).forget(record.id);
            deleted += 1;
        }
        Ok(CleanedResponse { deleted })
    }
}

impl Handler<tools::SessionOpen> for Native {
    async fn handle(ctx: Context, request: SessionOpenRequest) -> Result<SessionOpenedResponse> {
        ctx.shared.open_session(&ctx.principal, request).await
    }
}

impl Shared {
    fn shown_session(&self, record: SessionRecord) -> SessionResponse {
        let (last_index, state) = {
            let table = lock(&self.sessions.table);
            (table.last_index(record.id), table.find(record.id).map(|(_, state)| state))
        };
        let (network, spending, paused) = match self.sessions.outside(record.id) {
            Some(Outside { network, spending, paused }) => (network, spending, paused),
            None => (None, record.spending, None),
        };
        let SpendingRecord { limits, usage, working_ms } = spending;
        let agent = record.agent;
        let (confined, notice) =
            (self.sessions.confines(&agent), self.sessions.notice(record.id, &agent));
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
            workspace_path: self.workspace_path(record.workspace).into_string(),
            notice: notice.map(str::to_owned),
            url: state.filter(|state| state.is_live()).and_then(|_| self.session_url(record.id)),
            network: network.or(record.network),
            model_usage: (usage != ModelUsage::default()).then_some(usage),
            limits: (!limits.is_none()).then_some(limits),
            working_ms,
            paused,
        }
    }
}
