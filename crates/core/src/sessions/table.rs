//! The table of sessions, which every state change goes through.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::SessionState;
use ringback_proto::{Error, ErrorKind, Result};

use super::ring::Ring;
use super::{EventLimits, EventPage, NewSession, SessionLimits};
use crate::time::{MonoMs, Now};

/// The sessions of this run.
#[derive(Debug)]
pub struct SessionTable<E> {
    sessions: HashMap<SessionId, Session<E>>,
    idle: BTreeSet<(MonoMs, SessionId)>,
    leaving: HashSet<DeletionTarget>,
    kept: EventLimits,
    /// Bytes of the events of all sessions, counted in each ring that holds them.
    n_event_bytes: usize,
}

/// Something that is being deleted: no session can start in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeletionTarget {
    /// A project with all its workspaces.
    Project(ProjectId),
    /// One workspace.
    Workspace(WorkspaceId),
}

#[derive(Debug)]
struct Session<E> {
    place: SessionPlace,
    limits: SessionLimits,
    state: SessionState,
    /// Messages that its agent has not finished.
    n_turns: u32,
    /// The number of its descendants, if it is a root, including itself.
    n_agents: u32,
    children: Vec<SessionId>,
    ring: Ring<E>,
    idle_at: Option<MonoMs>,
}

/// The place of a session in its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionPlace {
    /// Its id.
    pub id: SessionId,
    /// The root of its tree.
    pub root: SessionId,
    /// The session whose agent started it.
    pub parent: Option<SessionId>,
    /// Its project.
    pub project: ProjectId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its owner.
    pub owner: PrincipalId,
    /// The number of its ancestors.
    pub depth: u32,
}

impl<E> SessionTable<E> {
    /// Makes an empty table with limits on kept events.
    #[must_use]
    pub fn new(kept: EventLimits) -> Self {
        Self {
            sessions: HashMap::new(),
            idle: BTreeSet::new(),
            leaving: HashSet::new(),
            kept,
            n_event_bytes: 0,
        }
    }

