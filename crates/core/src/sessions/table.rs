//! The table of sessions: every change of state goes through it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::SessionState;
use ringback_proto::{Error, ErrorKind, Result};

use super::ring::Ring;
use super::{EventPage, KeptEvents, NewSession, SessionLimits};
use crate::time::{MonoMs, Now};

/// The sessions of this run.
#[derive(Debug)]
pub struct SessionTable<E> {
    sessions: HashMap<SessionId, Session<E>>,
    idle: BTreeSet<(MonoMs, SessionId)>,
    leaving: HashSet<Leaving>,
    kept: KeptEvents,
    /// Bytes of the events of all sessions, counted in each ring that has them.
    n_event_bytes: usize,
}

/// Something that is being deleted: no session starts in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Leaving {
    /// A project with all its workspaces.
    Project(ProjectId),
    /// One workspace.
    Workspace(WorkspaceId),
}

#[derive(Debug)]
struct Session<E> {
    place: Where,
    limits: SessionLimits,
    state: SessionState,
    /// Messages that its agent has not done with.
    n_turns: u32,
    /// Sessions that come from it, if it is a root; it counts itself.
    n_agents: u32,
    children: Vec<SessionId>,
    ring: Ring<E>,
    idle_at: Option<MonoMs>,
}

/// Where a session stands among others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Where {
    /// Its id.
    pub id: SessionId,
    /// The first of its tree.
    pub root: SessionId,
    /// The session whose agent started it.
    pub parent: Option<SessionId>,
    /// Its project.
    pub project: ProjectId,
    /// Where it works.
    pub workspace: WorkspaceId,
    /// Whose it is.
    pub owner: PrincipalId,
    /// How many started one another before it.
    pub depth: u32,
}

impl<E> SessionTable<E> {
    /// An empty table; so much of what sessions say is kept.
    #[must_use]
    pub fn new(kept: KeptEvents) -> Self {
        Self {
            sessions: HashMap::new(),
            idle: BTreeSet::new(),
            leaving: HashSet::new(),
            kept,
            n_event_bytes: 0,
        }
    }

