//! Records that must survive a restart: core decides what to write, the store writes it. This is
//! their meaning; the layout on disk is up to the store.

mod garden;
mod graph;

use bytes::Bytes;

pub use self::garden::{HeardRecord, RegionRecord, TimelineChange};
pub use self::graph::{ConnectionRecord, HintRecord, IdentityKey, IdentityRecord};
use crate::ids::{
    AnnotationId, ArtifactId, BlobHash, JobId, ProjectId, RequestId, SessionId, TokenId,
    VariationSetId, WorkspaceId,
};
use crate::network::NetworkPolicy;
use crate::permission::{PermissionMode, PermissionPolicy};
use crate::principal::{KeyLevel, Level, PrincipalId, Target};
use crate::request::{ModelUsage, ProjectLimits, SourceRole, SpendLimits};
use crate::wire_enum::wire_enum;

/// Milliseconds since the Unix epoch, always supplied by the caller.
pub type UnixMs = u64;

wire_enum! {
    /// The state of a job.
    JobState {
        /// Waiting for its turn.
        Pending = "pending",
        /// Running.
        Running = "running",
        /// Ended with a result.
        Complete = "complete",
        /// Ended with an error.
        Failed = "failed",
        /// Was cancelled, and the work has stopped.
        Cancelled = "cancelled",
    }
}

impl JobState {
    /// Returns whether the job has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Complete | Self::Failed | Self::Cancelled => true,
        }
    }
}

wire_enum! {
    /// The state of a session.
    SessionState {
        /// Its agent is starting.
        Starting = "starting",
        /// Its agent is working on a message.
        Running = "running",
        /// Its agent is waiting for a message.
        Idle = "idle",
        /// It was ended.
        Ended = "ended",
        /// Its agent could not start, or crashed.
        Failed = "failed",
        /// The daemon stopped during the session; a message continues it.
        Interrupted = "interrupted",
    }
}

impl SessionState {
    /// Returns whether the session has an agent, or is about to.
    #[must_use]
    pub const fn is_live(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Idle => true,
            Self::Ended | Self::Failed | Self::Interrupted => false,
        }
    }
}

/// The call a job came from, to recognise a repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RepeatKey {
    /// The request id or idempotency key, as 16 bytes.
    pub request_id: RequestId,
    /// BLAKE3 of tool and input: the same id with another body is a conflict.
    pub body_hash: BlobHash,
}

/// A stored job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// Its id.
    pub id: JobId,
    /// The tool's name.
    pub tool: String,
    /// Its owner.
    pub owner: PrincipalId,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// The session whose agent started it: it does not run on without that session.
    pub session: Option<SessionId>,
    /// The call it came from.
    pub repeat: Option<RepeatKey>,
    /// The request as MsgPack, so that a pending job can run after a restart.
    pub request: Bytes,
    /// Its state.
    pub state: JobState,
    /// The result as MsgPack, once complete.
    pub result: Option<Bytes>,
    /// The blob that holds the result, when it is large.
    pub result_blob: Option<BlobHash>,
    /// The [`crate::error::ToolError`] as MsgPack, once failed or cancelled.
    pub error: Option<Bytes>,
    /// When it was accepted.
    pub created_at: UnixMs,
    /// When it started to run.
    pub started_at: Option<UnixMs>,
    /// When it ended.
    pub completed_at: Option<UnixMs>,
    /// When the record may be dropped; set only for ended jobs.
    pub expires_at: Option<UnixMs>,
}

/// The outcome of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobEnd {
    /// A terminal state.
    pub state: JobState,
    /// The result as MsgPack, when it is small.
    pub result: Option<Bytes>,
    /// The blob that holds the result, when it is large.
    pub result_blob: Option<BlobHash>,
    /// The error as MsgPack.
    pub error: Option<Bytes>,
    /// When it ended.
    pub completed_at: UnixMs,
    /// When the record may be dropped.
    pub expires_at: UnixMs,
}

/// A stored artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRecord {
    /// Its id: storing the same content twice makes two artifacts.
    pub id: ArtifactId,
    /// The blob with the content.
    pub content_hash: BlobHash,
    /// The content's type.
    pub mime_type: String,
    /// The content's length in bytes.
    pub size: u64,
    /// Its owner.
    pub owner: PrincipalId,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// Its tags, in the given order.
    pub tags: Vec<String>,
    /// The creator of the content, as given by the caller.
    pub creator: String,
    /// The artifact it was derived from.
    pub parent_id: Option<ArtifactId>,
    /// The variation set it belongs to.
    pub variation_set_id: Option<VariationSetId>,
    /// Its index in that set, from 0. Filled in by the store: see [`Record::ArtifactCreated`].
    pub variation_index: Option<u32>,
    /// Arbitrary metadata as MsgPack.
    pub metadata: Option<Bytes>,
    /// The tool that made it; absent in records from before it was kept.
    pub tool: Option<String>,
    /// The job that made it, which may have expired.
    pub job: Option<JobId>,
    /// The session whose agent made it.
    pub session: Option<SessionId>,
    /// When it was created.
    pub created_at: UnixMs,
}

