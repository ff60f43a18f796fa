//! What must survive a restart, as values: core says what to write, the store writes it. These are
//! the records' meaning; how they lie on disk is the store's own affair.

use bytes::Bytes;

use crate::ids::{
    AnnotationId, ArtifactId, BlobHash, JobId, ProjectId, RequestId, SessionId, TokenId,
    VariationSetId, WorkspaceId,
};
use crate::network::NetworkPolicy;
use crate::permission::PermissionPolicy;
use crate::principal::{KeyLevel, Level, PrincipalId, Target};
use crate::request::{ModelUsage, ProjectLimits, SpendLimits};

/// Milliseconds since the Unix epoch, always passed in.
pub type UnixMs = u64;

/// The state of a job.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Waits for its turn.
    Pending,
    /// Runs.
    Running,
    /// Ended with a result.
    Complete,
    /// Ended with an error.
    Failed,
    /// Was cancelled, and the work has stopped.
    Cancelled,
}

impl JobState {
    /// Every state, in the order of a job's life.
    pub const ALL: [Self; 5] =
        [Self::Pending, Self::Running, Self::Complete, Self::Failed, Self::Cancelled];

    /// Whether the job has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Pending | Self::Running => false,
            Self::Complete | Self::Failed | Self::Cancelled => true,
        }
    }

    /// The name on the wire and in the store.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The state of a session.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Its agent is being started.
    Starting,
    /// Its agent works on a message.
    Running,
    /// Its agent waits for a message.
    Idle,
    /// It was ended.
    Ended,
    /// Its agent could not start, or broke off.
    Failed,
    /// The daemon stopped under it; a message continues it.
    Interrupted,
}

impl SessionState {
    /// Every state, in the order of a session's life.
    pub const ALL: [Self; 6] =
        [Self::Starting, Self::Running, Self::Idle, Self::Ended, Self::Failed, Self::Interrupted];

    /// Whether the session has an agent, or is about to.
    #[must_use]
    pub const fn is_live(self) -> bool {
        match self {
            Self::Starting | Self::Running | Self::Idle => true,
            Self::Ended | Self::Failed | Self::Interrupted => false,
        }
    }

    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Idle => "idle",
            Self::Ended => "ended",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// The call a job came from, so that a repeat of it is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RepeatKey {
    /// The request id or idempotency key, as 16 bytes.
    pub request_id: RequestId,
    /// BLAKE3 of tool and input: the same id with another body is a conflict.
    pub body_hash: BlobHash,
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRecord {
    /// Its id.
    pub id: JobId,
    /// The tool's name.
    pub tool: String,
    /// Who started it.
    pub owner: PrincipalId,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// The session whose agent started it with its key: it does not go on without that session.
    pub session: Option<SessionId>,
    /// The call it came from.
    pub repeat: Option<RepeatKey>,
    /// The request as MsgPack, so that a pending job can run after a restart.
    pub request: Bytes,
    /// Where it stands.
    pub state: JobState,
    /// The result as MsgPack, once complete.
    pub result: Option<Bytes>,
    /// The blob that holds the result, when it is large.
    pub result_blob: Option<BlobHash>,
    /// The [`crate::error::ToolError`] as MsgPack, once failed or cancelled.
    pub error: Option<Bytes>,
    /// When it was accepted.
    pub created_at: UnixMs,
    /// When it began to run.
    pub started_at: Option<UnixMs>,
    /// When it ended.
    pub completed_at: Option<UnixMs>,
    /// When the record may be dropped; only ended jobs have it.
    pub expires_at: Option<UnixMs>,
}

/// How a job ended.
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

/// An artifact as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRecord {
    /// Its own id: the same content twice is two artifacts.
    pub id: ArtifactId,
    /// The blob with the content.
    pub content_hash: BlobHash,
    /// The content's type.
    pub mime_type: String,
    /// The content's length in bytes.
    pub size: u64,
    /// Who made the record.
    pub owner: PrincipalId,
    /// The project it belongs to.
    pub project: Option<ProjectId>,
    /// Labels, in the order given.
    pub tags: Vec<String>,
    /// Who made the content, as the caller says.
    pub creator: String,
    /// What it was made from.
    pub parent_id: Option<ArtifactId>,
    /// The set of variations it belongs to.
    pub variation_set_id: Option<VariationSetId>,
    /// Its place in that set, from 0. The store fills it in: see [`Record::ArtifactCreated`].
    pub variation_index: Option<u32>,
    /// Free metadata as MsgPack.
    pub metadata: Option<Bytes>,
    /// When it was made.
    pub created_at: UnixMs,
}

/// A remark on an artifact as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnnotationRecord {
    /// Its id.
    pub id: AnnotationId,
    /// What it is about.
    pub artifact_id: ArtifactId,
    /// What it says.
    pub message: String,
    /// Who says so.
    pub source: String,
    /// How it feels.
    pub vibe: Option<String>,
    /// When it was made.
    pub created_at: UnixMs,
}

/// A token as it is stored: never the secret, only its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its public id.
    pub id: TokenId,
    /// What a person calls it.
    pub name: String,
    /// BLAKE3 of the secret.
    pub secret_hash: [u8; 32],
    /// The public key whose secret key the token's bytes are: how a CURVE peer shows the token
    /// without sending it.
    pub public_key: [u8; 32],
    /// How much it may do.
    pub level: Level,
    /// Where.
    pub target: Target,
    /// When it was made.
    pub created_at: UnixMs,
    /// When it ends by itself.
    pub expires_at: Option<UnixMs>,
    /// When it was last used, to the minute.
    pub last_used_at: Option<UnixMs>,
    /// When it was revoked.
    pub revoked_at: Option<UnixMs>,
    /// The one session it was minted for, and works for.
    pub session: Option<SessionId>,
}

