//! Everything that happened, in order: calls, replies, commits, events, crashes.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use ringback_broker::TableSizes;
use ringback_proto::ids::{JobId, RequestId, TokenId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{JobState, UnixMs};
use ringback_proto::{Certainty, ErrorKind};

/// A caller: an index into the callers of the world.
pub type CallerIndex = usize;
/// The number of a call in its history.
pub type CallNo = usize;
/// A number in the body of a single request, which identifies its effects.
pub type Marker = u64;

/// Everything that happened, and what was left at the end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// In order.
    pub entries: Vec<Entry>,
    /// The contents of the disk after the last life.
    pub truth: FinalState,
}

/// One entry of the history.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The time.
    pub at: UnixMs,
    /// The life of the daemon, from 0.
    pub life: u32,
    /// The event.
    pub what: HistoryEvent,
}

/// Possible events.
#[derive(Debug, Clone, PartialEq)]
pub enum HistoryEvent {
    /// The daemon is up, and its events are recorded from here on.
    Started,
    /// The daemon could not start, because its first commit was refused.
    FailedToStart,
    /// A call.
    Called(Box<CallRecord>),
    /// A reply to it.
    Replied(CallNo, Reply),
    /// Its caller cancelled it.
    Cancelled(CallNo),
    /// Its caller left without waiting for more replies.
    Left(CallNo),
    /// A party took the call with this marker from its line.
    Took(Marker),
    /// A change is durable.
    Durable(Durable),
    /// An event was published.
    Announced(Announcement),
    /// The disk refused a commit.
    DiskFull,
    /// The process died.
    Crashed,
    /// The daemon was stopped in order.
    Stopped,
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// Its number.
    pub call: CallNo,
    /// The caller.
    pub who: CallerIndex,
    /// The operation.
    pub op: Op,
    /// The ID by which a repeat is recognized.
    pub request_id: Option<RequestId>,
    /// How long the caller waits for the result.
    pub wait_ms: Option<u64>,
    /// How long the call may take.
    pub deadline_ms: Option<u64>,
    /// Whether chunks are requested.
    pub stream: bool,
}

/// An operation, with the relevant part of its input.
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
    Revoke(CallerIndex),
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
    /// Of a client that reconnects after its stream was lost.
    Page,
    /// Of two workers.
    Render,
    /// Of one of them; running it twice does no harm.
    Idempotent,
    /// Of the caller of a session.
    Ask,
}

impl LineTool {
    /// Returns its name as its party declares it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tab | Self::Page => "do",
            Self::Render => "render",
            Self::Idempotent => "again",
            Self::Ask => "ask",
        }
    }

    /// Returns the name for calls; only the agents of a session reach its caller tools.
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

    /// Returns whether a call may be delivered again after its party was lost.
    #[must_use]
    pub const fn is_delivered_again(self) -> bool {
        match self {
            Self::Page | Self::Idempotent | Self::Ask => true,
            Self::Tab | Self::Render => false,
        }
    }
}

impl Op {
    /// Returns the marker of an operation that changes something itself.
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

    /// Returns whether it makes a job.
    #[must_use]
    pub const fn makes_job(&self) -> bool {
        matches!(self, Self::Sleep(_))
    }
}

/// The relevant part of a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// The work goes on as a job.
    JobStarted(JobId),
    /// A stream starts.
    StreamStart(JobId),
    /// The stream of a call on a line starts.
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
    /// The states of jobs, from `job_status`, `job_list` and `job_cancel`.
    Jobs(Vec<(JobId, JobState)>),
    /// The answer of `job_poll`: ended, and not ended.
    Polled(Vec<JobId>, Vec<JobId>),
    /// Any other success.
    Done,
    /// An error, and whether the tool ran.
    Failed(ErrorKind, Certainty),
}

impl Reply {
    /// Returns whether no further reply may follow.
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

    /// Returns the job whose ID the caller gets.
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

/// A durable change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Durable {
    /// A new job.
    Created {
        /// The job.
        job: JobId,
        /// The marker of its request.
        marker: Marker,
        /// The owner.
        owner: PrincipalId,
        /// The ID of its request.
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

/// An event as a subscriber to all events gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Announcement {
    /// Its number among all.
    pub seq: u64,
    /// Its topic.
    pub topic: &'static str,
    /// Its number in its topic.
    pub topic_seq: u64,
    /// Its owner.
    pub owner: PrincipalId,
    /// Its number among those of this owner and topic.
    pub owner_topic_seq: u64,
    /// Its content.
    pub news: EventContent,
}

/// The relevant content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventContent {
    /// The state of a job.
    State(JobId, JobState),
    /// A job works.
    Progress(JobId),
    /// Anything else.
    Other,
}

/// The contents of the disk after the last life, read from a reopened store.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FinalState {
    /// Every job.
    pub jobs: Vec<(JobId, JobState)>,
    /// The markers of artifacts and tokens.
    pub made: Vec<Marker>,
    /// The callers whose tokens are revoked.
    pub revoked: Vec<CallerIndex>,
    /// The callers whose tokens expire, and when.
    pub expiries: Vec<(CallerIndex, UnixMs)>,
    /// The broker's tables after all calls were over.
    pub under_way: TableSizes,
    /// The number of lines in the audit.
    pub n_audit_lines: usize,
}

impl History {
    /// Returns a number that equal histories share.
    #[must_use]
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        format!("{self:?}").hash(&mut hasher);
        hasher.finish()
    }

    /// Returns the number of entries of a kind.
    pub fn count(&self, is_kind: impl Fn(&HistoryEvent) -> bool) -> usize {
        self.entries.iter().filter(|entry| is_kind(&entry.what)).count()
    }

    /// Returns the calls, each with the index of its entry.
    pub fn calls(&self) -> impl Iterator<Item = (usize, &Entry, &CallRecord)> {
        self.pick(
            |what| if let HistoryEvent::Called(called) = what { Some(&**called) } else { None },
        )
    }

    /// Returns the replies, each with the index of its entry.
    pub fn replies(&self) -> impl Iterator<Item = (usize, &Entry, (CallNo, &Reply))> {
        self.pick(|what| {
            if let HistoryEvent::Replied(call, reply) = what { Some((*call, reply)) } else { None }
        })
    }

    /// Returns the durable changes, each with the index of its entry.
    pub fn durable(&self) -> impl Iterator<Item = (usize, &Entry, &Durable)> {
        self.pick(
            |what| if let HistoryEvent::Durable(durable) = what { Some(durable) } else { None },
        )
    }

    /// Returns the events, each with the index of its entry.
    pub fn announced(&self) -> impl Iterator<Item = (usize, &Entry, &Announcement)> {
        self.pick(|what| if let HistoryEvent::Announced(event) = what { Some(event) } else { None })
    }

    fn pick<'a, T>(
        &'a self,
        pick: impl Fn(&'a HistoryEvent) -> Option<T>,
    ) -> impl Iterator<Item = (usize, &'a Entry, T)> {
        let entries = self.entries.iter().enumerate();
        entries.filter_map(move |(index, entry)| Some((index, entry, pick(&entry.what)?)))
    }
}