/// A stored source: content that an artifact was made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceRecord {
    /// The artifact that was made.
    pub artifact_id: ArtifactId,
    /// The artifact of the source, as its maker saw it.
    pub source: Option<ArtifactId>,
    /// The blob of the source.
    pub source_hash: BlobHash,
    /// What it was used for.
    pub role: SourceRole,
    /// Whether the maker could not see the content itself.
    pub is_hidden: bool,
}

/// A stored annotation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationRecord {
    /// Its id.
    pub id: AnnotationId,
    /// The annotated artifact.
    pub artifact_id: ArtifactId,
    /// Its text.
    pub message: String,
    /// Its author.
    pub source: String,
    /// Its mood.
    pub vibe: Option<String>,
    /// When it was created.
    pub created_at: UnixMs,
}

/// A stored token: never the secret, only its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its public id.
    pub id: TokenId,
    /// Its name.
    pub name: String,
    /// BLAKE3 of the secret.
    pub secret_hash: [u8; 32],
    /// The public key that belongs to the token's bytes as a secret key: a CURVE peer proves the
    /// token with it without sending it.
    pub public_key: [u8; 32],
    /// Its scope.
    pub level: Level,
    /// The projects it is limited to.
    pub target: Target,
    /// When it was created.
    pub created_at: UnixMs,
    /// When it expires.
    pub expires_at: Option<UnixMs>,
    /// When it was last used, accurate to the minute.
    pub last_used_at: Option<UnixMs>,
    /// When it was revoked.
    pub revoked_at: Option<UnixMs>,
    /// The only session it was made for, and is valid for.
    pub session: Option<SessionId>,
}

/// A stored project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRecord {
    /// Its id.
    pub id: ProjectId,
    /// Its name.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// Its owner.
    pub owner: PrincipalId,
    /// The agent of its sessions, unless a session sets another.
    pub agent: Option<String>,
    /// The scope of the keys made for its sessions.
    pub key_level: KeyLevel,
    /// The limits of its sessions, where they differ from the daemon's own.
    pub limits: ProjectLimits,
    /// The network policy of its sessions, unless a session sets another.
    pub network: Option<NetworkPolicy>,
    /// The image of its sessions and its container.
    pub image: Option<ProjectImage>,
    /// The answers to permission requests of its agents, if set.
    pub permissions: Option<PermissionPolicy>,
    /// When it was created.
    pub created_at: UnixMs,
}

/// The image of a project. The two kinds are kept apart, so that a name removed from the
/// configuration is never taken for an unrelated image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectImage {
    /// An image of the configuration, by its name there.
    Named(String),
    /// Any other image, as the engine knows it.
    Reference(String),
}

impl ProjectImage {
    /// Returns the name or reference as given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Named(name) | Self::Reference(name) => name,
        }
    }
}

/// A stored workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRecord {
    /// Its id.
    pub id: WorkspaceId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// When it was created.
    pub created_at: UnixMs,
    /// When a session last started in it.
    pub last_session_at: Option<UnixMs>,
}

/// A stored session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id.
    pub id: SessionId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// The workspace of its agent.
    pub workspace: WorkspaceId,
    /// Its owner; for a child session, the owner of its root.
    pub owner: PrincipalId,
    /// The session whose agent started it.
    pub parent: Option<SessionId>,
    /// Its first ancestor; itself if it has no parent.
    pub root: SessionId,
    /// The number of its ancestors.
    pub depth: u32,
    /// Its agent.
    pub agent: String,
    /// Its state.
    pub state: SessionState,
    /// When it was created.
    pub created_at: UnixMs,
    /// When its state last changed.
    pub updated_at: UnixMs,
    /// When it ended, failed or was interrupted.
    pub ended_at: Option<UnixMs>,
    /// The session key made for it.
    pub key: Option<TokenId>,
    /// Its network policy; absent for an agent that is not confined.
    pub network: Option<NetworkPolicy>,
    /// Its spending limits, and what it has spent.
    pub spending: SpendingRecord,
    /// What was chosen for it when it started.
    pub choice: SessionChoice,
}

