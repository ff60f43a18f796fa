//! The register of all sessions, with the running parts of the live ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use ringback_core::policy;
use ringback_core::sessions::SessionTable;
use ringback_proto::ids::SessionId;
use ringback_proto::network::NetworkPolicy;
use ringback_proto::principal::Principal;
use ringback_proto::record::{SessionRecord, SpendingRecord};
use ringback_proto::request::{SessionEventInfo, SessionModel, SessionPause};
use ringback_proto::{Error, Result};

use crate::kernel::Kernel;
use crate::sessions::{ELSEWHERE, LiveSession, SessionView};
use crate::sync::lock;

/// All sessions of this run. Every module about sessions uses it; it knows none of them.
#[derive(Debug)]
pub(crate) struct Register {
    kernel: Arc<Kernel>,
    pub(crate) table: Mutex<SessionTable<SessionEventInfo>>,
    pub(super) live: Mutex<HashMap<SessionId, Arc<LiveSession>>>,
}

/// Network, spending, pending limit question and model of a live session.
#[derive(Debug)]
pub(crate) struct SessionDetails {
    pub(crate) network: Option<NetworkPolicy>,
    pub(crate) spending: SpendingRecord,
    pub(crate) paused: Option<SessionPause>,
    pub(crate) model: Option<SessionModel>,
}

impl Register {
    pub(crate) fn new(kernel: Arc<Kernel>) -> Self {
        let table = Mutex::new(SessionTable::new(kernel.config.sessions.events_kept));
        Self { kernel, table, live: Mutex::default() }
    }

    /// Returns the running parts of a session, while it is live.
    pub(crate) fn live(&self, session: SessionId) -> Option<Arc<LiveSession>> {
        lock(&self.live).get(&session).cloned()
    }

    /// Returns a session of this run, as edges see it.
    pub(crate) fn view(&self, session: SessionId) -> Option<SessionView> {
        let (place, status) = lock(&self.table).find(session)?;
        let (id, root, project, owner) = (place.id, place.root, place.project, place.owner);
        Some(SessionView { id, root, project, owner, status })
    }

    /// Returns the network, spending and model of a session, if it is live.
    pub(crate) fn outside(&self, id: SessionId) -> Option<SessionDetails> {
        let live = self.live(id)?;
        let network = live.network().map(Arc::unwrap_or_clone);
        let (spending, paused) = (live.account.record(id), live.account.pause());
        let model = live.session_model();
        Some(SessionDetails { network, spending, paused, model })
    }

    pub(crate) fn n_live(&self) -> usize {
        lock(&self.live).len()
    }

    pub(crate) fn next_idle(&self) -> Option<u64> {
        lock(&self.table).next_idle()
    }

    /// Returns a session, if this principal may see it.
    pub(crate) async fn visible_session(
        &self,
        principal: &Principal,
        id: SessionId,
    ) -> Result<SessionRecord> {
        let (sight, tree) = (policy::sight(principal), policy::tree(principal));
        let found = self.kernel.read(move |store| match tree {
            Some(tree) if !store.comes_from(id, tree)? => Ok(None),
            Some(_) => store.session(id),
            None => {
                let found = store.session(id)?;
                Ok(found.filter(|session| sight.includes(session.owner, Some(session.project))))
            }
        });
        found.await?.ok_or_else(|| Error::not_found("session", id))
    }

    /// Returns whether the agent of a live session runs elsewhere.
    pub(super) fn is_elsewhere(&self, session: SessionId) -> bool {
        self.live(session).is_some_and(|live| live.chosen.name == ELSEWHERE)
    }
}
