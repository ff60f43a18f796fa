//! Decodes parts to a frame, or to what can be salvaged from a malformed one.

use super::{Body, Command, ContentType, Frame, MAGIC, Parts, Prefix, Text, TextError};
use crate::error::ErrorKind;
use crate::ids::RequestId;

/// The positions of a frame's parts, counted from the magic.
mod at {
    pub(super) const MAGIC: usize = 0;
    pub(super) const COMMAND: usize = 1;
    pub(super) const CONTENT_TYPE: usize = 2;
    pub(super) const REQUEST_ID: usize = 3;
    pub(super) const SERVICE: usize = 4;
    pub(super) const TRACEPARENT: usize = 5;
    pub(super) const BODY: usize = 6;
    pub(super) const HEADER: usize = 7;
}

/// A defect in a message that should be a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameProblem {
    /// No identity, or no empty part behind the hops.
    #[error("the frame has no routing prefix")]
    Prefix,
    /// The magic is missing.
    #[error("the frame does not start with HOOT01")]
    Magic,
    /// Too few or too many parts.
    #[error("the frame has {found} parts instead of {expected}")]
    PartCount {
        /// The number of parts.
        found: usize,
        /// The number its content type needs.
        expected: usize,
    },
    /// A fixed-size part with another size.
    #[error("the {part} has {found} bytes instead of {expected}")]
    PartSize {
        /// The name of the part.
        part: &'static str,
        /// Its size.
        found: usize,
        /// The size it must have.
        expected: usize,
    },
    /// An unknown command number.
    #[error("unknown command {0}")]
    Command(u16),
    /// An unknown content type number, or Json.
    #[error("content type {0} is not supported; send MsgPack (1) or RawBinary (2)")]
    ContentType(u16),
    /// The service is not a valid text.
    #[error("invalid service: {0}")]
    Service(TextError),
    /// The trace parent is not a valid text.
    #[error("invalid traceparent: {0}")]
    Traceparent(TextError),
    /// A body under the content type `Empty`.
    #[error("the content type is Empty, but the body is not empty")]
    BodyNotEmpty,
}

impl FrameProblem {
    /// Returns the kind of error to reply with.
    #[must_use]
    pub const fn kind(self) -> ErrorKind {
        match self {
            Self::ContentType(_) => ErrorKind::UnsupportedContentType,
            Self::Prefix
            | Self::Magic
            | Self::PartCount { .. }
            | Self::PartSize { .. }
            | Self::Command(_)
            | Self::Service(_)
            | Self::Traceparent(_)
            | Self::BodyNotEmpty => ErrorKind::Invalid,
        }
    }
}

/// A message that is not a frame, with whatever an error reply needs and could be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct FrameError {
    /// What is wrong.
    pub problem: FrameProblem,
    /// Where a reply goes; always `None` from [`Frame::decode`].
    pub prefix: Option<Prefix>,
    /// The request it was about.
    pub request_id: Option<RequestId>,
    /// Its command. A malformed Reply must never be answered with a Reply.
    pub command: Option<Command>,
}

impl Frame {
    /// Reads a frame as a DEALER receives it, without a prefix.
    pub fn decode(parts: &(impl Parts + ?Sized)) -> Result<Self, FrameError> {
        Reader { parts, start: 0 }.frame()
    }

    /// Reads a frame as a ROUTER receives it: part 0 is the identity.
    pub fn decode_routed(parts: &(impl Parts + ?Sized)) -> Result<(Prefix, Self), FrameError> {
        let Some(prefix) = Prefix::read(parts) else {
            let problem = FrameProblem::Prefix;
            return Err(FrameError { problem, prefix: None, request_id: None, command: None });
        };
        match (Reader { parts, start: prefix.n_parts() }).frame() {
            Ok(frame) => Ok((prefix, frame)),
            Err(error) => Err(FrameError { prefix: Some(prefix), ..error }),
        }
    }
}

/// A message and the position of its frame.
struct Reader<'a, P: ?Sized> {
    parts: &'a P,
    start: usize,
}

impl<P: Parts + ?Sized> Reader<'_, P> {
    fn frame(&self) -> Result<Frame, FrameError> {
        if self.slice(at::MAGIC) != MAGIC {
            let problem = FrameProblem::Magic;
            return Err(FrameError { problem, prefix: None, request_id: None, command: None });
        }
        self.frame_after_magic().map_err(|problem| FrameError {
            problem,
            prefix: None,
            request_id: self.request_id().ok(),
            command: self.number(at::COMMAND, "command").ok().and_then(Command::from_number),
        })
    }

    fn frame_after_magic(&self) -> Result<Frame, FrameProblem> {
        let found = self.parts.n_parts() - self.start;
        if found < ContentType::Empty.n_parts() {
            return Err(FrameProblem::PartCount { found, expected: ContentType::Empty.n_parts() });
        }
        let number = self.number(at::COMMAND, "command")?;
        let command = Command::from_number(number).ok_or(FrameProblem::Command(number))?;
        let number = self.number(at::CONTENT_TYPE, "content type")?;
        let content_type =
            ContentType::from_number(number).ok_or(FrameProblem::ContentType(number))?;
        if found != content_type.n_parts() {
            return Err(FrameProblem::PartCount { found, expected: content_type.n_parts() });
        }
        Ok(Frame {
            command,
            request_id: self.request_id()?,
            service: self.text(at::SERVICE).map_err(FrameProblem::Service)?,
            traceparent: self.text(at::TRACEPARENT).map_err(FrameProblem::Traceparent)?,
            body: self.body(command, content_type)?,
        })
    }

    fn body(&self, command: Command, content_type: ContentType) -> Result<Body, FrameProblem> {
        if command == Command::Credit {
            return self.fixed(at::BODY, "credit").map(u64::from_be_bytes).map(Body::Credit);
        }
        match content_type {
            ContentType::Empty if self.slice(at::BODY).is_empty() => Ok(Body::Empty),
            ContentType::Empty => Err(FrameProblem::BodyNotEmpty),
            ContentType::MsgPack => Ok(Body::MsgPack(self.shared(at::BODY))),
            ContentType::RawBinary => {
                Ok(Body::RawBinary { data: self.shared(at::BODY), header: self.shared(at::HEADER) })
            }
        }
    }

    fn request_id(&self) -> Result<RequestId, FrameProblem> {
        self.fixed(at::REQUEST_ID, "request id").map(RequestId::from_bytes)
    }

    fn number(&self, index: usize, part: &'static str) -> Result<u16, FrameProblem> {
        self.fixed(index, part).map(u16::from_be_bytes)
    }

    fn text(&self, index: usize) -> Result<Text, TextError> {
        Text::try_from(self.shared(index))
    }

    fn fixed<const N: usize>(
        &self,
        index: usize,
        part: &'static str,
    ) -> Result<[u8; N], FrameProblem> {
        let bytes = self.slice(index);
        bytes.try_into().map_err(|_| FrameProblem::PartSize {
            part,
            found: bytes.len(),
            expected: N,
        })
    }

    fn slice(&self, index: usize) -> &[u8] {
        self.parts.slice(self.start + index)
    }

    fn shared(&self, index: usize) -> bytes::Bytes {
        self.parts.shared(self.start + index)
    }
}
