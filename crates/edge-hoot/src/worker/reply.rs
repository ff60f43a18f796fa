//! Decoding a worker's Reply.

use bytes::Bytes;
use ringback_proto::any::{Any, Format};
use ringback_proto::error::ToolError;
use ringback_proto::frame::{Body, Frame};
use ringback_proto::msgpack::{self, TopLevel};
use ringback_proto::{Certainty, Error, ErrorKind, Result, StreamChunk};

/// The result of a call that ends without one.
const NIL: &[u8] = &[0xc0];

/// A worker's message about a call.
#[derive(Debug)]
pub(super) enum WorkerReply {
    Chunk(StreamChunk),
    /// How it ended, and the job that the reply names.
    End(Result<Any>, Option<String>),
}

impl WorkerReply {
    pub(super) fn end(self) -> Option<Result<Any>> {
        match self {
            Self::Chunk(_) => None,
            Self::End(outcome, _) => Some(outcome),
        }
    }
}

/// Decodes a Reply. `None` if it carries nothing for the caller.
pub(super) fn said(frame: &Frame) -> Option<WorkerReply> {
    let Body::MsgPack(body) = &frame.body else {
        let error = Error::new(ErrorKind::UnsupportedContentType, "a worker must reply in MsgPack");
        return Some(WorkerReply::End(Err(error.with_certainty(Certainty::MayHaveRun)), None));
    };
    match read(body) {
        Ok(said) => said,
        Err(error) => Some(WorkerReply::End(Err(not_understood(error.message())), None)),
    }
}

/// Reads the body of a Reply. The worker's `stream_id` is ignored: the caller's stream has its own.
fn read(body: &Bytes) -> Result<Option<WorkerReply>> {
    let passed = |bytes: &[u8]| Any { format: Format::MsgPack, bytes: body.slice_ref(bytes) };
    let TopLevel::Map(fields) = msgpack::open(body)? else {
        return Err(Error::invalid("an envelope must be a map"));
    };
    let end = match fields.get("kind").and_then(msgpack::as_text) {
        Some("stream_start") => return Ok(None),
        Some("stream_chunk") => {
            let chunk = fields.get("chunk").unwrap_or_default();
            let chunk = rmp_serde::from_slice(chunk)
                .map_err(|error| Error::invalid(format!("invalid chunk: {error:.200}")))?;
            return Ok(Some(WorkerReply::Chunk(chunk)));
        }
        Some("stream_end") => Ok(fields.get("final_response").map_or_else(nil, passed)),
        Some("success") => Ok(fields.get("response").map_or_else(nil, passed)),
        Some("error") => {
            let error = ToolError::decode(body);
            Err(error.ok_or_else(|| Error::invalid("invalid error"))?.into())
        }
        Some(_) | None => return Err(Error::invalid("it is neither a result nor an error")),
    };
    let job_id = fields.get("job_id").and_then(msgpack::as_text).map(ToOwned::to_owned);
    Ok(Some(WorkerReply::End(end, job_id)))
}

fn nil() -> Any {
    Any { format: Format::MsgPack, bytes: Bytes::from_static(NIL) }
}

fn not_understood(why: &str) -> Error {
    Error::new(ErrorKind::ToolFailed, format!("cannot read the worker's reply: {why}"))
        .with_certainty(Certainty::Ran)
}
