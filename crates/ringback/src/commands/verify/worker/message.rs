//! The meaning of a candidate's frames.

use ringback_proto::StreamChunk;
use ringback_proto::data::Data;
use ringback_proto::error::ToolError;
use ringback_proto::frame::{Body, Command, Frame, Text};
use ringback_proto::ids::RequestId;
use ringback_proto::msgpack::{self, TopLevel};
use ringback_proto::ready::{OfferedTool, Ready};
use ringback_proto::value::Value;

/// The meaning of a frame.
#[derive(Debug)]
pub(super) enum WorkerMessage {
    /// The candidate offers tools of a service.
    Ready(RequestId, Text, Vec<String>),
    /// The candidate is alive.
    Heartbeat(RequestId),
    /// The candidate leaves.
    Disconnect,
    /// A message about a call, and the job that it names.
    OfCall(RequestId, CallMessage, Option<String>),
    /// A frame without meaning here.
    Other,
}

/// A message about a call.
#[derive(Debug, Clone)]
pub(super) enum CallMessage {
    /// The call continues.
    Chunk(StreamChunk),
    /// The call has ended.
    End(Result<Value, Box<ToolError>>),
}

impl CallMessage {
    /// Returns the bytes that count against credit.
    pub(super) fn lossless_weight(&self) -> u64 {
        match self {
            Self::Chunk(chunk) => chunk.lossless_weight(),
            Self::End(_) => 0,
        }
    }
}

/// Reads a frame, or reports what is wrong with it.
pub(super) fn read(frame: &Frame) -> Result<WorkerMessage, String> {
    match frame.command {
        Command::Ready => ready(frame),
        Command::Heartbeat => Ok(WorkerMessage::Heartbeat(frame.request_id)),
        Command::Disconnect => Ok(WorkerMessage::Disconnect),
        Command::Reply => match of_call(frame) {
            Ok(Some((of_call, job_id))) => {
                Ok(WorkerMessage::OfCall(frame.request_id, of_call, job_id))
            }
            Ok(None) => Ok(WorkerMessage::Other),
            Err(why) => Err(format!("cannot read a Reply: {why}")),
        },
        Command::Request | Command::Cancel | Command::Credit => Ok(WorkerMessage::Other),
    }
}

fn ready(frame: &Frame) -> Result<WorkerMessage, String> {
    let Body::MsgPack(body) = &frame.body else {
        return Err("the content type of a Ready must be MsgPack (1)".to_owned());
    };
    let ready: Ready =
        rmp_serde::from_slice(body).map_err(|error| format!("cannot read a Ready: {error}"))?;
    if ready.protocol != "HOOT01" {
        return Err(format!("the protocol of a Ready must be `HOOT01`, not `{}`", ready.protocol));
    }
    if frame.service.as_str().is_empty() {
        return Err("part 4 of a Ready with tools must be the name of the service".to_owned());
    }
    let name = |tool| match tool {
        OfferedTool::Name(name) | OfferedTool::Described { name, .. } => name,
    };
    let tools = ready.tools.into_iter().map(name).collect();
    Ok(WorkerMessage::Ready(frame.request_id, frame.service.clone(), tools))
}

fn of_call(frame: &Frame) -> Result<Option<(CallMessage, Option<String>)>, String> {
    let (body, data) = match &frame.body {
        Body::MsgPack(body) => (body, None),
        Body::RawBinary { data, header } => (header, Some(data)),
        Body::Empty | Body::Credit(_) => {
            return Err("its content type must be MsgPack (1) or RawBinary (2)".to_owned());
        }
    };
    let Ok(TopLevel::Map(fields)) = msgpack::open(body) else {
        return Err("its body must be a MsgPack map".to_owned());
    };
    let read = |bytes: &[u8], name: &str| {
        rmp_serde::from_slice::<Value>(bytes).map_err(|error| format!("`{name}`: {error}"))
    };
    let value = |name: &str| match (fields.get(name), data) {
        (None, None) => Ok(Value::Null),
        (Some(bytes), None) => read(bytes, name),
        (None, Some(data)) => Ok(Value::Bytes(Data(data.clone()))),
        (Some(bytes), Some(data)) => {
            let Value::Map(mut entries) = read(bytes, name)? else {
                return Err(format!("`{name}` with RawBinary must be a map"));
            };
            entries.push(("data".to_owned(), Value::Bytes(Data(data.clone()))));
            Ok(Value::Map(entries))
        }
    };
    let said = match fields.get("kind").and_then(msgpack::as_text) {
        Some("success") => CallMessage::End(Ok(value("response")?)),
        Some("stream_end") => CallMessage::End(Ok(value("final_response")?)),
        Some("stream_start") => return Ok(None),
        Some("stream_chunk") => {
            let chunk = StreamChunk::decode(fields.get("chunk").unwrap_or_default(), data);
            CallMessage::Chunk(chunk.map_err(|error| error.message().to_owned())?)
        }
        Some("error") => {
            let error = ToolError::decode(body);
            let error =
                error.ok_or("an error needs category, code, message, retryable, certainty")?;
            CallMessage::End(Err(Box::new(error)))
        }
        Some(other) => return Err(format!("unknown kind `{other}` of reply to the daemon")),
        None => return Err("it has no `kind`".to_owned()),
    };
    let job_id = fields.get("job_id").and_then(msgpack::as_text).map(ToOwned::to_owned);
    Ok(Some((said, job_id)))
}
