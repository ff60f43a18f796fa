//! Converts failures of the layers below to the one error type: the caller gets what it can act on,
//! the log gets the rest.

use std::io;

use ringback_blobs::tree::{DiffError, TreeError};
use ringback_blobs::{OpenRootedError, ReadBlobError, UploadError, WriteBlobError};
pub(crate) use ringback_proto::chain;
use ringback_proto::{Certainty, Error, ErrorKind};
use ringback_store::query::QueryError;
use ringback_store::{CommitError, ReadError};

/// Converts a fault of the daemon: the cause goes to the log under an id that the caller gets.
#[must_use]
pub fn internal(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    let log_id = format!("log_{:016x}", rand::random::<u64>());
    tracing::error!(log_id, error = chain(&error), "a call failed inside the daemon");
    Error::internal(log_id, error)
}

pub(crate) fn read(error: ReadError) -> Error {
    match error {
        ReadError::BadCursor => Error::invalid_field("cursor", error.to_string()),
        ReadError::Database { .. } => internal(error),
    }
}

pub(crate) fn query(error: QueryError) -> Error {
    let message = error.to_string();
    match error {
        QueryError::Invalid(_) => Error::invalid_field("query", message),
        QueryError::Variable(_) => Error::invalid_field("variables", message),
        QueryError::TooLarge(_) => Error::new(ErrorKind::TooLarge, message),
        QueryError::Timeout => Error::new(ErrorKind::Timeout, message),
        QueryError::Stopped => Error::cancelled("at the caller's request"),
        QueryError::Busy => Error::busy("the number of queries"),
        QueryError::Database { .. } => internal(error),
    }
}

pub(crate) fn commit(error: CommitError) -> Error {
    match error {
        CommitError::NoParent { parent, .. } => Error::not_found("artifact", parent),
        CommitError::NoArtifact { id } => Error::not_found("artifact", id),
        CommitError::NoToken { id } => Error::not_found("token", id),
        CommitError::NoIdentity { id } => Error::not_found("identity", id),
        CommitError::NoJob { id } => Error::not_found("job", id),
        CommitError::NoProject { id } => Error::not_found("project", id),
        CommitError::NoWorkspace { id } => Error::not_found("workspace", id),
        CommitError::NoSession { id } => Error::not_found("session", id),
        CommitError::NoRegion { id } => Error::not_found("region", id),
        CommitError::InUse { .. } | CommitError::SameName | CommitError::StaleTimeline { .. } => {
            Error::new(ErrorKind::Conflict, error.to_string())
        }
        CommitError::TooMany { .. } => Error::new(ErrorKind::TooLarge, error.to_string()),
        CommitError::DiskFull | CommitError::Locked => {
            Error::new(ErrorKind::Busy, error.to_string())
        }
        CommitError::Lost { .. } => {
            Error::new(ErrorKind::Busy, error.to_string()).with_certainty(Certainty::MayHaveRun)
        }
        CommitError::Failed { .. } | CommitError::Closed => {
            internal(error).with_certainty(Certainty::MayHaveRun)
        }
        CommitError::Stale { .. }
        | CommitError::NotAnEnd { .. }
        | CommitError::Repeated { .. }
        | CommitError::Taken { .. } => internal(error),
    }
}

pub(crate) fn read_blob(error: ReadBlobError) -> Error {
    match error {
        ReadBlobError::NotFound { hash } => Error::not_found("blob", hash),
        ReadBlobError::OutOfRange { .. } => Error::invalid_field("offset", error.to_string()),
        ReadBlobError::Damaged { hash, found } => {
            tracing::error!(%hash, %found, "a blob is damaged; store its content again to fix it");
            Error::new(ErrorKind::Damaged, error.to_string())
        }
        ReadBlobError::File(_) => internal(error),
    }
}

pub(crate) fn write_blob(error: WriteBlobError) -> Error {
    match error {
        WriteBlobError::InvalidMime => Error::invalid_field("mime_type", error.to_string()),
        WriteBlobError::OtherContent { .. } => Error::invalid_field("hash", error.to_string()),
        WriteBlobError::File(file) if source_kind(&file.source) == Some(ErrorKind::Busy) => {
            let message = "the disk is full; free some space";
            Error::new(ErrorKind::Busy, message).with_certainty(Certainty::NotStarted)
        }
        other @ (WriteBlobError::File(_) | WriteBlobError::Broken) => {
            internal(other).with_certainty(Certainty::MayHaveRun)
        }
    }
}