/// What was chosen for a session when it started, instead of what is configured.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionChoice {
    /// The provider of its model.
    pub provider: Option<String>,
    /// The name of its model.
    pub model: Option<String>,
    /// The answer to its agent's permission requests.
    pub permissions: Option<PermissionMode>,
}

/// The stored spending limits and usage of a session. All values only grow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpendingRecord {
    /// Its spending limits.
    pub limits: SpendLimits,
    /// The usage of its models, including sessions that its agent started.
    pub usage: ModelUsage,
    /// How long its agents have worked, in milliseconds.
    pub working_ms: u64,
}

/// A write. A list of them is one atomic commit.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// The garden's timeline changed. Refused unless it is the next revision.
    Timeline {
        /// The number of changes so far, this one included.
        revision: u64,
        /// The change.
        change: TimelineChange,
    },
    /// Regions of the garden were heard. The oldest of too many are dropped.
    Heard(Vec<HeardRecord>),
    /// A new job.
    JobCreated(Box<JobRecord>),
    /// A pending job starts to run.
    JobStarted {
        /// The id of the job.
        id: JobId,
        /// When it happened.
        at: UnixMs,
    },
    /// A job ended.
    JobEnded {
        /// The id of the job.
        id: JobId,
        /// Its outcome.
        end: Box<JobEnd>,
    },
    /// A new artifact. In a variation set, the store gives it the next free index in the same
    /// commit.
    ArtifactCreated(Box<ArtifactRecord>),
    /// A source of an artifact that was created in the same commit.
    SourceAdded(SourceRecord),
    /// A new annotation of an artifact.
    AnnotationAdded(AnnotationRecord),
    /// A new identity, or a new name and more hints for one.
    IdentityBound(IdentityRecord),
    /// An identity has a tag.
    IdentityTagged {
        /// The identity.
        identity: IdentityKey,
        /// The namespace of the tag.
        namespace: String,
        /// The value of the tag.
        value: String,
        /// When it happened.
        at: UnixMs,
    },
    /// Ports of two identities are connected. A repeat changes nothing.
    IdentitiesConnected(ConnectionRecord),
    /// A new token.
    TokenCreated(TokenRecord),
    /// A token is no longer valid.
    TokenRevoked {
        /// The id of the token.
        id: TokenId,
        /// When it happened.
        at: UnixMs,
    },
    /// A token was used.
    TokenUsed {
        /// The id of the token.
        id: TokenId,
        /// When it happened.
        at: UnixMs,
    },
    /// A principal uploaded a blob, and may therefore read it.
    BlobUploaded {
        /// The hash of the content.
        hash: BlobHash,
        /// The uploader.
        owner: PrincipalId,
        /// The project it belongs to.
        project: Option<ProjectId>,
        /// The session whose agent uploaded it.
        session: Option<SessionId>,
        /// The MIME type that this owner stored it with.
        mime_type: String,
        /// When it happened.
        at: UnixMs,
    },
    /// A new project.
    ProjectCreated(Box<ProjectRecord>),
    /// A project has new answers to permission requests.
    ProjectPermissions {
        /// The id of the project.
        id: ProjectId,
        /// The new answers; absent if the project does not set them.
        permissions: Option<PermissionPolicy>,
    },
    /// A project is deleted, with its workspaces and sessions. Refused while a session is live.
    ProjectDeleted {
        /// The id of the project.
        id: ProjectId,
    },
    /// A new workspace.
    WorkspaceCreated(WorkspaceRecord),
    /// A session started in a workspace.
    WorkspaceUsed {
        /// The id of the workspace.
        id: WorkspaceId,
        /// When it happened.
        at: UnixMs,
    },
    /// A workspace is deleted, with its sessions. Refused while a session is live.
    WorkspaceDeleted {
        /// The id of the workspace.
        id: WorkspaceId,
    },
    /// A new session.
    SessionCreated(Box<SessionRecord>),
    /// A session changed state.
    SessionChanged {
        /// The id of the session.
        id: SessionId,
        /// Its new state.
        state: SessionState,
        /// When it happened.
        at: UnixMs,
    },
    /// A session has a new network policy.
    SessionNetwork {
        /// The id of the session.
        id: SessionId,
        /// Its new network policy.
        network: NetworkPolicy,
    },
    /// A session has a higher limit or has spent something. Each number only replaces a smaller
    /// one, so that the order of writes does not matter.
    SessionSpent {
        /// The id of the session.
        id: SessionId,
        /// Its current limits and usage.
        spending: Box<SpendingRecord>,
    },
    /// A session is deleted, with the keys made for it. Refused while it is live.
    SessionDeleted {
        /// The id of the session.
        id: SessionId,
    },
}
