//! How failures below become the one error: the caller gets what it can act on, the log the rest.

use std::io;

use ringback_blobs::tree::TreeError;
use ringback_blobs::{OpenRootedError, ReadBlobError, UploadError, WriteBlobError};
use ringback_proto::{Certainty, Error, ErrorKind};
use ringback_store::{CommitError, ReadError};

/// Our fault: the cause goes to the log under an id that the caller is told.
pub(crate) fn internal(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    let log_id = format!("log_{:016x}", rand::random::<u64>());
    tracing::error!(log_id, error = causes(&error), "a call failed inside the daemon");
    Error::internal(log_id, error)
}

/// An error with all that caused it.
pub(crate) fn causes(error: &dyn std::error::Error) -> String {
    let mut causes = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        causes = format!("{causes}: {cause}");
        source = cause.source();
    }
    causes
}

pub(crate) fn read(error: ReadError) -> Error {
    match error {
        ReadError::BadCursor => Error::invalid_field("cursor", error.to_string()),
        ReadError::Database { .. } => internal(error),
    }
}

pub(crate) fn commit(error: CommitError) -> Error {
    match error {
        CommitError::NoParent { parent, .. } => Error::not_found("artifact", parent),
        CommitError::NoArtifact { id } => Error::not_found("artifact", id),
        CommitError::NoToken { id } => Error::not_found("token", id),
        CommitError::NoJob { id } => Error::not_found("job", id),
        CommitError::NoProject { id } => Error::not_found("project", id),
        CommitError::NoWorkspace { id } => Error::not_found("workspace", id),
        CommitError::NoSession { id } => Error::not_found("session", id),
        CommitError::InUse { .. } | CommitError::SameName => {
            Error::new(ErrorKind::Conflict, error.to_string())
        }
        CommitError::DiskFull => Error::new(ErrorKind::Busy, error.to_string()),
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
            tracing::error!(%hash, %found, "a blob is damaged; storing its content again mends it");
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

/// A path outside the roots and one that does not exist look the same to a caller who may not
/// know what lies outside.
pub(crate) fn rooted(error: &OpenRootedError) -> Error {
    tracing::info!(error = %error, "a file named by a caller was refused");
    Error::invalid_field("file_path", error.to_string())
}

/// What is in a workspace is the caller's to see; what the system refused may be for the log.
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

/// A directory that could not be removed: which one is for the caller, why is for both.
pub(crate) fn tree_left(error: TreeError) -> Error {
    let why = causes(&error);
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
    tracing::error!(error = why, "a directory could not be removed");
    let message = format!("{why}; what is left stays, and can be deleted again");
    Error::new(kind, message).with_source(error)
}

/// What a refusal of the system means to a caller who can do something about it.
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
