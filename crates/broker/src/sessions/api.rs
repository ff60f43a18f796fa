//! Entry points for edges: serving a session's socket, and following a session's events.

use std::sync::Arc;

use ringback_proto::any::Any;
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::{CallId, ProjectId, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    SessionEventInfo, SessionEventsRequest, SessionEventsResponse, SessionMessagedResponse,
};
use ringback_proto::secret::Secret;
use ringback_proto::{Error, Result};

use crate::Broker;
use crate::call::{Answer, Edge};
use crate::identity::Credential;
use crate::lines::{CallerCall, CallerTools};
use crate::sessions::conversation::events::event;
use crate::sessions::{Conversations, ModelRequest};
use crate::sync::lock;

/// Events that a follower gets in one batch.
const FOLLOW_MAX: usize = 100;

/// A live session, as edges see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionView {
    /// Its id.
    pub id: SessionId,
    /// The session whose caller serves it.
    pub root: SessionId,
    /// Its project.
    pub project: ProjectId,
    /// Its owner.
    pub owner: PrincipalId,
    /// Its state.
    pub status: SessionState,
}

impl Broker {
    /// Records a session's model request in its events, the audit log and its spending.
    pub fn model_requested(&self, session: SessionId, request: &ModelRequest) {
        let rooms = &self.0;
        let Some(view) = self.session_view(session) else { return };
        let call = CallId::from_random(rooms.kernel.entropy.bytes());
        rooms.kernel.auditor.model_requested(
            rooms.kernel.now(),
            call,
            (view.owner, session),
            request,
        );
        let (text, tool_name) = (Some(request.to_string()), Some(request.model.clone()));
        rooms
            .conversations
            .say(session, SessionEventInfo { text, tool_name, ..event("model_request") });
        if let Some(live) = rooms.register.live(session) {
            lock(&live.model).note(request);
        }
        rooms.budgets.spent(session, request.usage);
    }

    /// Hides the key of a model in what the events of a session show of its calls, from now on.
    pub fn conceal(&self, session: SessionId, key: &Secret) {
        // Nothing would drop the key of a session that has ended.
        if self.0.register.live(session).is_some() {
            lock(&self.0.conversations.concealed).add(session, key);
        }
    }

    /// Returns a session of this run.
    #[must_use]
    pub fn session_view(&self, session: SessionId) -> Option<SessionView> {
        self.0.register.view(session)
    }

    /// Authenticates a secret presented inside a session. This includes the session key, which
    /// works nowhere else.
    ///
    /// # Errors
    /// `unauthenticated` when the secret is not valid here.
    pub fn authenticate_in(&self, session: SessionId, secret: &str) -> Result<Credential> {
        self.0.identity.tokens.authenticate_in(session, secret, self.0.kernel.now())
    }

    /// Returns the tools that callers offer the agent of a session.
    #[must_use]
    pub fn session_caller_tools(&self, session: SessionId) -> Vec<CallerTools> {
        self.session_view(session).map_or_else(Vec::new, |view| self.0.callers.tools(view.root))
    }

    /// Calls a caller's tool on behalf of the agent of a session.
    #[must_use]
    pub fn call_from_session(
        &self,
        session: SessionId,
        caller_id: Option<&str>,
        tool: String,
        arguments: Any,
        options: CallOptions,
        edge: Edge,
    ) -> Answer {
        let view = self.session_view(session).ok_or_else(|| Error::not_found("session", session));
        let principal = view.and_then(|view| {
            let principal = self.0.identity.tokens.principal(view.owner, self.0.kernel.now())?;
            Ok((view.root, principal))
        });
        match principal {
            Ok((root, principal)) => self.0.callers.call(CallerCall {
                principal,
                session: root,
                from: session,
                caller_id,
                tool,
                arguments,
                options,
                edge,
            }),
            Err(error) => Answer::Now(error.into()),
        }
    }

    /// Sends a message from the agent of a session to a descendant of that session, or to a new
    /// session.
    ///
    /// # Errors
    /// `not_found` for a session that is not a descendant, `busy` past a limit.
    pub async fn session_message_from(
        &self,
        session: SessionId,
        message: String,
        to: Option<SessionId>,
    ) -> Result<SessionMessagedResponse> {
        self.0.sessions.message_from(session, message, to).await
    }

    /// Returns events of a session or a descendant to the session's agent.
    ///
    /// # Errors
    /// `not_found` for any other session.
    pub async fn session_events_from(
        &self,
        session: SessionId,
        request: SessionEventsRequest,
    ) -> Result<SessionEventsResponse> {
        if !lock(&self.0.register.table).comes_from(request.session_id, session) {
            return Err(Error::not_found("session", request.session_id));
        }
        self.0.conversations.events_of(request).await
    }

    /// Follows the events of a session and its children after an index.
    ///
    /// # Errors
    /// `not_found` when this caller may not see it.
    pub async fn follow_session(
        &self,
        credential: &Credential,
        session: SessionId,
        since: Option<u64>,
    ) -> Result<SessionFollower> {
        let principal = Arc::clone(credential.principal(self.0.kernel.now())?);
        self.0.register.visible_session(&principal, session).await?;
        let (conversations, credential) = (Arc::clone(&self.0.conversations), credential.clone());
        Ok(SessionFollower { conversations, credential, session, since, over: false })
    }
}

/// A subscriber to the events of a session.
#[derive(Debug)]
pub struct SessionFollower {
    conversations: Arc<Conversations>,
    credential: Credential,
    session: SessionId,
    since: Option<u64>,
    over: bool,
}

impl SessionFollower {
    /// Waits for the next events. `None` once the session has ended and all events were delivered,
    /// the token has ended, or the daemon stops.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<Vec<SessionEventInfo>> {
        while !self.over {
            let rung = self.conversations.bells.of(self.session).notified();
            let is_live = self.conversations.register.live(self.session).is_some();
            let page =
                self.conversations.said(self.session, self.since, FOLLOW_MAX, true).await.ok()?;
            let n_events = page.events.len();
            self.since = u64::try_from(page.last_index).ok();
            self.over = !is_live && n_events < FOLLOW_MAX;
            if n_events > 0 {
                return Some(page.events);
            }
            if self.over {
                break;
            }
            tokio::select! {
                biased;
                () = self.conversations.kernel.stopping.cancelled() => return None,
                () = self.credential.ended() => return None,
                () = rung => {}
            }
        }
        None
    }
}
