//! Agent sessions: their ancestry, states and events, and when they have been idle for too long.
//!
//! A session that an agent starts is a child of the agent's own; all sessions that come from one
//! message of one caller form a tree with a *root*, whose caller serves them all. The events of a
//! session are kept in its own ring and in those of its ancestors, so that the caller can follow
//! everything in one order.
//!
//! The table holds the sessions of this run. The type of events is up to the shell.

mod ring;
mod table;
#[cfg(test)]
mod tests;

use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::PrincipalId;

pub use self::ring::{EventLimits, EventPage, RingEvent};
pub use self::table::{DeletionTarget, SessionPlace, SessionTable};

/// The limits of a project's sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// The maximum depth of started sessions; a root has depth 0.
    pub depth_max: u32,
    /// The maximum number of sessions of one root, itself included.
    pub agents_max: u32,
    /// Sessions of one project that have not ended.
    pub live_max: u32,
    /// How long a session may be idle.
    pub idle_ms: u64,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { depth_max: 3, agents_max: 50, live_max: 10, idle_ms: 30 * 60 * 1000 }
    }
}

/// A session to start or to resume.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// Its project.
    pub project: ProjectId,
    /// Its workspace.
    pub workspace: WorkspaceId,
    /// Its owner; a child belongs to the owner of its root.
    pub owner: PrincipalId,
    /// The session whose agent started it.
    pub parent: Option<SessionId>,
    /// Its limits.
    pub limits: SessionLimits,
    /// The index of its next event: 0, unless it is resumed.
    pub next_index: u64,
}
