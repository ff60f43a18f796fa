//! Payloads that only pass through: bytes in a known encoding, never re-encoded on the way.

use bytes::Bytes;

/// The encoding of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// MsgPack.
    MsgPack,
    /// JSON text.
    Json,
}

/// A payload as it came. Cloning shares the bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Any {
    /// How the bytes are encoded.
    pub format: Format,
    /// One complete value.
    pub bytes: Bytes,
}
