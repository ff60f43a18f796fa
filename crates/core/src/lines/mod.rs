//! Tools offered from outside the daemon, on lines that others hold open: one engine for every kind
//! of party.
//!
//! A party holds a *line* under a name, with any number of *streams*, and offers tools on it. A
//! call to such a tool waits in the outbox of one stream until that stream takes it; from then on
//! it is delivered, and ends when the party answers, its caller leaves, its time is up or the
//! stream closes. Calls that were not taken move to another stream; calls that were taken may have
//! run.
//!
//! A caller's line is different: it belongs to a session, lasts as long, and only that session's
//! agents can reach it (see `callers`).
//!
//! The engine never sees a payload: the outgoing messages, the waiting callers and the wake-ups of
//! streams are the shell's own types ([`Links`]).

mod callers;
mod calls;
mod line;
mod names;
mod registry;
mod reply_job;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_callers;

use std::fmt;
use std::sync::Arc;

use ringback_proto::Error;
use ringback_proto::ids::{CallId, SessionId, TokenId};
use ringback_proto::principal::{Principal, PrincipalId, Target};

pub use self::callers::{
    AttendanceNo, Attendee, CallerLines, CallerTools, Declaration, Delivery, StreamMode,
};
pub use self::calls::{AwaitedCall, EndedCall, NewCall, Recall};
pub use self::registry::{NewTool, Registry, may_offer};
pub use self::reply_job::same_job;
pub use self::table::{LineTable, Offer};

/// The shell's types in the engine: stored, never inspected.
pub trait Links: fmt::Debug {
    /// Facts about a tool beyond its name.
    type Tool: fmt::Debug;
    /// A message that a stream sends to its party.
    type Out: Clone + fmt::Debug;
    /// The caller that waits for the answer to a call.
    type Caller: fmt::Debug;
    /// Wakes the reader of a stream.
    type Bell: Clone + fmt::Debug;
}

/// The kind of party that holds a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LineKind {
    /// An HTTP client.
    Client,
    /// A worker process.
    Worker,
    /// The caller of a session.
    Caller,
}

impl LineKind {
    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Worker => "worker",
            Self::Caller => "caller",
        }
    }
}

/// The name of a line; it belongs to one principal for as long as the line exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LineName {
    /// An HTTP client, by its client ID.
    Client(Arc<str>),
    /// A worker process, by its service.
    Worker(Arc<str>),
    /// A caller of a session.
    Caller {
        /// The root session of the tree that it serves.
        session: SessionId,
        /// Its id in that session.
        caller_id: Arc<str>,
    },
}

impl fmt::Display for LineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} `{}`", self.kind().as_str(), self.name())
    }
}

/// An open stream of a line. Numbers increase, so the newest stream has the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamNo(pub(crate) u64);

/// Who may use a tool besides its owner and unrestricted principals.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Audience {
    /// No other principal.
    #[default]
    Owner,
    /// Tokens for one of the owner's projects.
    Project,
    /// These tokens.
    Tokens(Vec<TokenId>),
}

/// A tool on a line.
#[derive(Debug)]
pub struct LineTool<T> {
    /// The name under which it is called.
    pub full_name: Arc<str>,
    /// The name its party gave it.
    pub name: Arc<str>,
    /// The line it is on.
    pub line: LineName,
    /// Its owner.
    pub owner: PrincipalId,
    /// The owner's projects, for sharing.
    pub(crate) owner_target: Target,
    /// Who else may use it.
    pub audience: Audience,
    /// The time limit of a call.
    pub timeout_ms: Option<u64>,
    /// Whether each progress report restarts the time limit of a call.
    pub progress_extends: bool,
    /// Whether running it twice is harmless, so that a call may move after delivery.
    pub idempotent: bool,
    /// The order of registration.
    pub seq: u64,
    /// Its size in memory, for the limit.
    pub(crate) weight: usize,
    /// The shell's own data about it.
    pub info: T,
}

impl<T> LineTool<T> {
    /// Returns whether a principal may know that it exists.
    #[must_use]
    pub fn is_seen_by(&self, principal: &Principal) -> bool {
        if crate::policy::sees_all(principal) || principal.id == self.owner {
            return true;
        }
        match &self.audience {
            Audience::Owner => false,
            Audience::Tokens(tokens) => match principal.id {
                PrincipalId::Token(id) => tokens.contains(&id),
                PrincipalId::Local => false,
            },
            Audience::Project => match (&principal.target, &self.owner_target) {
                (Target::Projects(theirs), Target::Projects(owners)) => {
                    theirs.iter().any(|project| owners.contains(project))
                }
                (Target::Everything, _) | (_, Target::Everything) => false,
            },
        }
    }
}

/// A message that a stream sends to its party.
#[derive(Debug, Clone)]
pub enum PartyMessage<O> {
    /// A call to run.
    Call(O),
    /// A call that was sent before has ended; its answer is no longer wanted.
    Cancel {
        /// The call.
        call: CallId,
        /// The id under which its party knows it, if the caller chose one.
        custom_id: Option<Arc<str>>,
        /// The reason.
        reason: CancelReason,
    },
}

/// Why an answer is no longer wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CancelReason {
    /// Its time is up.
    TimedOut,
    /// Its caller cancelled it, or left.
    Cancelled,
}

impl CancelReason {
    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The effects of a step, in order, to perform after the table is unlocked.
#[derive(Debug)]
pub enum LineEffect<L: Links> {
    /// A stream has something to send.
    Ring(L::Bell),
    /// A call ended without an answer.
    Failed(EndedCall<L>, Error),
    /// Tools are no longer offered.
    Withdrawn {
        /// Their line.
        line: LineName,
        /// Their owner.
        owner: PrincipalId,
        /// Their full names.
        tools: Vec<Arc<str>>,
    },
}

/// Limits on lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineLimits {
    /// Lines of one principal.
    pub lines_per_principal_max: usize,
    /// Callers of one session.
    pub callers_per_session_max: usize,
    /// Streams of one line.
    pub streams_per_line_max: usize,
    /// Tools on one line.
    pub tools_per_line_max: usize,
    /// Tools of one principal.
    pub tools_per_principal_max: usize,
    /// Bytes of the tools of one principal.
    pub tool_bytes_per_principal_max: usize,
    /// Calls on one line that have not ended.
    pub calls_per_line_max: usize,
    /// How long a line that never had a stream is kept.
    pub unattended_ms: u64,
    /// The longest grace period a line may request.
    pub grace_ms_max: u64,
}

impl Default for LineLimits {
    fn default() -> Self {
        Self {
            lines_per_principal_max: 20_000,
            callers_per_session_max: 64,
            streams_per_line_max: 64,
            tools_per_line_max: 10_000,
            tools_per_principal_max: 200_000,
            tool_bytes_per_principal_max: 256 << 20,
            calls_per_line_max: 1024,
            unattended_ms: 10 * 60 * 1000,
            grace_ms_max: 60 * 60 * 1000,
        }
    }
}
