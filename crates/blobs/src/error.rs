//! What can go wrong, by operation.

use std::io;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_proto::ids::BlobHash;

/// A file operation that failed: what was attempted, and on what.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} `{path}`")]
pub struct FileError {
    /// What was attempted.
    pub action: &'static str,
    /// On what.
    pub path: Utf8PathBuf,
    /// What the system said.
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
    /// A directory cannot be made, read or cleaned.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file name that is no text, so no blob of ours.
    #[error("a file below `{path}` has a name that is not UTF-8; move it away")]
    NotUtf8 {
        /// The directory.
        path: Utf8PathBuf,
    },
}

/// Why content cannot be stored.
#[derive(Debug, thiserror::Error)]
pub enum WriteBlobError {
    /// The disk refused.
    #[error(transparent)]
    File(#[from] FileError),
    /// The type is no MIME type.
    #[error("a MIME type is 1 to 255 visible ASCII characters, this one is not")]
    InvalidMime,
    /// The content is not what its sender said it would be.
    #[error("the content hashes to {found}, not to {expected}")]
    OtherContent {
        /// The name its sender gave.
        expected: BlobHash,
        /// The hash of what came.
        found: BlobHash,
    },
    /// An earlier write failed, so the content has a hole.
    #[error("an earlier write to this blob failed; start again")]
    Broken,
}

/// Why content cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadBlobError {
    /// There is no such blob.
    #[error("there is no blob {hash}")]
    NotFound {
        /// The name asked for.
        hash: BlobHash,
    },
    /// The range starts behind the end.
    #[error("offset {offset} is behind the end of a blob of {size} bytes")]
    OutOfRange {
        /// Where the range starts.
        offset: u64,
        /// How long the blob is.
        size: u64,
    },
    /// The content is not what its name says.
    #[error("the content of blob {hash} is damaged; store the same content again to mend it")]
    Damaged {
        /// The name.
        hash: BlobHash,
        /// The hash of what is there.
        found: BlobHash,
    },
    /// The disk refused.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Why a piece of an upload, or its end, is refused.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The id is empty or too long.
    #[error("an upload id is 1 to {max} characters")]
    InvalidId {
        /// The limit.
        max: usize,
    },
    /// No upload of that id was begun, or it was idle for too long.
    #[error("there is no open upload of that id; begin again at offset 0")]
    Unknown,
    /// The piece does not follow what is there.
    #[error("the next piece starts at offset {expected}, not {offset}")]
    WrongOffset {
        /// What was sent.
        offset: u64,
        /// What continues the upload.
        expected: u64,
    },
    /// Over the size limit of one upload.
    #[error("an upload has at most {max} bytes")]
    TooLarge {
        /// The limit.
        max: u64,
    },
    /// Too many uploads are open.
    #[error("{max} uploads are open already; finish one or wait")]
    TooMany {
        /// The limit that was hit: of all, or of one principal.
        max: usize,
    },
    /// The content cannot be stored; the upload is gone.
    #[error(transparent)]
    Write(#[from] WriteBlobError),
}
