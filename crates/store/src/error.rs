//! What can go wrong, by operation. SQLite's own errors stay behind `source`.

use std::io;
use std::sync::Arc;

use camino::Utf8PathBuf;
use ringback_proto::ids::{ArtifactId, JobId, ProjectId, SessionId, TokenId, WorkspaceId};
use ringback_proto::record::JobState;

/// A cause that several callers share.
pub(crate) type Cause = Arc<dyn std::error::Error + Send + Sync>;

/// Why a data directory cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenStoreError {
    /// Another daemon has it.
    #[error(
        "the data directory `{path}` is in use by {holder}; stop it or choose another directory"
    )]
    Locked {
        /// The directory.
        path: Utf8PathBuf,
        /// The process that holds it.
        holder: String,
    },
    /// The directory or a file in it cannot be made or opened.
    #[error("cannot {action} `{path}`")]
    File {
        /// What was attempted.
        action: &'static str,
        /// On what.
        path: Utf8PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// Written by a newer build.
    #[error(
        "the store at `{path}` has format {found}, this build reads up to {newest}; use a newer build"
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
    /// SQLite refused.
    #[error("cannot open the store at `{path}`")]
    Database {
        /// The database.
        path: Utf8PathBuf,
        /// What it said.
        #[source]
        source: Cause,
    },
}

/// Why a commit did not happen. Nothing of its request was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// The data directory was deleted, moved or replaced under the daemon.
    #[error(
        "the data directory `{path}` is gone, so nothing can be kept; restore it and start the daemon again"
    )]
    Lost {
        /// Where it was.
        path: Utf8PathBuf,
    },
    /// The parent of a new artifact does not exist.
    #[error("artifact {id} names the parent {parent}, which does not exist")]
    NoParent {
        /// The new artifact.
        id: ArtifactId,
        /// What it was to be made from.
        parent: ArtifactId,
    },
    /// A remark on an artifact that does not exist.
    #[error("there is no artifact {id} to annotate")]
    NoArtifact {
        /// Which.
        id: ArtifactId,
    },
    /// A change of a job that does not exist.
    #[error("there is no job {id}")]
    NoJob {
        /// Which.
        id: JobId,
    },
    /// A change of a token that does not exist.
    #[error("there is no token {id}")]
    NoToken {
        /// Which.
        id: TokenId,
    },
    /// A change of a project that does not exist, or something new in it.
    #[error("there is no project {id}")]
    NoProject {
        /// Which.
        id: ProjectId,
    },
    /// A change of a workspace that does not exist, or a session in it.
    #[error("there is no workspace {id} in the project")]
    NoWorkspace {
        /// Which.
        id: WorkspaceId,
    },
    /// A change of a session that does not exist.
    #[error("there is no session {id}")]
    NoSession {
        /// Which.
        id: SessionId,
    },
    /// What is to be deleted is in use.
    #[error("{what} is in use by session {session}; end it first")]
    InUse {
        /// The kind of record and its id.
        what: String,
        /// A session that is live.
        session: SessionId,
    },
    /// A job that is past the change.
    #[error("job {id} is {} already", state.as_str())]
    Stale {
        /// Which.
        id: JobId,
        /// Where it stands.
        state: JobState,
    },
    /// A job cannot end in a state that is no end.
    #[error("job {id} cannot end as {}", state.as_str())]
    NotAnEnd {
        /// Which.
        id: JobId,
        /// The state given.
        state: JobState,
    },
    /// The owner's request id was used before.
    #[error("the request was seen before: it made job {existing}")]
    Repeated {
        /// The job it made.
        existing: JobId,
    },
    /// The id of a new record exists.
    #[error("{what} exists already")]
    Taken {
        /// The kind of record and its id.
        what: String,
    },
    /// The owner has a project of this name.
    #[error("project already exists")]
    SameName,
    /// The disk is full. Later commits are tried again.
    #[error("the disk is full; free some space")]
    DiskFull,
    /// The store can no longer write.
    #[error("the store cannot write since an earlier failure; restart the daemon")]
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
#[error("the store's queue is full, try again shortly")]
pub struct Full;

/// Why something cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A cursor that no page of ours ended with.
    #[error("the cursor is not one of this list; start without one")]
    BadCursor,
    /// SQLite refused, or a row is not what the schema says.
    #[error("cannot read {what} from the store")]
    Database {
        /// What was to be read.
        what: &'static str,
        /// Why not.
        #[source]
        source: Cause,
    },
}

impl ReadError {
    pub(crate) fn on(what: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| Self::Database { what, source: Arc::new(source) }
    }
}
