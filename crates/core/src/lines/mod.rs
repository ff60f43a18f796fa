//! Tools that live outside, on lines that others hold open: one engine for every kind of party.
//!
//! A party holds a *line* under a name, with any number of *streams*. It offers tools on the line. A
//! call of such a tool waits in the outbox of one stream until that stream takes it; from then on it
//! is delivered, and ends when the party answers, its caller leaves, its time is up or the stream
//! closes. What was not taken moves to another stream; what was taken is known to perhaps have run.
//!
//! A caller's line is another matter: it belongs to a session, lasts as long, and is reached by that
//! session's agents alone (see `callers`).
//!
//! The engine never sees a payload: what goes out, who waits for the answer, and how a stream is
//! woken are the shell's own types ([`Links`]).

mod callers;
mod calls;
mod line;
mod names;
mod registry;
mod table;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_callers;

use std::fmt;
use std::sync::Arc;

use ringback_proto::Error;
use ringback_proto::ids::{CallId, TokenId};
use ringback_proto::principal::{Principal, PrincipalId, Target};

pub use self::callers::{Attend, AttendanceNo, CallerTools, Declaration, Delivery, Holding};
pub use self::calls::{Awaited, Ended, NewCall, Recall};
pub use self::registry::{NewTool, may_offer};
pub use self::table::{LineTable, Offer};

/// What the shell hangs on the engine: carried, never looked at.
pub trait Links: fmt::Debug {
    /// What is known of a tool beyond its name.
    type Tool: fmt::Debug;
    /// What a stream sends to its party.
    type Out: Clone + fmt::Debug;
    /// Who waits for the answer of a call.
    type Caller: fmt::Debug;
    /// Wakes whoever reads a stream.
    type Bell: Clone + fmt::Debug;
}

/// Who holds a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LineKind {
    /// An HTTP client.
    Client,
    /// A worker process.
    Worker,
    /// Whoever started a session.
    Caller,
}

impl LineKind {
    /// A word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Worker => "worker",
            Self::Caller => "caller",
        }
    }
}

/// The name of a line; it belongs to one principal as long as the line exists.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LineName {
    /// Who holds it.
    pub kind: LineKind,
    /// Its clientID, its service, or its session and caller id; see [`LineName::caller`].
    pub name: Arc<str>,
}

impl fmt::Display for LineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.caller_id().unwrap_or(&self.name);
        write!(f, "{} `{name}`", self.kind.as_str())
    }
}

/// One open stream of a line. Numbers rise, so the newest stream has the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamNo(pub(crate) u64);

/// Who may use a tool besides its owner and those who may everything.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Audience {
    /// Nobody.
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
    /// The name it is called by.
    pub full_name: Arc<str>,
    /// The name its party gave it.
    pub name: Arc<str>,
    /// The line it is on.
    pub line: LineName,
    /// Whose it is.
    pub owner: PrincipalId,
    /// The owner's projects, for those it is shared with.
    pub(crate) owner_target: Target,
    /// Who else may use it.
    pub audience: Audience,
    /// How long a call of it may take.
    pub timeout_ms: Option<u64>,
    /// Whether each word of progress gives a call its whole time again.
    pub progress_extends: bool,
    /// Whether running it twice does no harm, so that a call may move after it was delivered.
    pub idempotent: bool,
    /// Tells which was registered first.
    pub seq: u64,
    /// Its bytes in memory, for the limit.
    pub(crate) weight: usize,
    /// What the shell knows of it.
    pub info: T,
}

impl<T> LineTool<T> {
    /// Whether somebody may know that it exists.
    #[must_use]
    pub fn is_seen_by(&self, principal: &Principal) -> bool {
        if crate::policy::sight(principal) == crate::policy::Sight::All
            || principal.id == self.owner
        {
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

/// What a stream sends to its party.
#[derive(Debug, Clone)]
pub enum ToParty<O> {
    /// A call to carry out.
    Call(O),
    /// A call that was sent before is over; its answer is no longer wanted.
    Cancel {
        /// The call.
        call: CallId,
        /// The id its party knows it by, if the caller chose one.
        custom_id: Option<Arc<str>>,
        /// Why.
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
    /// A word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TimedOut => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

/// What a step wants done, in order, after the table is unlocked.
#[derive(Debug)]
pub enum LineEffect<L: Links> {
    /// A stream has something to send.
    Ring(L::Bell),
    /// A call ended without an answer.
    Failed(Ended<L>, Error),
    /// Tools are no longer offered.
    Withdrawn {
        /// Their line.
        line: LineName,
        /// Whose they were.
        owner: PrincipalId,
        /// Their full names.
        tools: Vec<Arc<str>>,
    },
}

/// How much lines may take.
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
    /// Bytes that the tools of one principal take.
    pub tool_bytes_per_principal_max: usize,
    /// Calls on one line that have not ended.
    pub calls_per_line_max: usize,
    /// How long a line without a stream is kept when none was ever opened.
    pub unattended_ms: u64,
    /// The longest grace a line may ask for.
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
