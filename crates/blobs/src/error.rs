//! Errors, by operation.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::BlobHash;

/// A failed file operation: the action and the path.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{path}`")]
pub struct FileError {
    /// The attempted action.
    pub action: &'static str,
    /// The path.
    pub path: Utf8PathBuf,
    /// The error of the system.
    #[source]
    pub source: io::Error,
}

impl FileError {
    pub(crate) fn on<'a>(
        action: &'static str,
        path: &'a Utf8Path,
    ) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self { action, path: path.to_owned(), source }
    }
}

/// Why the content store cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenBlobsError {
    /// A directory cannot be created, read or cleaned.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file name that is not UTF-8, so not one of our blobs.
    #[error("a file below `{path}` has a name that is not UTF-8; move it away")]
    NotUtf8 {
        /// The directory.
        path: Utf8PathBuf,
    },
}

/// Why content cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum WriteBlobError {
    /// The system reported an error.
    #[error(transparent)]
    File(#[from] FileError),
    /// The type is not a MIME type.
    #[error("invalid MIME type: it must have 1 to 255 visible ASCII characters")]
    InvalidMime,
    /// The content does not match the hash that its sender gave.
    #[error("the content hashes to {found}, not to {expected}")]
    OtherContent {
        /// The hash that its sender gave.
        expected: BlobHash,
        /// The hash of the received content.
        found: BlobHash,
    },
    /// An earlier write failed, so the content has a hole.
    #[error("an earlier write to this blob failed; start again")]
    Broken,
}

/// Why content cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadBlobError {
    /// The blob does not exist.
    #[error("no such blob: {hash}")]
    NotFound {
        /// The requested hash.
        hash: BlobHash,
    },
    /// The range starts after the end.
    #[error("offset {offset} is past the end of a blob of {size} bytes")]
    OutOfRange {
        /// The start of the range.
        offset: u64,
        /// The size of the blob.
        size: u64,
    },
    /// The content does not match its name.
    #[error("the content of blob {hash} is damaged; store the same content again to repair it")]
    Damaged {
        /// The name.
        hash: BlobHash,
        /// The hash of the damaged content.
        found: BlobHash,
    },
    /// The system reported an error.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Why a piece of an upload, or its end, is refused.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The id is empty or too long.
    #[error("an upload id must have 1 to {max} characters")]
    InvalidId {
        /// The limit.
        max: usize,
    },
    /// No upload with that id was started, or it was idle for too long.
    #[error("no such open upload; start again at offset 0")]
    Unknown,
    /// The piece does not follow the previous ones.
    #[error("the next piece must start at offset {expected}, not {offset}")]
    WrongOffset {
        /// The offset that was sent.
        offset: u64,
        /// The offset that continues the upload.
        expected: u64,
    },
    /// Over the size limit of one upload.
    #[error("an upload may have at most {max} bytes")]
    TooLarge {
        /// The limit.
        max: u64,
    },
    /// Too many uploads are open.
    #[error("{max} uploads are already open; finish one or wait")]
    TooMany {
        /// The limit that was reached: of all principals, or of one.
        max: usize,
    },
    /// The content cannot be stored; the upload is discarded.
    #[error(transparent)]
    Write(#[from] WriteBlobError),
}
