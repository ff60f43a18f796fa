//! Frames to calls and replies to frames: the one place where errors become HOOT01.

use bytes::Bytes;
use ringback_proto::frame::{Body, Command, ContentType, Frame, FrameError, Prefix, Text};
use ringback_proto::ids::RequestId;
use ringback_proto::{Error, ErrorKind, RequestEnvelope, ResponseEnvelope, Result};

/// What clients of hootenanny call the daemon in every request; the same as no name at all.
const ITSELF: &str = "hootenanny";

/// Where the replies to a frame go, and in which form.
#[derive(Debug, Clone)]
pub(crate) struct ReplyTo {
    pub(crate) prefix: Prefix,
    pub(crate) request_id: RequestId,
    traceparent: Text,
    /// Whether bytes may travel apart from their envelope.
    raw: bool,
}

impl ReplyTo {
    pub(crate) fn new(prefix: Prefix, frame: &Frame, accepts_binary: bool) -> Self {
        Self {
            prefix,
            request_id: frame.request_id,
            traceparent: frame.traceparent.clone(),
            raw: accepts_binary || frame.body.content_type() == ContentType::RawBinary,
        }
    }

    /// A reply as a frame.
    pub(crate) fn reply(&self, mut reply: ResponseEnvelope) -> Frame {
        let data = if self.raw { reply.take_data() } else { None };
        let envelope = Bytes::from(reply.encode());
        let body = match data {
            Some(data) => Body::RawBinary { data, header: envelope },
            None => Body::MsgPack(envelope),
        };
        self.frame(Command::Reply, body)
    }

    /// A frame without an envelope.
    pub(crate) fn frame(&self, command: Command, body: Body) -> Frame {
        Frame {
            traceparent: self.traceparent.clone(),
            ..Frame::new(command, self.request_id, body)
        }
    }
}

/// What a Request asks for, if its caller is admitted to the tool.
pub(crate) fn request(
    frame: &Frame,
    admit: impl FnOnce(&str) -> Result<()>,
) -> Result<RequestEnvelope> {
    let service = frame.service.as_str();
    if !service.is_empty() && service != ITSELF {
        return Err(Error::not_found("service", service));
    }
    match &frame.body {
        Body::MsgPack(body) => RequestEnvelope::decode_if(body, admit),
        Body::RawBinary { data, header } => {
            RequestEnvelope::decode_raw_if(header, data.clone(), admit)
        }
        Body::Empty | Body::Credit(_) => Err(Error::new(
            ErrorKind::UnsupportedContentType,
            "a Request needs a body: send MsgPack (1) or RawBinary (2)",
        )),
    }
}

/// The answer to a message that is no frame, if it can have one. A malformed Reply never gets one:
/// two peers would answer each other for ever.
pub(crate) fn malformed(error: FrameError) -> Option<(Prefix, Frame)> {
    let FrameError { problem, prefix, request_id, command } = error;
    if command == Some(Command::Reply) {
        return None;
    }
    let reply = ResponseEnvelope::from(Error::new(problem.kind(), problem.to_string()));
    let body = Body::MsgPack(reply.encode().into());
    Some((prefix?, Frame::new(Command::Reply, request_id?, body)))
}