pub(crate) fn upload(error: UploadError) -> Error {
    match error {
        UploadError::InvalidId { .. } => Error::invalid_field("upload_id", error.to_string()),
        UploadError::Unknown => Error::new(ErrorKind::NotFound, error.to_string()),
        UploadError::WrongOffset { .. } => Error::invalid_field("offset", error.to_string()),
        UploadError::TooLarge { .. } => Error::new(ErrorKind::TooLarge, error.to_string()),
        UploadError::TooMany { .. } => Error::new(ErrorKind::Busy, error.to_string()),
        UploadError::Write(error) => write_blob(error),
    }
}

/// Reports a path outside the roots like one that does not exist, since the caller may not know
/// what lies outside.
pub(crate) fn rooted(error: &OpenRootedError) -> Error {
    tracing::info!(error = %error, "refused a file path from a caller");
    Error::invalid_field("file_path", error.to_string())
}

/// A caller may see the contents of a workspace; errors of the system may belong in the log only.
pub(crate) fn tree(error: TreeError) -> Error {
    match &error {
        TreeError::NotFound { .. } => Error::new(ErrorKind::NotFound, error.to_string()),
        TreeError::Taken { .. } => Error::new(ErrorKind::Conflict, error.to_string()),
        TreeError::Outside { .. }
        | TreeError::Link { .. }
        | TreeError::NotAFile { .. }
        | TreeError::NotADirectory { .. }
        | TreeError::TooDeep { .. } => Error::invalid_field("path", error.to_string()),
        TreeError::Unsupported { .. } => Error::invalid_field("data", error.to_string()),
        TreeError::TooManyEntries { .. } | TreeError::TooManyBytes { .. } => {
            Error::new(ErrorKind::TooLarge, error.to_string())
        }
        TreeError::Archive { source, .. } | TreeError::File { source, .. } => {
            match (source_kind(source), &error) {
                (Some(kind), _) => Error::new(kind, format!("{error}: {source}")),
                (None, TreeError::Archive { action: "read", .. }) => {
                    Error::invalid_field("data", format!("{error}: {source}"))
                }
                (None, _) => internal(error),
            }
        }
    }
}

pub(crate) fn diff(error: DiffError) -> Error {
    match error {
        DiffError::Tree(error) => tree(error),
        DiffError::Content(error) => internal(error),
        DiffError::TooManyChanges { .. } => Error::new(ErrorKind::TooLarge, error.to_string()),
        DiffError::Stopped => Error::cancelled("the comparison was stopped"),
    }
}

/// Reports a directory that could not be removed: the caller learns which one, caller and log learn
/// why.
pub(crate) fn tree_left(error: TreeError) -> Error {
    let why = chain(&error);
    let kind = match &error {
        TreeError::File { source, .. } => source_kind(source).unwrap_or(ErrorKind::Internal),
        TreeError::Taken { .. }
        | TreeError::Outside { .. }
        | TreeError::Link { .. }
        | TreeError::NotFound { .. }
        | TreeError::NotAFile { .. }
        | TreeError::NotADirectory { .. }
        | TreeError::TooDeep { .. }
        | TreeError::TooManyEntries { .. }
        | TreeError::TooManyBytes { .. }
        | TreeError::Unsupported { .. }
        | TreeError::Archive { .. } => ErrorKind::Internal,
    };
    tracing::error!(error = why, "cannot remove a directory");
    let message = format!("{why}; the rest is kept; try to delete it again");
    Error::new(kind, message).with_source(error)
}

/// Maps a system error to a kind that the caller can act on.
fn source_kind(source: &io::Error) -> Option<ErrorKind> {
    let is = |kind| source.kind() == kind;
    if is(io::ErrorKind::FileTooLarge) {
        Some(ErrorKind::TooLarge)
    } else if is(io::ErrorKind::StorageFull) {
        Some(ErrorKind::Busy)
    } else {
        is(io::ErrorKind::PermissionDenied).then_some(ErrorKind::Conflict)
    }
}
