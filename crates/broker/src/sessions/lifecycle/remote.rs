//! Sessions for agents that run elsewhere: opened, not started. They have callers, a key and a URL
//! like any other session, but no process.

use std::sync::Arc;

use ringback_core::policy::may_loosen;
use ringback_core::sessions::SessionPlace;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::principal::{KeyHolder, KeyLevel, Principal, PrincipalId, Target};
use ringback_proto::record::{ProjectRecord, Record, SessionState};
use ringback_proto::request::{ProjectLimits, SessionOpenRequest, SessionOpenedResponse};
use ringback_proto::{Error, ErrorKind, Result};
use ringback_store::RowVisibility;

use crate::sessions::conversation::message::Offer;
use crate::sessions::lifecycle::choice::StartChoice;
use crate::sessions::{Origin, Sessions, StartSession, offered};
use crate::sync::lock;

/// Agent name of sessions whose agent runs elsewhere, and name of their default project.
pub(crate) const ELSEWHERE: &str = "elsewhere";

impl Sessions {
    /// Opens a session, or issues a new token for an existing one.
    pub(crate) async fn open_session(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        request: SessionOpenRequest,
    ) -> Result<SessionOpenedResponse> {
        let SessionOpenRequest { project_id, session_id, context, caller_id, caller_tools, ttl_ms } =
            request;
        let offer = offered(principal, context, caller_id, caller_tools)?;
        if let Some(session) = session_id {
            self.check_own(principal, session)?;
            if let Some(offer) = offer {
                self.offers.take_offer(principal, session, offer).await?;
            }
            let (url, token) = self.url_tokens.new_pass(session)?;
            return Ok(SessionOpenedResponse { session_id: session, url, token });
        }
        let mut project = match project_id {
            Some(project) => self.workspaces.visible_project(principal, project).await?,
            None => self.project_elsewhere(principal).await?,
        };
        if let Some(ttl_ms) = ttl_ms {
            if ttl_ms > self.kernel.config.sessions.limits_of(&project.limits).idle_ms {
                may_loosen(principal, "a `ttl_ms` above the project's own")?;
            }
            project.limits.idle_ms = Some(ttl_ms);
        }
        let (agent, origin) = (Some(ELSEWHERE.to_owned()), Origin::of(principal));
        let start = StartSession {
            principal: Arc::clone(principal),
            project,
            workspace: None,
            agent,
            key: None,
            origin,
            network: None,
            limits: None,
            toolchains: None,
            choice: StartChoice::default(),
        };
        let session = self.start_session(start).await?.id;
        let opened = self.equip_elsewhere(principal, session, offer).await;
        if opened.is_err() {
            self.end_session(session, SessionState::Failed, "opening it failed").await?;
        }
        opened
    }

    async fn equip_elsewhere(
        self: &Arc<Self>,
        principal: &Arc<Principal>,
        session: SessionId,
        offer: Option<Offer>,
    ) -> Result<SessionOpenedResponse> {
        if let Some(offer) = offer {
            self.offers.take_offer(principal, session, offer).await?;
        }
        let (url, token) = self.url_tokens.new_pass(session)?;
        // The daemon cannot see when this agent works: requests at the URL count as use.
        let (now, state) = (self.kernel.now(), SessionState::Idle);
        lock(&self.register.table).rest(now, session);
        let rests = Record::SessionChanged { id: session, state, at: now.unix };
        self.kernel.commit_or_later(vec![rests]).await?;
        self.conversations.say_state(session, state, None);
        self.kernel.alarm.ring();
        Ok(SessionOpenedResponse { session_id: session, url, token })
    }

    /// Checks that the principal started the session: only then may it pass the session on.
    fn check_own(&self, principal: &Principal, session: SessionId) -> Result<()> {
        let table = lock(&self.register.table);
        let is_own = |place: &SessionPlace| match principal.held_by {
            None => place.owner == principal.id,
            Some(KeyHolder { session: own, .. }) => table.comes_from(session, own),
        };
        let found = table.find(session).filter(|(place, state)| state.is_live() && is_own(place));
        found.map(drop).ok_or_else(|| Error::not_found("session", session))
    }

    /// Returns the principal's default project for such sessions, and creates it on first use.
    async fn project_elsewhere(&self, principal: &Arc<Principal>) -> Result<ProjectRecord> {
        if let Target::Projects(_) = &principal.target {
            let message = "set `project_id`: this token is limited to some projects";
            return Err(Error::invalid_field("project_id", message));
        }
        let owner = principal.id;
        if let Some(own) = self.found_elsewhere(owner).await? {
            return Ok(own);
        }
        let record = ProjectRecord {
            id: ProjectId::from_random(self.kernel.entropy.bytes()),
            name: ELSEWHERE.to_owned(),
            description: None,
            owner,
            agent: Some(ELSEWHERE.to_owned()),
            key_level: KeyLevel::None,
            limits: ProjectLimits::default(),
            network: None,
            image: None,
            permissions: None,
            created_at: self.kernel.now().unix,
        };
        match self.kernel.commit(vec![Record::ProjectCreated(Box::new(record.clone()))]).await {
            Ok(_) => Ok(record),
            // Another call of the same principal created it first.
            Err(error) if error.kind() == ErrorKind::Conflict => {
                self.found_elsewhere(owner).await?.ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn found_elsewhere(&self, owner: PrincipalId) -> Result<Option<ProjectRecord>> {
        let visible = RowVisibility::Owner { owner, projects: Vec::new() };
        let found = self
            .kernel
            .read(move |store| store.projects(&visible, Some(ELSEWHERE), None, 100))
            .await?;
        let mut own = found.items.into_iter();
        Ok(own.find(|project| project.owner == owner && project.name == ELSEWHERE))
    }
}
