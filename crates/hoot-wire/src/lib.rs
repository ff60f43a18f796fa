//! HOOT01 frames in ZeroMQ messages, for both ends of a connection.
//!
//! Invariants:
//!
//! * No sockets: the edge and the client own theirs.
//! * A body is not copied on the way in or out.

use bytes::Bytes;
use omq_tokio::{Message, Payload};
use ringback_proto::frame::{Frame, FrameError, PartSink, Parts, Prefix};

/// The parts of a frame.
const N_PARTS: usize = 8;

/// Reads the frame of a message, or what is known of one that is not a frame.
///
/// # Errors
/// What is wrong with it.
pub fn decode(message: &Message) -> Result<Frame, FrameError> {
    Frame::decode(&Incoming(message))
}

/// Reads the frame of a message to a ROUTER, and the prefix before it.
///
/// # Errors
/// What is wrong with it.
pub fn decode_routed(message: &Message) -> Result<(Prefix, Frame), FrameError> {
    Frame::decode_routed(&Incoming(message))
}

/// Writes a frame as a message.
#[must_use]
pub fn encode(frame: Frame) -> Message {
    let mut parts = Outgoing(Vec::with_capacity(N_PARTS));
    frame.encode(&mut parts);
    Message::multipart_payloads(parts.0)
}

/// Writes a frame with the part of the prefix that stands between it and the identity.
#[must_use]
pub fn encode_routed(prefix: &Prefix, frame: Frame) -> Message {
    let mut parts = Outgoing(Vec::with_capacity(N_PARTS));
    prefix.encode_rest(&mut parts);
    frame.encode(&mut parts);
    Message::multipart_payloads(parts.0)
}

struct Incoming<'a>(&'a Message);

impl Parts for Incoming<'_> {
    fn n_parts(&self) -> usize {
        self.0.len()
    }

    fn slice(&self, index: usize) -> &[u8] {
        self.0.part_slice(index).unwrap_or_default()
    }

    fn shared(&self, index: usize) -> Bytes {
        self.0.part_bytes(index).unwrap_or_default()
    }
}

struct Outgoing(Vec<Payload>);

impl PartSink for Outgoing {
    fn small(&mut self, part: &[u8]) {
        self.0.push(Payload::from_slice(part));
    }

    fn shared(&mut self, part: Bytes) {
        self.0.push(Payload::from_bytes(part));
    }
}