/// A project as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectRecord {
    /// Its id.
    pub id: ProjectId,
    /// What a person calls it.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// Who made it.
    pub owner: PrincipalId,
    /// The agent its sessions run, unless they say otherwise.
    pub agent: Option<String>,
    /// The level of the keys minted for its sessions.
    pub key_level: KeyLevel,
    /// What its sessions are limited to, where it differs from the daemon's own limits.
    pub limits: ProjectLimits,
    /// What its sessions may reach, unless they say otherwise.
    pub network: Option<NetworkPolicy>,
    /// What its sessions and its container run in.
    pub image: Option<ProjectImage>,
    /// What is answered when its agents ask for permission, where it says.
    pub permissions: Option<PermissionPolicy>,
    /// When it was made.
    pub created_at: UnixMs,
}

/// The image of a project. The two are kept apart, so that a name that leaves the configuration is
/// never taken for an image of somebody else's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectImage {
    /// One of the configuration, by its name there.
    Named(String),
    /// Any other, as the engine knows it.
    Reference(String),
}

impl ProjectImage {
    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Named(name) | Self::Reference(name) => name,
        }
    }
}

/// A workspace as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceRecord {
    /// Its id.
    pub id: WorkspaceId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// When it was made.
    pub created_at: UnixMs,
    /// When a session last began in it.
    pub last_session_at: Option<UnixMs>,
}

/// A session as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRecord {
    /// Its id.
    pub id: SessionId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// The workspace its agent works in.
    pub workspace: WorkspaceId,
    /// Who started it; of a child, who started its root.
    pub owner: PrincipalId,
    /// The session whose agent started it.
    pub parent: Option<SessionId>,
    /// The first of its ancestors; itself if it has no parent.
    pub root: SessionId,
    /// How many ancestors it has.
    pub depth: u32,
    /// The agent it runs.
    pub agent: String,
    /// Where it stands.
    pub state: SessionState,
    /// When it was made.
    pub created_at: UnixMs,
    /// When its state last changed.
    pub updated_at: UnixMs,
    /// When it came to be without an agent.
    pub ended_at: Option<UnixMs>,
    /// The key minted for it.
    pub key: Option<TokenId>,
    /// What it may reach; absent for an agent that is not confined.
    pub network: Option<NetworkPolicy>,
    /// What it may spend, and has spent.
    pub spending: SpendingRecord,
}

/// What a session may spend and has spent, as it is stored. All of it only grows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpendingRecord {
    /// What it may spend.
    pub limits: SpendLimits,
    /// What its models have used, with those of the sessions that its agent started.
    pub usage: ModelUsage,
    /// How long its agents were at work, in milliseconds.
    pub working_ms: u64,
}

/// One thing to write. A list of them is one atomic commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// A new job.
    JobCreated(Box<JobRecord>),
    /// A pending job begins to run.
    JobStarted {
        /// Which.
        id: JobId,
        /// When.
        at: UnixMs,
    },
    /// A job ended.
    JobEnded {
        /// Which.
        id: JobId,
        /// How.
        end: Box<JobEnd>,
    },
    /// A new artifact. With a variation set, its index is the next free one of that set, given by
    /// the store in the same commit.
    ArtifactCreated(Box<ArtifactRecord>),
    /// A remark on an artifact.
    AnnotationAdded(AnnotationRecord),
    /// A new token.
    TokenCreated(TokenRecord),
    /// A token is no longer valid.
    TokenRevoked {
        /// Which.
        id: TokenId,
        /// When.
        at: UnixMs,
    },
    /// A token was used.
    TokenUsed {
        /// Which.
        id: TokenId,
        /// When.
        at: UnixMs,
    },
    /// A principal uploaded a blob, and so may read it.
    BlobUploaded {
        /// The content.
        hash: BlobHash,
        /// Whose upload.
        owner: PrincipalId,
        /// The project it belongs to.
        project: Option<ProjectId>,
        /// The type that this owner stored it with.
        mime_type: String,
        /// When.
        at: UnixMs,
    },
    /// A new project.
    ProjectCreated(Box<ProjectRecord>),
    /// Agents of a project get other answers.
    ProjectPermissions {
        /// Which.
        id: ProjectId,
        /// What is answered now; none if the project does not say.
        permissions: Option<PermissionPolicy>,
    },
    /// A project is gone, and with it its workspaces and sessions. Refused while one is live.
    ProjectDeleted {
        /// Which.
        id: ProjectId,
    },
    /// A new workspace.
    WorkspaceCreated(WorkspaceRecord),
    /// A session began in a workspace.
    WorkspaceUsed {
        /// Which.
        id: WorkspaceId,
        /// When.
        at: UnixMs,
    },
    /// A workspace is gone, and with it its sessions. Refused while one is live.
    WorkspaceDeleted {
        /// Which.
        id: WorkspaceId,
    },
    /// A new session.
    SessionCreated(Box<SessionRecord>),
    /// A session changed its state.
    SessionChanged {
        /// Which.
        id: SessionId,
        /// Where it stands now.
        state: SessionState,
        /// When.
        at: UnixMs,
    },
    /// A session may reach something else.
    SessionNetwork {
        /// Which.
        id: SessionId,
        /// What it may reach now.
        network: NetworkPolicy,
    },
    /// A session may spend more, or has spent something: each of these numbers is that of the session if
    /// it is the larger one, so that their order does not matter.
    SessionSpent {
        /// Which.
        id: SessionId,
        /// What it may spend now, and has spent.
        spending: Box<SpendingRecord>,
    },
    /// A session is gone, and with it the keys minted for it. Refused while it is live.
    SessionDeleted {
        /// Which.
        id: SessionId,
    },
}
