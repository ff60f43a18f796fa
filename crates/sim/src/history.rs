//! What happened, in the order it happened: calls, replies, commits, events, crashes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use ringback_broker::UnderWay;
use ringback_proto::ids::{JobId, RequestId, TokenId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{JobState, UnixMs};
use ringback_proto::{Certainty, ErrorKind};

/// Who calls: an index into the callers of the world.
pub type Who = usize;
/// The number of a call in its history.
pub type CallNo = usize;
/// A number that stands in the body of one request alone, so that its effects can be told from all
/// others'.
pub type Marker = u64;

/// All that happened, and what was left at the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// In order.
    pub entries: Vec<Entry>,
    /// What the disk had after the last life.
    pub truth: Truth,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// When.
    pub at: UnixMs,
    /// In which life of the daemon, from 0.
    pub life: u32,
    /// What.
    pub what: What,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// The daemon is up, and its events are listened to from here on.
    Started,
    /// The daemon could not start, because its first commit was refused.
    FailedToStart,
    /// A call.
    Called(Box<Called>),
    /// A reply to it.
    Replied(CallNo, Reply),
    /// Its caller asked for it to be stopped.
    Cancelled(CallNo),
    /// Its caller left without waiting for more replies.
    Left(CallNo),
    /// A party took the call with this marker from its line.
    Took(Marker),
    /// A change is durable.
    Durable(Durable),
    /// An event was published.
    Announced(Announced),
    /// The disk refused a commit.
    DiskFull,
    /// The process died.
    Crashed,
    /// The daemon was stopped in order.
    Stopped,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Called {
    /// Its number.
    pub call: CallNo,
    /// Who calls.
    pub who: Who,
    /// What is called.
    pub op: Op,
    /// By which id a repeat is recognised.
    pub request_id: Option<RequestId>,
    /// How long the caller waits for the result.
    pub wait_ms: Option<u64>,
    /// How long the call may take.
    pub deadline_ms: Option<u64>,
    /// Whether chunks are wanted.
    pub stream: bool,
}

/// What is called, with what of its input matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// `job_sleep`; the marker is its milliseconds.
    Sleep(Marker),
    /// `cas_store` of some content.
    Store,
    /// `artifact_create`; the marker is its creator.
    CreateArtifact(Marker),
    /// `token_create`; the marker is its name.
    CreateToken(Marker),
    /// `token_revoke` of a caller's token.
    Revoke(Who),
    /// `job_cancel`.
    Cancel(JobId),
    /// `job_status`.
    Status(JobId),
    /// `job_poll`.
    Poll(Vec<JobId>),
    /// `job_list`.
    List,
    /// `event_poll`.
    Events,
    /// `ping`.
    Ping,
    /// A tool on a line; the marker is its input.
    OnLine(LineTool, Marker),
}

/// A tool on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LineTool {
    /// Of a client with two tabs.
    Tab,
    /// Of a client that comes back after its stream was lost.
    Page,
    /// Of two workers.
    Render,
    /// Of one of them, and running it twice does no harm.
    Idempotent,
    /// Of whoever started a session.
    Ask,
}

impl LineTool {
    /// The name its party gives it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tab | Self::Page => "do",
            Self::Render => "render",
            Self::Idempotent => "again",
            Self::Ask => "ask",
        }
    }

    /// The name it is called by; only the agents of a session reach its callers' tools.
    #[must_use]
    pub const fn full_name(self) -> &'static str {
        match self {
            Self::Tab => "client_tab_do",
            Self::Page => "client_page_do",
            Self::Render => "gpu_render",
            Self::Idempotent => "gpu_again",
            Self::Ask => "ant_ask",
        }
    }

    /// Whether a call may go out again after its party was lost.
    #[must_use]
    pub const fn is_delivered_again(self) -> bool {
        match self {
            Self::Page | Self::Idempotent | Self::Ask => true,
            Self::Tab | Self::Render => false,
        }
    }
}

impl Op {
    /// The marker of what changes something by itself.
    #[must_use]
    pub const fn marker(&self) -> Option<Marker> {
        match self {
            Self::Sleep(marker)
            | Self::CreateArtifact(marker)
            | Self::CreateToken(marker)
            | Self::OnLine(_, marker) => Some(*marker),
            Self::Store
            | Self::Revoke(_)
            | Self::Cancel(_)
            | Self::Status(_)
            | Self::Poll(_)
            | Self::List
            | Self::Events
            | Self::Ping => None,
        }
    }

    /// Whether it makes a job.
    #[must_use]
    pub const fn makes_job(&self) -> bool {
        matches!(self, Self::Sleep(_))
    }
}

