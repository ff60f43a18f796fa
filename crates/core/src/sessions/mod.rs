//! Sessions of agents: who started which, how each stands, what it has said, and when it has been
//! idle for too long.
//!
//! A session that an agent starts is the child of its own; all that come from one message of one
//! caller form a tree with a *root*, whose caller serves them all. What a session says is kept in a
//! ring of its own and in those of its ancestors, so that whoever started it all can follow it all
//! in one order.
//!
//! The table holds the sessions of this run. What is said is the shell's own type.

mod ring;
mod table;
#[cfg(test)]
mod tests;

use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::PrincipalId;

pub use self::ring::{EventPage, KeptEvents, Said};
pub use self::table::{Leaving, SessionTable, Where};

/// How far the sessions of a project may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// How deep sessions may start others; a root has depth 0.
    pub depth_max: u32,
    /// Sessions that one root may start in all, its own included.
    pub agents_max: u32,
    /// Sessions of one project that have not ended.
    pub live_max: u32,
    /// How long a session may have nothing to do.
    pub idle_ms: u64,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { depth_max: 3, agents_max: 50, live_max: 10, idle_ms: 30 * 60 * 1000 }
    }
}

/// A session that somebody wants to start, or to take up again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its project.
    pub project: ProjectId,
    /// Where it works.
    pub workspace: WorkspaceId,
    /// Who started it; a child belongs to who started its root.
    pub owner: PrincipalId,
    /// The session whose agent started it.
    pub parent: Option<SessionId>,
    /// How far it may go.
    pub limits: SessionLimits,
    /// The number of the next thing it says: 0, unless it goes on.
    pub next_index: u64,
}
