//! All MCP sessions: bounded, visible only to their owner, ended when unused.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};

use ringback_mcp_wire::Version;
use ringback_mcp_wire::outgoing::{self, ServerNotification};
use ringback_sync::lock;
use tokio::time::Instant;
use uuid::Uuid;

use super::session::{ClientProfile, Session};
use crate::config::SessionLimits;
use crate::peer::{Owner, Peer};
use crate::state::State;

/// MCP sessions at the URL of one agent session: an agent needs one, and some lose theirs.
const PER_AGENT_MAX: usize = 16;

/// All MCP sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    limits: SessionLimits,
    by_id: Mutex<HashMap<String, Arc<Session>>>,
}

impl Sessions {
    pub(crate) fn new(limits: SessionLimits) -> Self {
        Self { limits, by_id: Mutex::default() }
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }

    /// Opens an MCP session. A principal at its limit loses the one it has not used for the longest
    /// time; `None` if all of its own are in use, or if the others are at the total limit.
    pub(super) fn open(
        &self,
        peer: Peer,
        version: Version,
        opened: ClientProfile,
    ) -> Option<Arc<Session>> {
        let owner = peer.owner();
        let mut by_id = self.lock();
        let n_own = by_id.values().filter(|session| session.peer.owner() == owner).count();
        let own_max = match owner {
            Owner::Principal(_) => self.limits.per_principal_max,
            Owner::Agent(_) => PER_AGENT_MAX,
        };
        if n_own >= own_max || by_id.len() >= self.limits.max {
            let oldest = by_id
                .values()
                .filter(|session| session.peer.owner() == owner && session.is_quiet())
                .min_by_key(|session| session.seen())
                .map(|session| session.id().to_owned())?;
            end(by_id.remove(&oldest));
        }
        // 122 random bits: it cannot be guessed, and would be of no use to another principal.
        let id = Uuid::new_v4().simple().to_string();
        let session = Arc::new(Session::new(id.clone(), peer, version, opened));
        by_id.insert(id, Arc::clone(&session));
        Some(session)
    }

    /// Returns the MCP session with an id, if it belongs to the caller.
    pub(super) fn find(&self, id: &str, owner: Owner) -> Option<Arc<Session>> {
        let session = self.lock().get(id).cloned()?;
        (session.peer.owner() == owner).then_some(())?;
        session.touch();
        Some(session)
    }

    /// Ends an MCP session.
    pub(super) fn close(&self, session: &Session) {
        end(self.lock().remove(session.id()));
    }

    /// Ends unused MCP sessions.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let expired: Vec<_> = {
            let mut by_id = self.lock();
            by_id.extract_if(|_, session| session.is_expired(now, &self.limits)).collect()
        };
        for (_, session) in expired {
            end(Some(session));
        }
    }

    /// Ends all of them.
    pub(crate) fn end_all(&self) {
        let all: Vec<_> = self.lock().drain().collect();
        for (_, session) in all {
            end(Some(session));
        }
    }

    /// Notifies the MCP sessions whose tool list has changed. A client that has not read the last
    /// notification gets it once.
    pub(crate) fn tell_of_change(&self, state: &State) {
        let told =
            outgoing::notification(&ServerNotification::ToolsListChanged { subscription: None });
        let sessions: Vec<_> = self.lock().values().cloned().collect();
        let mut by_owner = HashMap::new();
        for session in sessions {
            let peer = &session.peer;
            let tools =
                *by_owner.entry(peer.owner()).or_insert_with(|| peer.fingerprint(&state.broker));
            if session.sees(tools) {
                session.standalone.push_once(&told);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Session>>> {
        lock(&self.by_id)
    }
}

fn end(session: Option<Arc<Session>>) {
    if let Some(session) = session {
        session.ended.cancel();
        session.standalone.finish();
    }
}
