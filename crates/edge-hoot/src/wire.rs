//! Frames to calls and replies to frames: the one place that turns errors into HOOT01.

use bytes::Bytes;
use ringback_proto::frame::{Body, Command, ContentType, Frame, FrameError, Prefix, Text};
use ringback_proto::ids::RequestId;
use ringback_proto::{Error, ErrorKind, RequestEnvelope, ResponseEnvelope, Result};

/// The name that clients of hootenanny give the daemon in every request; the same as no name.
const ITSELF: &str = "hootenanny";

/// The destination of the replies to a frame, and their form.
#[derive(Debug, Clone)]
pub(crate) struct ReplyAddress {
    pub(crate) prefix: Prefix,
    pub(crate) request_id: RequestId,
    traceparent: Text,
    /// Whether bytes may travel outside their envelope.
    raw: bool,
}

impl ReplyAddress {
    pub(crate) fn new(prefix: Prefix, frame: &Frame, accepts_binary: bool) -> Self {
        Self {
            prefix,
            request_id: frame.request_id,
            traceparent: frame.traceparent.clone(),
            raw: accepts_binary || frame.body.content_type() == ContentType::RawBinary,
        }
    }

    /// Encodes a reply as a frame.
    pub(crate) fn reply(&self, mut reply: ResponseEnvelope) -> Frame {
        let data = if self.raw { reply.take_data() } else { None };
        let envelope = Bytes::from(reply.encode());
        let body = match data {
            Some(data) => Body::RawBinary { data, header: envelope },
            None => Body::MsgPack(envelope),
        };
        self.frame(Command::Reply, body)
    }

    /// Builds a frame without an envelope.
    pub(crate) fn frame(&self, command: Command, body: Body) -> Frame {
        Frame {
            traceparent: self.traceparent.clone(),
            ..Frame::new(command, self.request_id, body)
        }
    }
}

/// Decodes a Request, if its caller is admitted to the tool.
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

/// The answer to a malformed message, if it can have one. A malformed Reply never gets one: two
/// peers would answer each other forever.
pub(crate) fn malformed(error: FrameError) -> Option<(Prefix, Frame)> {
    let FrameError { problem, prefix, request_id, command } = error;
    if command == Some(Command::Reply) {
        return None;
    }
    let reply = ResponseEnvelope::from(Error::new(problem.kind(), problem.to_string()));
    let body = Body::MsgPack(reply.encode().into());
    Some((prefix?, Frame::new(Command::Reply, request_id?, body)))
}