    /// Takes a session in, new or to go on, if the limits let it.
    ///
    /// # Errors
    /// `not_found` for a parent that is not live, `busy` past a limit, with the limit, `conflict` where
    /// its project or workspace is being deleted.
    pub fn start(&mut self, new: NewSession) -> Result<Where> {
        let NewSession { id, project, workspace, owner, parent, limits, next_index } = new;
        self.check_stays(Leaving::Project(project))?;
        self.check_stays(Leaving::Workspace(workspace))?;
        let (root, depth, owner) = match parent {
            None => (id, 0, owner),
            Some(parent) => {
                let of = self.live(parent)?.place;
                (of.root, of.depth + 1, of.owner)
            }
        };
        // A tree may reach into other projects, and gets no further by that.
        let tree = self.sessions.get(&root).map_or(limits, |root| root.limits);
        let depth_max = limits.depth_max.min(tree.depth_max);
        if depth > depth_max {
            return Err(past("sessions may start others only", depth_max, "deep", "max_depth"));
        }
        let before = self.sessions.get(&id).map(|before| before.state);
        if before.is_some_and(SessionState::is_live) {
            let message = format!("session {id} is under way already");
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let agents_max = limits.agents_max.min(tree.agents_max);
        if before.is_none() && self.n_agents(root) >= agents_max {
            return Err(past("one session may start", agents_max, "agents", "max_agents"));
        }
        if self.n_live(project) >= limits.live_max as usize {
            return Err(past(
                "a project may have",
                limits.live_max,
                "sessions that have not ended",
                "max_sessions",
            ));
        }
        let place = Where { id, root, parent, project, workspace, owner, depth };
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

    /// How many sessions of a project have not ended.
    #[must_use]
    pub fn n_live(&self, project: ProjectId) -> usize {
        let live =
            |session: &&Session<E>| session.place.project == project && session.state.is_live();
        self.sessions.values().filter(live).count()
    }

    /// How many sessions come from a root, itself included.
    #[must_use]
    pub fn n_agents(&self, root: SessionId) -> u32 {
        self.sessions.get(&root).map_or(0, |root| root.n_agents)
    }

    /// Where a session stands and how, if it is of this run.
    #[must_use]
    pub fn find(&self, id: SessionId) -> Option<(Where, SessionState)> {
        self.sessions.get(&id).map(|session| (session.place, session.state))
    }

    /// The session of this owner that is live in a workspace, the newest if there are several: a
    /// message without a session goes to it.
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

    /// The newest session that comes from this one and is live in a workspace: what its agent says
    /// without naming a session goes to it.
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

    /// Who started the sessions that are live.
    #[must_use]
    pub fn owners(&self) -> HashSet<PrincipalId> {
        let live = |session: &&Session<E>| session.state.is_live();
        self.sessions.values().filter(live).map(|session| session.place.owner).collect()
    }

    /// The live sessions that a principal started itself.
    #[must_use]
    pub fn roots_of(&self, owner: PrincipalId) -> Vec<SessionId> {
        let its = |session: &&Session<E>| {
            let place = &session.place;
            place.owner == owner && place.parent.is_none() && session.state.is_live()
        };
        self.sessions.values().filter(its).map(|session| session.place.id).collect()
    }

    /// Whether a session that has not ended works there.
    #[must_use]
    pub fn is_used(&self, workspace: WorkspaceId) -> bool {
        self.sessions
            .values()
            .any(|session| session.place.workspace == workspace && session.state.is_live())
    }

    /// Something is to be deleted: no session starts in it until [`Self::stay`].
    ///
    /// # Errors
    /// `conflict` when a session works in it, or it is being deleted already.
    pub fn leave(&mut self, what: Leaving) -> Result<()> {
        self.check_stays(what)?;
        let (name, n_live) = match what {
            Leaving::Project(id) => (id.to_string(), self.n_live(id)),
            Leaving::Workspace(id) => (id.to_string(), usize::from(self.is_used(id))),
        };
        if n_live > 0 {
            let message = match what {
                Leaving::Project(_) => {
                    format!("{name} has {n_live} sessions that have not ended; end them first")
                }
                Leaving::Workspace(_) => format!("a session works in {name}; end it first"),
            };
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        self.leaving.insert(what);
        Ok(())
    }

    /// It is deleted, or was not after all.
    pub fn stay(&mut self, what: Leaving) {
        self.leaving.remove(&what);
    }

    /// Whether something is not being deleted.
    ///
    /// # Errors
    /// `conflict` when it is.
    pub fn check_stays(&self, what: Leaving) -> Result<()> {
        if !self.leaving.contains(&what) {
            return Ok(());
        }
        let name = match what {
            Leaving::Project(id) => id.to_string(),
            Leaving::Workspace(id) => id.to_string(),
        };
        Err(Error::new(ErrorKind::Conflict, format!("{name} is being deleted")))
    }

    /// A message goes to the agent of a session: it runs until it is done with it.
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

    /// The agent is done with a message. How the session stands now, if that changed.
    pub fn end_turn(&mut self, now: Now, id: SessionId) -> Option<SessionState> {
        let session = self.sessions.get_mut(&id).filter(|session| session.state.is_live())?;
        session.n_turns = session.n_turns.saturating_sub(1);
        (session.n_turns == 0).then(|| self.rest(now, id)).flatten()
    }

    /// The agent has nothing to do, whatever it was told before.
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

    /// Somebody uses a session whose agent rests: it is not idle from now on only.
    pub fn touch(&mut self, now: Now, id: SessionId) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let Some(before) = session.idle_at else { return };
        let at = now.mono.saturating_add(session.limits.idle_ms);
        session.idle_at = Some(at);
        self.idle.remove(&(before, id));
        self.idle.insert((at, id));
    }

    /// Ends a session and all that come from it, children first. Those that ended now.
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

    /// Every session that has not ended.
    #[must_use]
    pub fn all_live(&self) -> Vec<SessionId> {
        let live = |session: &&Session<E>| session.state.is_live();
        let mut ids: Vec<_> =
            self.sessions.values().filter(live).map(|session| session.place.id).collect();
        ids.sort_unstable();
        ids
    }

    /// Forgets a session that has ended; its record and its journal are the store's.
    pub fn forget(&mut self, id: SessionId) {
        if self.sessions.get(&id).is_some_and(|session| !session.state.is_live())
            && let Some(session) = self.sessions.remove(&id)
        {
            self.n_event_bytes -= session.ring.n_bytes();
        }
    }

    /// A session that has ended keeps no more than so many bytes of what it said in memory.
    pub fn release(&mut self, id: SessionId, bytes_max: usize) {
        let ended = self.sessions.get_mut(&id).filter(|session| !session.state.is_live());
        if let Some(session) = ended {
            let before = session.ring.n_bytes();
            session.ring.shrink(bytes_max);
            self.n_event_bytes -= before - session.ring.n_bytes();
        }
    }

    /// Bytes of what all sessions said that are in memory.
    #[must_use]
    pub const fn n_event_bytes(&self) -> usize {
        self.n_event_bytes
    }

    /// A session says something: heard in its own ring and in those of its ancestors. The rings and
    /// its numbers in them, its own first. The event has so many bytes.
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

    /// Drops the oldest events of whoever has most, until all sessions have less than they may together:
    /// by an eighth, so that this is not done for every event.
    fn drop_events(&mut self) {
        let enough = self.kept.total_bytes_max - self.kept.total_bytes_max / 8;
        while self.n_event_bytes > enough {
            let rings = self.sessions.values_mut().map(|session| &mut session.ring);
            let Some(largest) = rings.max_by_key(|ring| ring.n_bytes()) else { return };
            // A part of what it has, or all others would be looked at for each event.
            let less = largest.n_bytes() - largest.n_bytes() / 8;
            while largest.n_bytes() > less {
                let Some(n_bytes) = largest.drop_oldest() else { return };
                self.n_event_bytes -= n_bytes;
            }
        }
    }

    /// Up to `limit` of what a session said after a number; with what its children said if asked. `None`
    /// where that was said before this table knew the session, or was released.
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

    /// The number of the last thing a session said.
    #[must_use]
    pub fn last_index(&self, id: SessionId) -> Option<u64> {
        self.sessions.get(&id).and_then(|session| session.ring.next_index().checked_sub(1))
    }

    /// Whether a session is another one, or comes from it.
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

    /// Sessions that have had nothing to do for too long.
    #[must_use]
    pub fn idle_too_long(&self, now: Now) -> Vec<SessionId> {
        self.idle.iter().take_while(|(at, _)| *at <= now.mono).map(|(_, id)| *id).collect()
    }

    /// When to look again.
    #[must_use]
    pub fn next_idle(&self) -> Option<MonoMs> {
        self.idle.first().map(|(at, _)| *at)
    }
}

fn past(what: &str, limit: u32, of: &str, key: &str) -> Error {
    Error::new(
        ErrorKind::Busy,
        format!(
            "{what} {limit} {of}; `ringback session list` names them and `ringback session end ID` ends \
             one, or raise `{key}` of the project (`sessions.{key}` for all)"
        ),
    )
}
