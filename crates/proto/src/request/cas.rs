//! The content store: `cas_*`.

use super::wire_struct;
use crate::data::Data;
use crate::ids::BlobHash;

wire_struct! {
    /// Content to store, or one piece of it.
    CasStoreRequest {
        /// The bytes.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Data>")]
        data: Data,
        /// The MIME type of the content, such as `audio/midi`.
        mime_type: String,
        /// Your name for an upload in several pieces, up to 64 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        upload_id: Option<String>,
        /// The offset at which this piece starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        /// Whether this is the final piece.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<bool>,
    }

    /// The stored content, or the upload so far.
    CasStoredResponse {
        /// The hash of the content; absent until the last piece has arrived.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<BlobHash>,
        /// The number of bytes stored so far.
        size: u64,
        /// The MIME type given at the first upload of this content.
        mime_type: String,
    }

    /// The content to read, or a range of it.
    CasGetRequest {
        /// The hash of the content.
        hash: BlobHash,
        /// The offset to start at; 0 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        /// The maximum number of bytes to read; as many as fit into a message if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        length: Option<u64>,
    }

    /// Stored content.
    CasContentResponse {
        /// The hash of the content.
        hash: BlobHash,
        /// The size of the whole content.
        size: u64,
        /// Its MIME type.
        mime_type: String,
        /// The requested bytes.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Data>")]
        data: Data,
    }

    /// The content to inspect.
    CasInspectRequest {
        /// The hash of the content.
        hash: BlobHash,
    }

    /// Facts about content.
    CasInspectedResponse {
        /// The hash of the content.
        hash: BlobHash,
        /// Whether it is stored and you may read it.
        exists: bool,
        /// Its size in bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
        /// Its MIME type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its first characters, if it is text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
    }

    /// A file on the daemon's machine.
    CasUploadFileRequest {
        /// Its path, inside one of `files.roots`.
        file_path: String,
        /// Its MIME type.
        mime_type: String,
    }

    /// No input.
    #[derive(Default)]
    CasStatsRequest {}

    /// The amount of stored content.
    CasStatsResponse {
        /// The number of blobs.
        blobs: u64,
        /// The total number of bytes.
        bytes: u64,
    }
}