/// A reply, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The work goes on as a job.
    JobStarted(JobId),
    /// A stream begins.
    StreamStart(JobId),
    /// The stream of a call on a line begins.
    LineStream,
    /// A chunk.
    Chunk,
    /// A party's own answer.
    Passed(Marker),
    /// The stream ends with this result of a sleep.
    StreamEnd(Marker),
    /// A job has slept.
    Slept(Marker),
    /// An artifact or a token was made.
    Made(Marker),
    /// Where jobs stand, of `job_status`, `job_list` and `job_cancel`.
    Jobs(Vec<(JobId, JobState)>),
    /// What `job_poll` told: ended, and not ended.
    Polled(Vec<JobId>, Vec<JobId>),
    /// Any other success.
    Done,
    /// An error, and whether the tool ran.
    Failed(ErrorKind, Certainty),
}

impl Reply {
    /// Whether no further reply may follow.
    #[must_use]
    pub const fn is_last(&self) -> bool {
        match self {
            Self::StreamStart(_) | Self::LineStream | Self::Chunk => false,
            Self::JobStarted(_)
            | Self::StreamEnd(_)
            | Self::Passed(_)
            | Self::Slept(_)
            | Self::Made(_)
            | Self::Jobs(_)
            | Self::Polled(..)
            | Self::Done
            | Self::Failed(..) => true,
        }
    }

    /// The job whose id the caller is told.
    #[must_use]
    pub const fn job(&self) -> Option<JobId> {
        match self {
            Self::JobStarted(job) | Self::StreamStart(job) => Some(*job),
            Self::LineStream
            | Self::Chunk
            | Self::Passed(_)
            | Self::StreamEnd(_)
            | Self::Slept(_)
            | Self::Made(_)
            | Self::Jobs(_)
            | Self::Polled(..)
            | Self::Done
            | Self::Failed(..) => None,
        }
    }
}

/// A change that the disk has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Durable {
    /// A new job.
    Created {
        /// Which.
        job: JobId,
        /// From which request.
        marker: Marker,
        /// Whose.
        owner: PrincipalId,
        /// From which request id.
        request_id: Option<RequestId>,
        /// Pending or running.
        state: JobState,
    },
    /// A job runs.
    Began(JobId),
    /// A job ended.
    Ended(JobId, JobState),
    /// A job's row was dropped.
    Purged(JobId),
    /// A new artifact or token.
    Made(Marker),
    /// A token is no longer valid.
    Revoked(TokenId),
}

/// An event as everybody who sees all events gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Announced {
    /// Its number among all.
    pub seq: u64,
    /// Its topic.
    pub topic: &'static str,
    /// Its number in its topic.
    pub topic_seq: u64,
    /// Whose it is.
    pub owner: PrincipalId,
    /// Its number among this owner's of this topic.
    pub owner_topic_seq: u64,
    /// What it says.
    pub news: News,
}

/// What an event says, as far as it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// Where a job stands.
    State(JobId, JobState),
    /// A job works.
    Progress(JobId),
    /// Anything else.
    Other,
}

/// What the disk had after the last life, read by a new opening of the store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Truth {
    /// Every job.
    pub jobs: Vec<(JobId, JobState)>,
    /// The markers of artifacts and tokens.
    pub made: Vec<Marker>,
    /// The callers whose tokens are revoked.
    pub revoked: Vec<Who>,
    /// The callers whose tokens expire, and when.
    pub expiries: Vec<(Who, UnixMs)>,
    /// The broker's tables when nothing was asked of it any more.
    pub under_way: UnderWay,
    /// The lines of the audit.
    pub n_audit_lines: usize,
}

impl History {
    /// A number that two equal histories share.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{self:?}").hash(&mut hasher);
        hasher.finish()
    }

    /// How many entries there are of a kind.
    pub fn count(&self, is_kind: impl Fn(&What) -> bool) -> usize {
        self.entries.iter().filter(|entry| is_kind(&entry.what)).count()
    }

    /// The calls, each with the index of its entry.
    pub fn calls(&self) -> impl Iterator<Item = (usize, &Entry, &Called)> {
        self.pick(|what| if let What::Called(called) = what { Some(&**called) } else { None })
    }

    /// The replies, each with the index of its entry.
    pub fn replies(&self) -> impl Iterator<Item = (usize, &Entry, (CallNo, &Reply))> {
        self.pick(
            |what| {
                if let What::Replied(call, reply) = what { Some((*call, reply)) } else { None }
            },
        )
    }

    /// What became durable, each with the index of its entry.
    pub fn durable(&self) -> impl Iterator<Item = (usize, &Entry, &Durable)> {
        self.pick(|what| if let What::Durable(durable) = what { Some(durable) } else { None })
    }

    /// The events, each with the index of its entry.
    pub fn announced(&self) -> impl Iterator<Item = (usize, &Entry, &Announced)> {
        self.pick(|what| if let What::Announced(event) = what { Some(event) } else { None })
    }

    fn pick<'a, T>(
        &'a self,
        pick: impl Fn(&'a What) -> Option<T>,
    ) -> impl Iterator<Item = (usize, &'a Entry, T)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(move |(index, entry)| Some((index, entry, pick(&entry.what)?)))
    }
}
