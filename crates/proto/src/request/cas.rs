//! The content store: `cas_*`.

use super::wire_struct;
use crate::data::Data;
use crate::ids::BlobHash;

wire_struct! {
    /// Content to store, whole or a piece of it.
    CasStoreRequest {
        /// The bytes.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Data>")]
        data: Data,
        /// Their type, such as `audio/midi`.
        mime_type: String,
        /// Your name for an upload in pieces, up to 64 characters.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        upload_id: Option<String>,
        /// Where the piece starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        /// Whether the piece is the final one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last: Option<bool>,
    }

    /// The content is stored, or the piece is taken.
    CasStoredResponse {
        /// The content's hash; absent until the last piece is taken.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<BlobHash>,
        /// How many bytes are there.
        size: u64,
        /// Their type: that of the first upload of this content.
        mime_type: String,
    }

    /// Which content, and which part of it.
    CasGetRequest {
        /// The content's hash.
        hash: BlobHash,
        /// Where to start; 0 if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        offset: Option<u64>,
        /// How many bytes at most; as many as a message holds if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        length: Option<u64>,
    }

    /// Content.
    CasContentResponse {
        /// The content's hash.
        hash: BlobHash,
        /// The size of the whole content.
        size: u64,
        /// Its type.
        mime_type: String,
        /// The bytes asked for.
        #[serde(default, deserialize_with = "super::null_as_default")]
        #[schemars(with = "Option<Data>")]
        data: Data,
    }

    /// Which content.
    CasInspectRequest {
        /// The content's hash.
        hash: BlobHash,
    }

    /// About content.
    CasInspectedResponse {
        /// The content's hash.
        hash: BlobHash,
        /// Whether it is stored, and yours to read.
        exists: bool,
        /// Its size.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
        /// Its type.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Its first characters, if it is text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        preview: Option<String>,
    }

    /// A file of the daemon's machine.
    CasUploadFileRequest {
        /// Its path, inside one of `files.roots`.
        file_path: String,
        /// Its type.
        mime_type: String,
    }

    /// Takes nothing.
    #[derive(Default)]
    CasStatsRequest {}

    /// How much is stored.
    CasStatsResponse {
        /// How many blobs.
        blobs: u64,
        /// How many bytes in all.
        bytes: u64,
    }
}
