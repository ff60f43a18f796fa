//! Ending sessions: on request, after too long idle, with the session that started them, when the
//! daemon stops, or after it crashed.

use std::sync::Arc;

use ringback_proto::Result;
use ringback_proto::ids::{SessionId, TokenId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{Record, SessionRecord, SessionState};
use ringback_proto::request::SessionEventInfo;

use crate::sessions::lifecycle::keeper::Order;
use crate::sessions::{LiveSession, Sessions};
use crate::sync::lock;
use crate::workspaces::remove;

impl Sessions {
    /// Ends a session and the sessions it started: agents, sockets, keys and offered tools. When it
    /// returns, none of their processes is left. It does not wait for disk space.
    pub(crate) async fn end_session(
        self: &Arc<Self>,
        session: SessionId,
        state: SessionState,
        why: &str,
    ) -> Result<()> {
        let ended = lock(&self.register.table).end(session, state);
        self.end_these(ended, state, why).await
    }

    /// Ends the sessions that the table marked as ended.
    async fn end_these(
        self: &Arc<Self>,
        ended: Vec<SessionId>,
        state: SessionState,
        why: &str,
    ) -> Result<()> {
        let mut stored = Ok(());
        for id in ended {
            let live = self.register.live(id);
            let at = self.kernel.now().unix;
            let mut records = vec![Record::SessionChanged { id, state, at }];
            if let Some(live) = live {
                let key = self.close(id, &live).await;
                records.extend(key.map(|id| Record::TokenRevoked { id, at }));
            }
            // If one end cannot be stored, the others still end.
            stored = self.kernel.commit_or_later(records).await.and(stored);
            self.conversations.say_state(id, state, Some(why.to_owned()));
            // Subscribers see the end only now, after the last event.
            lock(&self.register.live).remove(&id);
            self.disk.forget_stored(id);
            self.conversations.release_events(id);
            self.conversations.bells.of(id).notify_waiters();
        }
        stored
    }

    /// Ends the parts of a session. Returns the key that was revoked.
    async fn close(self: &Arc<Self>, id: SessionId, live: &LiveSession) -> Option<TokenId> {
        // Close the sockets first, then revoke the key, then end the agent, so that its last
        // attempts have no effect.
        drop(lock(&live.doors).take());
        live.bearer.end();
        live.account.end(id);
        let key = live.key.as_ref().map(|key| key.id);
        if let Some(key) = key {
            self.identity.revoke_key(key);
        }
        self.offers.end_callers(id);
        let mut over = live.over.clone();
        drop(live.orders.send(Order::End).await);
        if over.wait_for(|over| *over).await.is_err() {
            tracing::error!(session = %id, "a session's supervisor ended unexpectedly");
        }
        let dir = live.dir.clone();
        let removed = self.kernel.blocking(move || remove(&dir));
        if let Err(error) = removed.await {
            tracing::warn!(session = %id, %error, "cannot remove a session's directory");
        }
        key
    }

    /// Ends the sessions that were idle for too long, each in its own task.
    pub(crate) fn end_idle_sessions(self: &Arc<Self>) {
        let idle = lock(&self.register.table).idle_too_long(self.kernel.now());
        for session in idle {
            let state = SessionState::Ended;
            let ended = lock(&self.register.table).end(session, state);
            let sessions = Arc::clone(self);
            drop(self.kernel.tasks.spawn(async move {
                let why = "idle for too long";
                if let Err(error) = sessions.end_these(ended, state, why).await {
                    tracing::error!(%session, %error, "cannot store the end of an idle session");
                }
            }));
        }
    }

    /// Ends all sessions of a principal concurrently: its token is no longer valid.
    pub(crate) async fn end_sessions_of(self: &Arc<Self>, owner: PrincipalId, why: &'static str) {
        let roots = lock(&self.register.table).roots_of(owner);
        let ending: Vec<_> = roots
            .into_iter()
            .map(|session| {
                let sessions = Arc::clone(self);
                self.kernel.tasks.spawn(async move {
                    let ended = sessions.end_session(session, SessionState::Ended, why).await;
                    if let Err(error) = ended {
                        tracing::error!(%session, %error, "cannot end a session");
                    }
                })
            })
            .collect();
        for one in ending {
            if let Err(error) = one.await {
                tracing::error!(%error, "the end of a session was interrupted");
            }
        }
    }

    /// Interrupts all sessions because the daemon stops. They can be continued later.
    pub(crate) async fn interrupt_sessions(self: &Arc<Self>) {
        let live = lock(&self.register.table).all_live();
        for session in live {
            let why = "the daemon stopped";
            if let Err(error) = self.end_session(session, SessionState::Interrupted, why).await {
                tracing::error!(%session, %error, "cannot interrupt a session");
            }
        }
    }

    /// Marks the live sessions of an earlier run as interrupted: their agents died with it.
    pub(crate) async fn restore_sessions(self: &Arc<Self>, left: Vec<SessionRecord>) -> Result<()> {
        let now = self.kernel.now();
        let at = now.unix;
        for record in left {
            let (id, state) = (record.id, SessionState::Interrupted);
            let mut records = vec![Record::SessionChanged { id, state, at }];
            if let Some(key) = record.key
                && let Some(token) = self.identity.tokens.find(key)
            {
                self.identity.tokens.revoke(&token, now);
                records.push(Record::TokenRevoked { id: key, at });
            }
            self.kernel.commit_or_later(records).await?;
            record.key.into_iter().for_each(|key| self.identity.tokens.forget(key));
            // An unreadable journal must not keep the daemon from starting.
            let index = match self.conversations.next_journaled(id) {
                Ok(index) => index,
                Err(error) => {
                    tracing::error!(session = %id, %error, "cannot journal an interruption");
                    continue;
                }
            };
            let text =
                "the daemon was restarted; send a message to continue the session".to_owned();
            let event = SessionEventInfo {
                session_id: id,
                at_ms: at,
                status: Some(state),
                text: Some(text),
                ..crate::sessions::conversation::events::event("status")
            };
            self.conversations.journal(id, index, &event);
        }
        Ok(())
    }
}
