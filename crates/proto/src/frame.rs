//! HOOT01 frames: seven parts, eight with raw bytes, after the prefix that a ROUTER adds. Pure data
//! in and out: a transport exposes its message as [`Parts`] and accepts one through [`PartSink`],
//! so bodies are shared, never copied, and the small parts need no allocation.

mod decode;
mod parts;
mod prefix;
#[cfg(test)]
mod tests;
mod text;

use bytes::Bytes;

pub use self::decode::{FrameError, FrameProblem};
pub use self::parts::{PartSink, Parts};
pub use self::prefix::Prefix;
pub use self::text::{Text, TextError};
use crate::ids::RequestId;

/// The start of every frame.
pub const MAGIC: &[u8] = b"HOOT01";

/// Hops between a peer and us, including identity and empty delimiter. Real chains have one or two
/// proxies; untrusted peers choose the number.
pub const PREFIX_PARTS_MAX: usize = 16;

/// Services and trace parents are names of some tens of bytes; untrusted peers choose their length.
pub const TEXT_BYTES_MAX: usize = 255;

/// The command of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Command {
    /// A peer introduces itself, optionally with tools.
    Ready,
    /// A call.
    Request,
    /// The answer to a call, or one of several.
    Reply,
    /// A heartbeat, answered immediately.
    Heartbeat,
    /// The peer disconnects.
    Disconnect,
    /// The request with the same id is no longer wanted.
    Cancel,
    /// Grants more bytes of a stream's lossless chunks.
    Credit,
}

impl Command {
    /// Every command, in numerical order.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Request,
        Self::Reply,
        Self::Heartbeat,
        Self::Disconnect,
        Self::Cancel,
        Self::Credit,
    ];

    /// Returns the number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Ready => 1,
            Self::Request => 2,
            Self::Reply => 3,
            Self::Heartbeat => 4,
            Self::Disconnect => 5,
            Self::Cancel => 6,
            Self::Credit => 7,
        }
    }

    /// Returns the command for a number, or `None` for one of a newer peer.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|command| command.number() == number)
    }
}

/// The encoding of a frame's body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContentType {
    /// No body.
    Empty,
    /// MsgPack.
    MsgPack,
    /// Raw bytes, with a MsgPack header in an eighth part.
    RawBinary,
}

impl ContentType {
    /// Every content type we accept, in numerical order. Json (3) has a number, and is answered
    /// with `unsupported_content_type`.
    pub const ALL: [Self; 3] = [Self::Empty, Self::MsgPack, Self::RawBinary];

    /// Returns the number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::Empty => 0,
            Self::MsgPack => 1,
            Self::RawBinary => 2,
        }
    }

    /// Returns the content type for a number, or `None` for one we do not accept.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|content_type| content_type.number() == number)
    }

    /// Returns the number of parts of a frame of this type.
    #[must_use]
    pub const fn n_parts(self) -> usize {
        match self {
            Self::Empty | Self::MsgPack => 7,
            Self::RawBinary => 8,
        }
    }
}

/// The body of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Nothing.
    Empty,
    /// A MsgPack value, not decoded.
    MsgPack(Bytes),
    /// Raw bytes, and the MsgPack request or envelope without them.
    RawBinary {
        /// The bytes.
        data: Bytes,
        /// The MsgPack that describes them.
        header: Bytes,
    },
    /// The number of bytes granted; only the body of [`Command::Credit`].
    Credit(u64),
}

impl Body {
    /// Returns the content type of the body. A credit is eight bare bytes, sent as `Empty`: there
    /// is nothing to decode.
    #[must_use]
    pub const fn content_type(&self) -> ContentType {
        match self {
            Self::Empty | Self::Credit(_) => ContentType::Empty,
            Self::MsgPack(_) => ContentType::MsgPack,
            Self::RawBinary { .. } => ContentType::RawBinary,
        }
    }

    /// Returns the number of payload bytes, for budgets.
    #[must_use]
    pub const fn n_bytes(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::MsgPack(bytes) => bytes.len(),
            Self::RawBinary { data, header } => data.len() + header.len(),
            Self::Credit(_) => 8,
        }
    }
}

/// A frame, without the prefix that routes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// Its command.
    pub command: Command,
    /// The request it belongs to.
    pub request_id: RequestId,
    /// In a Request the addressed service, empty for the broker; in Ready the peer's own name.
    pub service: Text,
    /// The W3C trace parent, or empty; echoed in replies.
    pub traceparent: Text,
    /// Its body.
    pub body: Body,
}

impl Frame {
    /// Makes a frame without service and trace parent.
    #[must_use]
    pub const fn new(command: Command, request_id: RequestId, body: Body) -> Self {
        Self { command, request_id, service: Text::EMPTY, traceparent: Text::EMPTY, body }
    }

    /// Makes the reply to this frame: same id, same trace parent, no service.
    #[must_use]
    pub fn reply(&self, body: Body) -> Self {
        Self {
            traceparent: self.traceparent.clone(),
            ..Self::new(Command::Reply, self.request_id, body)
        }
    }

    /// Writes the seven or eight parts.
    pub fn encode(self, sink: &mut impl PartSink) {
        sink.small(MAGIC);
        sink.small(&self.command.number().to_be_bytes());
        sink.small(&self.body.content_type().number().to_be_bytes());
        sink.small(self.request_id.as_bytes());
        sink.shared(self.service.into_bytes());
        sink.shared(self.traceparent.into_bytes());
        match self.body {
            Body::Empty => sink.shared(Bytes::new()),
            Body::MsgPack(bytes) => sink.shared(bytes),
            Body::RawBinary { data, header } => {
                sink.shared(data);
                sink.shared(header);
            }
            Body::Credit(n_bytes) => sink.small(&n_bytes.to_be_bytes()),
        }
    }
}
