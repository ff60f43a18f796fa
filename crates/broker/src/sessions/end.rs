//! How sessions end: asked to, idle for too long, with the session that started them, with the
//! daemon, or with a crash of it.

use std::sync::Arc;

use ringback_proto::Result;
use ringback_proto::ids::SessionId;
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{Record, SessionRecord, SessionState};
use ringback_proto::request::SessionEventInfo;

use super::Live;
use super::keeper::Order;
use crate::shared::Shared;
use crate::sync::lock;

impl Shared {
    /// Ends a session and all it started: their agents, sockets, keys and the tools offered to them.
    /// When it returns, no process of theirs is left.
    pub(crate) async fn end_session(
        self: &Arc<Self>,
        session: SessionId,
        state: SessionState,
        why: &str,
    ) -> Result<()> {
        let ended = lock(&self.sessions.table).end(session, state);
        for id in ended {
            if let Some(live) = self.sessions.live(id) {
                self.close(id, &live).await;
            }
            let at = self.now().unix;
            let changed = Record::SessionChanged { id, state, at };
            self.commit_for_sure(&[changed]).await?;
            self.say_state(id, state, Some(why.to_owned()));
            // Only now is it over for whoever follows it: its last word was said.
            lock(&self.sessions.live).remove(&id);
            self.sessions.bells.of(id).notify_waiters();
        }
        Ok(())
    }

    async fn close(self: &Arc<Self>, id: SessionId, live: &Live) {
        // First nobody is behind the sockets, then the key is dead, then the agent goes: what it
        // still tries has no effect.
        drop(lock(&live.doors).take());
        live.bearer.end();
        live.account.end(id);
        if let Some(key) = &live.key {
            self.revoke_key(key.id).await;
        }
        self.end_callers(id);
        let mut over = live.over.clone();
        drop(live.orders.send(Order::End).await);
        if over.wait_for(|over| *over).await.is_err() {
            tracing::error!(session = %id, "the keeper of a session ended by itself");
        }
        let dir = live.dir.clone();
        let removed = self.blocking(move || {
            std::fs::remove_dir_all(&dir).map_err(|error| {
                ringback_proto::Error::internal("session", "a directory is left").with_source(error)
            })
        });
        if let Err(error) = removed.await {
            tracing::warn!(session = %id, %error, "the directory of a session is left");
        }
    }

    async fn revoke_key(&self, id: ringback_proto::ids::TokenId) {
        let now = self.now();
        let at = now.unix;
        if let Some(token) = self.tokens.find(id) {
            self.tokens.revoke(&token, now);
        }
        if let Err(error) = self.commit_for_sure(&[Record::TokenRevoked { id, at }]).await {
            tracing::error!(%id, %error, "the end of a session's key could not be stored");
        }
        self.tokens.forget(id);
    }

    /// Ends the sessions that have had nothing to do for too long.
    pub(crate) async fn end_idle_sessions(self: &Arc<Self>) {
        let idle = lock(&self.sessions.table).idle_too_long(self.now());
        for session in idle {
            let why = "it had nothing to do for too long";
            if let Err(error) = self.end_session(session, SessionState::Ended, why).await {
                tracing::error!(%session, %error, "an idle session could not be ended");
            }
        }
    }

    /// Ends the sessions that a principal started, all at once: its token is not valid any more.
    pub(crate) async fn end_sessions_of(self: &Arc<Self>, owner: PrincipalId, why: &'static str) {
        let roots = lock(&self.sessions.table).roots_of(owner);
        let ending: Vec<_> = roots
            .into_iter()
            .map(|session| {
                let shared = Arc::clone(self);
                self.tasks.spawn(async move {
                    let ended = shared.end_session(session, SessionState::Ended, why).await;
                    if let Err(error) = ended {
                        tracing::error!(%session, %error, "a session could not be ended");
                    }
                })
            })
            .collect();
        for one in ending {
            if let Err(error) = one.await {
                tracing::error!(%error, "the end of a session broke off");
            }
        }
    }

    /// The daemon stops: agents end with it, and their sessions can be taken up again.
    pub(crate) async fn interrupt_sessions(self: &Arc<Self>) {
        let live = lock(&self.sessions.table).all_live();
        for session in live {
            let why = "the daemon stopped";
            if let Err(error) = self.end_session(session, SessionState::Interrupted, why).await {
                tracing::error!(%session, %error, "a session could not be interrupted");
            }
        }
    }

    /// What an earlier run left under way is interrupted: its agents died with it.
    pub(crate) async fn restore_sessions(&self, left: Vec<SessionRecord>) -> Result<()> {
        let now = self.now();
        let at = now.unix;
        for record in left {
            let (id, state) = (record.id, SessionState::Interrupted);
            let mut records = vec![Record::SessionChanged { id, state, at }];
            if let Some(key) = record.key
                && let Some(token) = self.tokens.find(key)
            {
                self.tokens.revoke(&token, now);
                records.push(Record::TokenRevoked { id: key, at });
            }
            self.commit(records).await?;
            record.key.into_iter().for_each(|key| self.tokens.forget(key));
            let index = self.next_journaled(id)?;
            let text = "the daemon was restarted; a message continues the session".to_owned();
            let event = SessionEventInfo {
                session_id: id,
                at_ms: at,
                status: Some(state),
                text: Some(text),
                ..super::say::event("status")
            };
            self.journal(id, index, &event);
        }
        Ok(())
    }
}