    /// Adds a new or resumed session, if the limits allow it.
    ///
    /// # Errors
    /// `not_found` for a parent that is not live, `busy` past a limit, which it names, `conflict`
    /// where its project or workspace is being deleted.
    pub fn start(&mut self, new: NewSession) -> Result<SessionPlace> {
        let NewSession { id, project, workspace, owner, parent, limits, next_index } = new;
        self.check_stays(DeletionTarget::Project(project))?;
        self.check_stays(DeletionTarget::Workspace(workspace))?;
        let (root, depth, owner) = match parent {
            None => (id, 0, owner),
            Some(parent) => {
                let of = self.live(parent)?.place;
                (of.root, of.depth + 1, of.owner)
            }
        };
        // A tree may extend into other projects, but gets no further that way.
        let tree = self.sessions.get(&root).map_or(limits, |root| root.limits);
        let depth_max = limits.depth_max.min(tree.depth_max);
        if depth > depth_max {
            return Err(past("agents may start sessions at most", depth_max, "deep", "max_depth"));
        }
        let before = self.sessions.get(&id).map(|before| before.state);
        if before.is_some_and(SessionState::is_live) {
            let message = format!("session {id} is already live");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let agents_max = limits.agents_max.min(tree.agents_max);
        if before.is_none() && self.n_agents(root) >= agents_max {
            return Err(past(
                "a session and its descendants may start at most",
                agents_max,
                "agents",
                "max_agents",
            ));
        }
        if self.n_live(project) >= limits.live_max as usize {
            return Err(past(
                "a project may have at most",
                limits.live_max,
                "live sessions",
                "max_sessions",
            ));
        }
        let place = SessionPlace { id, root, parent, project, workspace, owner, depth };
        let session = self.sessions.entry(id).or_insert_with(|| Session {
            place,
            limits,
            state: SessionState::Starting,
            n_turns: 0,
            n_agents: 1,
            children: Vec::new(),
            ring: Ring::new(next_index, self.kept),
            idle_at: None,
        });
        session.state = SessionState::Starting;
        if let (Some(parent), None) = (parent, before) {
            self.sessions.entry(parent).and_modify(|parent| parent.children.push(id));
            self.sessions.entry(root).and_modify(|root| root.n_agents += 1);
        }
        Ok(place)
    }

    fn live(&self, id: SessionId) -> Result<&Session<E>> {
        self.sessions
            .get(&id)
            .filter(|session| session.state.is_live())
            .ok_or_else(|| Error::not_found("session", id))
    }

    /// Returns the number of a project's sessions that have not ended.
    #[must_use]
    pub fn n_live(&self, project: ProjectId) -> usize {
        let live =
            |session: &&Session<E>| session.place.project == project && session.state.is_live();
        self.sessions.values().filter(live).count()
    }

    /// Returns the number of sessions in a root's tree, itself included.
    #[must_use]
    pub fn n_agents(&self, root: SessionId) -> u32 {
        self.sessions.get(&root).map_or(0, |root| root.n_agents)
    }

    /// Returns the place and state of a session, if it belongs to this run.
    #[must_use]
    pub fn find(&self, id: SessionId) -> Option<(SessionPlace, SessionState)> {
        self.sessions.get(&id).map(|session| (session.place, session.state))
    }

    /// Returns the newest live session of this owner in a workspace, to which a message without a
    /// session goes.
    #[must_use]
    pub fn live_in(&self, owner: PrincipalId, workspace: WorkspaceId) -> Option<SessionId> {
        let here = |session: &&Session<E>| {
            let place = &session.place;
            place.owner == owner
                && place.workspace == workspace
                && place.parent.is_none()
                && session.state.is_live()
        };
        self.sessions.values().filter(here).map(|session| session.place.id).max()
    }

    /// Returns the newest live descendant in a workspace, to which an agent's message without a
    /// session goes.
    #[must_use]
    pub fn live_below(&self, ancestor: SessionId, workspace: WorkspaceId) -> Option<SessionId> {
        let here = |session: &&Session<E>| {
            let place = &session.place;
            place.workspace == workspace
                && place.id != ancestor
                && session.state.is_live()
                && self.comes_from(place.id, ancestor)
        };
        self.sessions.values().filter(here).map(|session| session.place.id).max()
    }

    /// Returns the owners of all live sessions.
    #[must_use]
    pub fn owners(&self) -> HashSet<PrincipalId> {
        let live = |session: &&Session<E>| session.state.is_live();
        self.sessions.values().filter(live).map(|session| session.place.owner).collect()
    }

    /// Returns the live sessions that a principal started itself.
    #[must_use]
    pub fn roots_of(&self, owner: PrincipalId) -> Vec<SessionId> {
        let its = |session: &&Session<E>| {
            let place = &session.place;
            place.owner == owner && place.parent.is_none() && session.state.is_live()
        };
        self.sessions.values().filter(its).map(|session| session.place.id).collect()
    }

    /// Returns whether a session that has not ended uses the workspace.
    #[must_use]
    pub fn is_used(&self, workspace: WorkspaceId) -> bool {
        self.sessions
            .values()
            .any(|session| session.place.workspace == workspace && session.state.is_live())
    }

    /// Marks something as being deleted: no session starts in it until [`Self::stay`].
    ///
    /// # Errors
    /// `conflict` when a session uses it, or it is already being deleted.
    pub fn leave(&mut self, what: DeletionTarget) -> Result<()> {
        self.check_stays(what)?;
        let (name, n_live) = match what {
            DeletionTarget::Project(id) => (id.to_string(), self.n_live(id)),
            DeletionTarget::Workspace(id) => (id.to_string(), usize::from(self.is_used(id))),
        };
        if n_live > 0 {
            let message = match what {
                DeletionTarget::Project(_) => {
                    format!("{name} has {n_live} live sessions; end them first")
                }
                DeletionTarget::Workspace(_) => format!("a live session uses {name}; end it first"),
            };
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        self.leaving.insert(what);
        Ok(())
    }

    /// Removes the mark, after the deletion or instead of it.
    pub fn stay(&mut self, what: DeletionTarget) {
        self.leaving.remove(&what);
    }

    /// Checks that something is not being deleted.
    ///
    /// # Errors
    /// `conflict` when it is.
    pub fn check_stays(&self, what: DeletionTarget) -> Result<()> {
        if !self.leaving.contains(&what) {
            return Ok(());
        }
        let name = match what {
            DeletionTarget::Project(id) => id.to_string(),
            DeletionTarget::Workspace(id) => id.to_string(),
        };
        Err(Error::new(ErrorKind::Conflict, format!("{name} is being deleted")))
    }

    /// Counts a message to the agent of a session, which runs until the agent has finished it.
    ///
    /// # Errors
    /// `not_found` when the session is not live.
    pub fn begin_turn(&mut self, id: SessionId) -> Result<()> {
        self.live(id)?;
        if let Some(session) = self.sessions.get_mut(&id) {
            session.n_turns += 1;
            session.state = SessionState::Running;
            if let Some(at) = session.idle_at.take() {
                self.idle.remove(&(at, id));
            }
        }
        Ok(())
    }

    /// Notes that the agent has finished a message. Returns the new state of the session, if it
    /// changed.
    pub fn end_turn(&mut self, now: Now, id: SessionId) -> Option<SessionState> {
        let session = self.sessions.get_mut(&id).filter(|session| session.state.is_live())?;
        session.n_turns = session.n_turns.saturating_sub(1);
        (session.n_turns == 0).then(|| self.rest(now, id)).flatten()
    }

    /// Marks the agent as idle, whatever messages it was given before.
    pub fn rest(&mut self, now: Now, id: SessionId) -> Option<SessionState> {
        let session = self.sessions.get_mut(&id).filter(|session| session.state.is_live())?;
        if session.state == SessionState::Idle {
            return None;
        }
        session.n_turns = 0;
        session.state = SessionState::Idle;
        let at = now.mono.saturating_add(session.limits.idle_ms);
        session.idle_at = Some(at);
        self.idle.insert((at, id));
        Some(SessionState::Idle)
    }

    /// Restarts the idle time of a session whose agent rests, because it is in use.
    pub fn touch(&mut self, now: Now, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(before) = session.idle_at else { return };
        let at = now.mono.saturating_add(session.limits.idle_ms);
        session.idle_at = Some(at);
        self.idle.remove(&(before, id));
        self.idle.insert((at, id));
    }

    /// Ends a session and its descendants, children first. Returns those that ended now.
    pub fn end(&mut self, id: SessionId, state: SessionState) -> Vec<SessionId> {
        let mut ended = Vec::new();
        self.end_tree(id, state, &mut ended);
        ended
    }

    fn end_tree(&mut self, id: SessionId, state: SessionState, ended: &mut Vec<SessionId>) {
        let Some(session) = self.sessions.get_mut(&id).filter(|session| session.state.is_live())
        else {
            return;
        };
        session.state = state;
        session.n_turns = 0;
        if let Some(at) = session.idle_at.take() {
            self.idle.remove(&(at, id));
        }
        for child in session.children.clone() {
            self.end_tree(child, state, ended);
        }
        ended.push(id);
    }

    /// Returns every session that has not ended.
    #[must_use]
    pub fn all_live(&self) -> Vec<SessionId> {
        let live = |session: &&Session<E>| session.state.is_live();
        let mut ids: Vec<_> =
            self.sessions.values().filter(live).map(|session| session.place.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Forgets a session that has ended; its record and its journal belong to the store.
    pub fn forget(&mut self, id: SessionId) {
        if self.sessions.get(&id).is_some_and(|session| !session.state.is_live())
            && let Some(session) = self.sessions.remove(&id)
        {
            self.n_event_bytes -= session.ring.n_bytes();
        }
    }

    /// Limits the bytes of events that an ended session keeps in memory.
    pub fn release(&mut self, id: SessionId, bytes_max: usize) {
        let ended = self.sessions.get_mut(&id).filter(|session| !session.state.is_live());
        if let Some(session) = ended {
            let before = session.ring.n_bytes();
            session.ring.shrink(bytes_max);
            self.n_event_bytes -= before - session.ring.n_bytes();
        }
    }

    /// Returns the bytes of all sessions' events in memory.
    #[must_use]
    pub const fn n_event_bytes(&self) -> usize {
        self.n_event_bytes
    }

    /// Adds an event of the given size to a session's own ring and those of its ancestors. Returns
    /// the rings and its indexes in them, the session's own first.
    pub fn say(&mut self, id: SessionId, event: &Arc<E>, n_bytes: usize) -> Vec<(SessionId, u64)> {
        let mut heard = Vec::new();
        let mut next = Some(id);
        while let Some(ring_of) = next {
            let Some(session) = self.sessions.get_mut(&ring_of) else { break };
            let before = session.ring.n_bytes();
            heard.push((ring_of, session.ring.push(id, Arc::clone(event), n_bytes)));
            self.n_event_bytes = self.n_event_bytes - before + session.ring.n_bytes();
            next = session.place.parent;
        }
        if self.n_event_bytes > self.kept.total_bytes_max {
            self.drop_events();
        }
        heard
    }

    /// Drops the oldest events of the session that has the most, until all sessions together are
    /// under the limit: by an eighth, so that this does not run for every event.
    fn drop_events(&mut self) {
        let enough = self.kept.total_bytes_max - self.kept.total_bytes_max / 8;
        while self.n_event_bytes > enough {
            let rings = self.sessions.values_mut().map(|session| &mut session.ring);
            let Some(largest) = rings.max_by_key(|ring| ring.n_bytes()) else { return };
            // A part of what it has; otherwise all sessions would be examined for each event.
            let less = largest.n_bytes() - largest.n_bytes() / 8;
            while largest.n_bytes() > less {
                let Some(n_bytes) = largest.drop_oldest() else { return };
                self.n_event_bytes -= n_bytes;
            }
        }
    }

    /// Returns up to `limit` events of a session after an index, optionally including its
    /// children's. `None` if they are older than this table's knowledge of the session, or were
    /// released.
    #[must_use]
    pub fn said(
        &self,
        id: SessionId,
        since: Option<u64>,
        limit: usize,
        with_children: bool,
    ) -> Option<EventPage<E>> {
        let session = self.sessions.get(&id).filter(|session| session.ring.has_after(since))?;
        Some(session.ring.after(since, limit, (!with_children).then_some(id)))
    }

    /// Returns the index of a session's last event.
    #[must_use]
    pub fn last_index(&self, id: SessionId) -> Option<u64> {
        self.sessions.get(&id).and_then(|session| session.ring.next_index().checked_sub(1))
    }

    /// Returns whether a session is another one, or its descendant.
    #[must_use]
    pub fn comes_from(&self, id: SessionId, ancestor: SessionId) -> bool {
        let mut next = Some(id);
        while let Some(session) = next {
            if session == ancestor {
                return true;
            }
            next = self.sessions.get(&session).and_then(|session| session.place.parent);
        }
        false
    }

    /// Returns the sessions that have been idle for too long.
    #[must_use]
    pub fn idle_too_long(&self, now: Now) -> Vec<SessionId> {
        self.idle.iter().take_while(|(at, _)| *at <= now.mono).map(|(_, id)| *id).collect()
    }

    /// Returns when to call [`Self::idle_too_long`] next.
    #[must_use]
    pub fn next_idle(&self) -> Option<MonoMs> {
        self.idle.first().map(|(at, _)| *at)
    }
}

fn past(what: &str, limit: u32, of: &str, key: &str) -> Error {
    Error::new(
        ErrorKind::Busy,
        format!(
            "{what} {limit} {of}; list them with `ringback session list` and end one with \
             `ringback session end ID`, or raise `{key}` of the project (`sessions.{key}` for all)"
        ),
    )
}
