//! Content-addressed storage in files. A blob is named by the BLAKE3 hash of its bytes, is written
//! once and never changed, and is on disk before it is reported as stored. Content streams in and
//! out, so that a blob of any size needs little memory.
//!
//! Main types: [`Blobs`] (the store), [`BlobReader`] (the store for a process that only reads),
//! [`Writer`] and [`Reader`] (streaming in and out), [`Uploads`] (content in several pieces),
//! [`Roots`] (local files a caller may name), [`Tree`] (a directory that an untrusted process may be
//! writing in) and [`tree::Snapshot`] (an earlier state of one, to compare it with).
//!
//! Invariants:
//! * Only a [`BlobHash`](ringback_proto::ids::BlobHash) ever becomes a file name below the root.
//! * A name that exists is never written again, unless its content is damaged; its sidecar is always
//!   created first.
//! * A [`Reader`] is only made for a file whose content was compared with its name.
//! * What [`Writer::finish`] returns survives a power failure; a writer dropped earlier leaves
//!   nothing.
//! * A local file is opened only beneath an allowed root, checked by the kernel as part of opening
//!   it.
//! * Nothing in a [`Tree`] is read or written through a link, and nothing that would block is opened.
//! * A tree is walked, measured and removed with a stack and descriptors that do not grow with its depth.
//! * Everything here blocks: async callers go through a blocking pool. No clock is read, except to
//!   give up on two texts that take too long to compare.
//! * One process owns the root: the store's lock on the data directory ensures that. Others may read
//!   it through a [`BlobReader`], which changes nothing.

mod blob_reader;
mod blobs;
mod error;
mod hashing;
mod layout;
mod reader;
mod rooted;
mod survey;
pub mod tree;
mod uploads;
mod verified;
mod writer;

pub use blob_reader::BlobReader;
pub use blobs::{Blobs, Info, Stats};
pub use error::{FileError, OpenBlobsError, ReadBlobError, UploadError, WriteBlobError};
pub use hashing::hash_of;
pub use reader::Reader;
pub use rooted::{OpenRootedError, Roots, RootsError};
pub use survey::{Survey, survey};
pub use tree::Tree;
pub use uploads::{UploadLimits, Uploads};
pub use writer::{MIME_CHARS_MAX, StoredContent, Writer};

/// The name of the root in a data directory.
pub const DIR: &str = "blobs";
