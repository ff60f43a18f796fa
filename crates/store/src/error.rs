//! Errors, by operation. SQLite's own errors are only in `source`.

use std::io;
use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_proto::ids::{
    ArtifactId, JobId, ProjectId, RegionId, SessionId, TokenId, WorkspaceId,
};
use ringback_proto::record::JobState;

/// A cause that several callers share.
pub(crate) type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why a data directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    /// Another daemon uses it.
    #[error(
        "the data directory `{path}` is in use by {holder}; stop it or choose another directory"
    )]
    Locked {
        /// The directory.
        path: Utf8PathBuf,
        /// The process that holds it.
        holder: String,
    },
    /// The directory or a file in it cannot be created or opened.
    #[error("cannot {action} `{path}`")]
    File {
        /// The attempted action.
        action: &'static str,
        /// The path.
        path: Utf8PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// Written by a newer build.
    #[error(
        "the store at `{path}` has format {found}, but this build reads up to {newest}; use a newer \
         build"
    )]
    TooNew {
        /// The database.
        path: Utf8PathBuf,
        /// Its format.
        found: u32,
        /// The newest format this build knows.
        newest: u32,
    },
    /// A database of another program.
    #[error("`{path}` is a database of another program; choose another data directory")]
    NotOurs {
        /// The database.
        path: Utf8PathBuf,
    },
    /// SQLite reported an error.
    #[error("cannot open the store at `{path}`")]
    Database {
        /// The database.
        path: Utf8PathBuf,
        /// The error of SQLite.
        #[source]
        source: Cause,
    },
}

/// Why a commit failed. Nothing of its request was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// The data directory was deleted, moved or replaced while the daemon ran.
    #[error(
        "the data directory `{path}` is gone, so nothing can be stored; restore it and restart the \
         daemon"
    )]
    Lost {
        /// Where it was.
        path: Utf8PathBuf,
    },
    /// Another program has the database locked.
    #[error(
        "another program has locked the database, so nothing can be stored; close that program and \
         try again"
    )]
    Locked,
    /// The parent of a new artifact does not exist.
    #[error("artifact {id} names the parent {parent}, which does not exist")]
    NoParent {
        /// The new artifact.
        id: ArtifactId,
        /// The missing parent.
        parent: ArtifactId,
    },
    /// An annotation of an artifact that does not exist.
    #[error("cannot annotate artifact {id}: no such artifact")]
    NoArtifact {
        /// The id of the artifact.
        id: ArtifactId,
    },
    /// There are too many of them already.
    #[error("there can be at most {max} {what}")]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there can be.
        max: u32,
    },
    /// A change of an identity that does not exist.
    #[error("no such identity: `{id}`")]
    NoIdentity {
        /// The id of the identity.
        id: String,
    },
    /// A change of a job that does not exist.
    #[error("no such job: {id}")]
    NoJob {
        /// The id of the job.
        id: JobId,
    },
    /// A change of a token that does not exist.
    #[error("no such token: {id}")]
    NoToken {
        /// The id of the token.
        id: TokenId,
    },
    /// A change of a project that does not exist, or a new record in it.
    #[error("no such project: {id}")]
    NoProject {
        /// The id of the project.
        id: ProjectId,
    },
    /// A change of a workspace that does not exist, or a session in it.
    #[error("no such workspace in the project: {id}")]
    NoWorkspace {
        /// The id of the workspace.
        id: WorkspaceId,
    },
    /// A change of a session that does not exist.
    #[error("no such session: {id}")]
    NoSession {
        /// The id of the session.
        id: SessionId,
    },
    /// A change of a region that does not exist.
    #[error("no such region: {id}")]
    NoRegion {
        /// The id of the region.
        id: RegionId,
    },
    /// A change of the timeline that is not its next revision.
    #[error("the timeline is past revision {revision}; try again")]
    StaleTimeline {
        /// The revision of the change.
        revision: u64,
    },
    /// The record to be deleted is in use.
    #[error("{what} is in use by session {session}; end it first")]
    InUse {
        /// The kind of record and its id.
        what: String,
        /// A live session.
        session: SessionId,
    },
    /// A job that is already past this change.
    #[error("job {id} is already {}", state.as_str())]
    Stale {
        /// The id of the job.
        id: JobId,
        /// Its state.
        state: JobState,
    },
    /// A job cannot end in a state that is not final.
    #[error("job {id} cannot end as {}", state.as_str())]
    NotAnEnd {
        /// The id of the job.
        id: JobId,
        /// The given state.
        state: JobState,
    },
    /// The owner's request id was used before.
    #[error("the request was seen before: it created job {existing}")]
    Repeated {
        /// The job it created.
        existing: JobId,
    },
    /// The id of a new record is already in use.
    #[error("{what} already exists")]
    Taken {
        /// The kind of record and its id.
        what: String,
    },
    /// The owner already has a project of this name.
    #[error("project already exists")]
    SameName,
    /// The disk is full. Later commits may succeed.
    #[error("the disk is full; free some space")]
    DiskFull,
    /// The store can no longer write.
    #[error("the store cannot write after an earlier failure; restart the daemon")]
    Failed {
        /// The first failure.
        #[source]
        source: Cause,
    },
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// The queue of the writer is full: try again shortly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the store's queue is full; try again shortly")]
pub struct QueueFull;

/// Why a read failed.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A cursor that no page of this list returned.
    #[error("the cursor does not belong to this list; start without one")]
    BadCursor,
    /// SQLite reported an error, or a row does not match the schema.
    #[error("cannot read {what} from the store")]
    Database {
        /// What was being read.
        what: &'static str,
        /// The cause.
        #[source]
        source: Cause,
    },
}

impl ReadError {
    pub(crate) fn on(what: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| Self::Database { what, source: Arc::new(source) }
    }
}
