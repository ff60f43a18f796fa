//! Decoding a worker's Reply.

use bytes::Bytes;
use ringback_proto::any::{Any, Format};
use ringback_proto::error::ToolError;
use ringback_proto::frame::{Body, Frame};
use ringback_proto::msgpack::{self, TopLevel};
use ringback_proto::{Certainty, Error, ErrorKind, Result, StreamChunk};

/// The result of a call that ends without one.
const NIL: &[u8] = &[0xc0];
/// The head of bytes.
const BIN_OVERHEAD: usize = 5;

/// A worker's message about a call.
#[derive(Debug)]
pub(super) enum WorkerReply {
    Chunk(StreamChunk),
    /// How it ended, and the job that the reply names.
    End(Result<Any>, Option<String>),
}

/// Decodes a Reply. `None` if it carries nothing for the caller.
pub(super) fn said(frame: &Frame) -> Option<WorkerReply> {
    let (body, data) = match &frame.body {
        Body::MsgPack(body) => (body, None),
        Body::RawBinary { data, header } => (header, Some(data)),
        Body::Empty | Body::Credit(_) => {
            let what = "a worker must reply in MsgPack or RawBinary";
            let error = Error::new(ErrorKind::UnsupportedContentType, what);
            return Some(WorkerReply::End(Err(error.with_certainty(Certainty::MayHaveRun)), None));
        }
    };
    match read(body, data) {
        Ok(said) => said,
        Err(error) => Some(WorkerReply::End(Err(not_understood(error.message())), None)),
    }
}

/// Reads the body of a Reply, and the bytes that travelled beside it. The worker's `stream_id` is
/// ignored: the caller's stream has its own.
fn read(body: &Bytes, data: Option<&Bytes>) -> Result<Option<WorkerReply>> {
    let TopLevel::Map(fields) = msgpack::open(body)? else {
        return Err(Error::invalid("an envelope must be a map"));
    };
    let end = match fields.get("kind").and_then(msgpack::as_text) {
        Some("stream_start") => return Ok(None),
        Some("stream_chunk") => {
            let chunk = StreamChunk::decode(fields.get("chunk").unwrap_or_default(), data)?;
            return Ok(Some(WorkerReply::Chunk(chunk)));
        }
        Some("stream_end") => Ok(response(body, fields.get("final_response"), data)?),
        Some("success") => Ok(response(body, fields.get("response"), data)?),
        Some("error") => {
            let error = ToolError::decode(body);
            Err(error.ok_or_else(|| Error::invalid("invalid error"))?.into())
        }
        Some(_) | None => return Err(Error::invalid("it is neither a result nor an error")),
    };
    let job_id = fields.get("job_id").and_then(msgpack::as_text).map(ToOwned::to_owned);
    Ok(Some(WorkerReply::End(end, job_id)))
}

/// Reads a response; of RawBinary, its bytes are its field `data`, or all of it if part 7 has none.
fn response(body: &Bytes, encoded: Option<&[u8]>, data: Option<&Bytes>) -> Result<Any> {
    let bytes = match (encoded, data) {
        (None, None) => Bytes::from_static(NIL),
        (Some(encoded), None) => body.slice_ref(encoded),
        (None | Some(NIL), Some(data)) => bin(data).into(),
        (Some(encoded), Some(data)) => {
            let TopLevel::Map(fields) = msgpack::open(encoded)? else {
                return Err(Error::invalid("a response with RawBinary must be a map or absent"));
            };
            if fields.get("data").is_some() {
                return Err(Error::invalid("`data` is in part 6 and in part 7"));
            }
            msgpack::with_field(encoded, "data", &bin(data))?.into()
        }
    };
    Ok(Any { format: Format::MsgPack, bytes })
}

fn bin(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len() + BIN_OVERHEAD);
    rmp::encode::write_bin(&mut bytes, data).expect("a Vec takes everything");
    bytes
}

fn not_understood(why: &str) -> Error {
    Error::new(ErrorKind::ToolFailed, format!("cannot read the worker's reply: {why}"))
        .with_certainty(Certainty::Ran)
}
