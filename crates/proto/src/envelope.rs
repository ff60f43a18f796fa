//! The body of a HOOT01 frame: a request with its options, or one of several replies.

use std::num::NonZeroU64;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::any::{Any, Format};
use crate::chunk::StreamChunk;
use crate::data::Data;
use crate::error::{Certainty, Error, ToolError};
use crate::ids::{JobId, StreamId};
use crate::msgpack::{self, Fields, Items, ScanError, TopLevel};
use crate::timing::ToolTiming;
use crate::tool::{ToolRequest, ToolResponse};

/// Longer than any tool name.
const TOOL_NAME_BYTES_MAX: usize = 256;
/// Enough to find the mismatched field.
const MISFIT_BYTES_MAX: usize = 500;

/// A tool and its input.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "boxing would cost every native call an allocation, to save rare calls some bytes"
)]
pub enum ToolCall {
    /// A tool of the table.
    Native(ToolRequest),
    /// A tool offered on a line, by its full name.
    Named {
        /// Its full name.
        name: String,
        /// Its input, as received.
        arguments: Any,
    },
}

impl ToolCall {
    /// Returns the tool's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Native(request) => request.row().name,
            Self::Named { name, .. } => name,
        }
    }
}

impl<R: Into<ToolRequest>> From<R> for ToolCall {
    fn from(request: R) -> Self {
        Self::Native(request.into())
    }
}

/// A caller's options for a call, all optional.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallOptions {
    /// `async_long` means "do not wait", any other class "wait as long as that class does".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing_hint: Option<ToolTiming>,
    /// How long to wait for the result before answering with the job id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wait_ms: Option<u64>,
    /// How long the call may take before it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<NonZeroU64>,
    /// Whether to send chunks as they come.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub stream: bool,
}

/// A request with its options.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestEnvelope {
    /// The tool and its input.
    pub request: ToolCall,
    /// The options.
    pub options: CallOptions,
}

impl RequestEnvelope {
    /// Makes a request without options.
    #[must_use]
    pub fn plain(request: impl Into<ToolCall>) -> Self {
        Self { request: request.into(), options: CallOptions::default() }
    }

    /// Reads the body of a Request: a bare request or an envelope, as a map or an array.
    ///
    /// # Errors
    /// `invalid`, naming what does not match.
    pub fn decode(body: &Bytes) -> Result<Self, Error> {
        Self::decode_if(body, |_| Ok(()))
    }

    /// Like [`Self::decode`], but admits the call by the tool's name before its input is read.
    ///
    /// # Errors
    /// The error of `admit`, or `invalid` for a body that is not a request.
    pub fn decode_if(
        body: &Bytes,
        admit: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        match msgpack::open(body)? {
            TopLevel::Map(fields) => match fields.get("request") {
                Some(request) => Ok(Self {
                    request: decode_call(body, request, admit)?,
                    options: decode_fields(body, "the request envelope")?,
                }),
                None => Ok(Self::plain(decode_map(body, body, fields, admit)?)),
            },
            TopLevel::Array(items) => Self::decode_array(body, items, admit),
        }
    }

    fn decode_array(
        body: &Bytes,
        mut items: Items<'_>,
        admit: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let first = items.clone().next().ok_or_else(|| Error::invalid("the request is empty"))?;
        if msgpack::as_text(first).is_some() {
            return Ok(Self::plain(decode_positional(body, items, admit)?));
        }
        items.next();
        Ok(Self {
            request: decode_call(body, first, admit)?,
            options: decode_fields(&as_array(items), "the request envelope")?,
        })
    }

    /// Reads a RawBinary Request, whose bytes are separate from the request.
    ///
    /// # Errors
    /// `invalid` also when there are bytes and the tool takes none.
    pub fn decode_raw(header: &Bytes, data: Bytes) -> Result<Self, Error> {
        Self::decode_raw_if(header, data, |_| Ok(()))
    }

    /// Like [`Self::decode_raw`], but admits the call first, as [`Self::decode_if`] does.
    ///
    /// # Errors
    /// Those of both.
    pub fn decode_raw_if(
        header: &Bytes,
        data: Bytes,
        admit: impl FnOnce(&str) -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let mut envelope = Self::decode_if(header, admit)?;
        match &mut envelope.request {
            ToolCall::Native(ToolRequest::CasStore(request)) => request.data = Data(data),
            // Without bytes it only requests a RawBinary reply.
            ToolCall::Native(_) | ToolCall::Named { .. } if data.is_empty() => {}
            ToolCall::Native(_) | ToolCall::Named { .. } => {
                return Err(Error::invalid(format!(
                    "`{}` does not take RawBinary; only `cas_store` does",
                    envelope.request.name()
                )));
            }
        }
        Ok(envelope)
    }

    /// Encodes the body of a Request whose payloads are known to fit.
    ///
    /// # Panics
    /// When a payload in the request has a number that MsgPack cannot hold; [`Self::try_encode`]
    /// returns an error instead.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        self.try_encode().expect("a request without such payloads can be encoded")
    }

    /// Encodes the body of a Request.
    ///
    /// # Errors
    /// `invalid` when a payload in the request has a number that MsgPack cannot hold.
    ///
    /// # Panics
    /// Never: every other request of the table can be encoded; a test checks them all.
    pub fn try_encode(&self) -> Result<Vec<u8>, Error> {
        let mut body = Vec::with_capacity(128);
        if self.options == CallOptions::default() {
            encode_call(&mut body, &self.request)?;
            return Ok(body);
        }
        let CallOptions { timing_hint, wait_ms, deadline_ms, stream } = self.options;
        let n_options = usize::from(timing_hint.is_some())
            + usize::from(wait_ms.is_some())
            + usize::from(deadline_ms.is_some())
            + usize::from(stream);
        map_header(&mut body, 1 + n_options);
        text(&mut body, "request");
        encode_call(&mut body, &self.request)?;
        if let Some(timing) = timing_hint {
            text(&mut body, "timing_hint");
            text(&mut body, timing.as_str());
        }
        for (name, number) in
            [("wait_ms", wait_ms), ("deadline_ms", deadline_ms.map(NonZeroU64::get))]
        {
            if let Some(number) = number {
                text(&mut body, name);
                rmp::encode::write_uint(&mut body, number).expect("writing to a Vec cannot fail");
            }
        }
        if stream {
            text(&mut body, "stream");
            rmp::encode::write_bool(&mut body, true).expect("writing to a Vec cannot fail");
        }
        Ok(body)
    }
}

/// A reply. A request gets one, or several with its id if it streams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ResponseEnvelope {
    /// The tool's answer.
    Success {
        /// The answer.
        response: ToolResponse,
    },
    /// The work continues as a job.
    JobStarted {
        /// Its id.
        job_id: JobId,
        /// The tool it runs.
        tool: String,
        /// How long it is expected to take.
        expected_timing: ToolTiming,
    },
    /// The command is accepted.
    Ack {
        /// What was accepted.
        message: String,
        /// The job that does the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_id: Option<JobId>,
    },
    /// It failed.
    Error(ToolError),
    /// Chunks will follow.
    StreamStart {
        /// The id of the stream.
        stream_id: StreamId,
        /// The tool that sends it.
        tool: String,
        /// The job that does the work.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        job_id: Option<JobId>,
    },
    /// A chunk.
    StreamChunk {
        /// The id of the stream.
        stream_id: StreamId,
        /// The chunk.
        chunk: StreamChunk,
    },
    /// The last chunk has been sent.
    StreamEnd {
        /// The id of the stream.
        stream_id: StreamId,
        /// The tool's answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        final_response: Option<ToolResponse>,
    },
}

impl ResponseEnvelope {
    /// Encodes the body of a Reply. An answer with a payload that MsgPack cannot hold becomes an
    /// error.
    ///
    /// # Panics
    /// Never: an error consists of strings, and the golden vectors cover every other reply.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        if let Some(body) = self.encode_passed() {
            return body;
        }
        let mut body = Vec::with_capacity(128);
        if let Err(error) = rmp_serde::encode::write_named(&mut body, self) {
            let error = Error::invalid(format!("the answer cannot be written as MsgPack: {error}"))
                .with_certainty(Certainty::Ran);
            body.clear();
            rmp_serde::encode::write_named(&mut body, &Self::Error(ToolError::from(&error)))
                .expect("texts can always be encoded");
        }
        body
    }

    /// Encodes the body of a worker's Reply to a Request with a job, whose id it returns unchanged.
    ///
    /// # Panics
    /// Never: every reply is a map.
    #[must_use]
    pub fn encode_for_job(&self, job_id: &str) -> Vec<u8> {
        let reply = self.encode();
        let mut fields = &reply[..];
        let n_fields = rmp::decode::read_map_len(&mut fields).expect("a reply is a map");
        let mut body = Vec::with_capacity(reply.len() + job_id.len() + 16);
        map_header(&mut body, n_fields as usize + 1);
        body.extend_from_slice(fields);
        text(&mut body, "job_id");
        text(&mut body, job_id);
        body
    }

    /// Encodes a reply around bytes that are only passed on.
    fn encode_passed(&self) -> Option<Vec<u8>> {
        let (kind, field, stream_id, passed) = match self {
            Self::Success { response: ToolResponse::Passed(passed) } => {
                ("success", "response", None, passed)
            }
            Self::StreamEnd { stream_id, final_response: Some(ToolResponse::Passed(passed)) } => {
                ("stream_end", "final_response", Some(stream_id), passed)
            }
            Self::Success { .. }
            | Self::JobStarted { .. }
            | Self::Ack { .. }
            | Self::Error(_)
            | Self::StreamStart { .. }
            | Self::StreamChunk { .. }
            | Self::StreamEnd { .. } => return None,
        };
        let mut body = Vec::with_capacity(passed.bytes.len() + 96);
        map_header(&mut body, 2 + usize::from(stream_id.is_some()));
        text(&mut body, "kind");
        text(&mut body, kind);
        if let Some(stream_id) = stream_id {
            text(&mut body, "stream_id");
            text(&mut body, &stream_id.to_string());
        }
        text(&mut body, field);
        match passed.format {
            Format::MsgPack => body.extend_from_slice(&passed.bytes),
            // JSON that was not translated stays readable text.
            Format::Json => text(&mut body, &String::from_utf8_lossy(&passed.bytes)),
        }
        Some(body)
    }

    /// Reads the body of a Reply.
    ///
    /// # Errors
    /// `invalid`, naming what does not match.
    pub fn decode(body: &[u8]) -> Result<Self, Error> {
        msgpack::check(body)?;
        decode_fields(body, "the reply")
    }

    /// Reads the body of a Reply whose answer is only passed on: its bytes are shared, not decoded.
    ///
    /// # Errors
    /// `invalid`, naming what does not match.
    pub fn decode_passing(body: &Bytes) -> Result<Self, Error> {
        let TopLevel::Map(fields) = msgpack::open(body)? else { return Self::decode(body) };
        let passed = |field: &str| {
            fields.get(field).map(|bytes| {
                let bytes = body.slice_ref(bytes);
                ToolResponse::Passed(Any { format: Format::MsgPack, bytes })
            })
        };
        match fields.get("kind").and_then(msgpack::as_text) {
            Some("success") => {
                let missing =
                    || Error::invalid_field("response", "a successful reply needs a response");
                Ok(Self::Success { response: passed("response").ok_or_else(missing)? })
            }
            Some("stream_end") => {
                #[derive(Deserialize)]
                struct End {
                    stream_id: StreamId,
                }
                let End { stream_id } = decode_fields(body, "the end of the stream")?;
                Ok(Self::StreamEnd { stream_id, final_response: passed("final_response") })
            }
            Some(_) | None => Self::decode(body),
        }
    }

    /// Takes out the bytes of `cas_get`, so that they can be sent separately as RawBinary.
    #[must_use]
    pub fn take_data(&mut self) -> Option<Bytes> {
        match self {
            Self::Success { response: ToolResponse::CasContent(content) } => {
                Some(std::mem::take(&mut content.data).0)
            }
            Self::Success { .. }
            | Self::JobStarted { .. }
            | Self::Ack { .. }
            | Self::Error(_)
            | Self::StreamStart { .. }
            | Self::StreamChunk { .. }
            | Self::StreamEnd { .. } => None,
        }
    }

    /// Puts the bytes of a RawBinary reply back where [`Self::take_data`] took them from.
    pub fn put_data(&mut self, data: Bytes) {
        if let Self::Success { response: ToolResponse::CasContent(content) } = self {
            content.data = Data(data);
        }
    }
}

impl From<Error> for ResponseEnvelope {
    fn from(error: Error) -> Self {
        Self::Error(error.into())
    }
}

impl From<ScanError> for Error {
    fn from(error: ScanError) -> Self {
        Self::invalid(error.to_string())
    }
}

/// Reads a request inside the body, as a map or an array.
fn decode_call(
    body: &Bytes,
    request: &[u8],
    admit: impl FnOnce(&str) -> Result<(), Error>,
) -> Result<ToolCall, Error> {
    match msgpack::open(request)? {
        TopLevel::Map(fields) => decode_map(body, request, fields, admit),
        TopLevel::Array(items) => decode_positional(body, items, admit),
    }
}

fn decode_map(
    body: &Bytes,
    request: &[u8],
    fields: Fields<'_>,
    admit: impl FnOnce(&str) -> Result<(), Error>,
) -> Result<ToolCall, Error> {
    let name = fields
        .get("tool")
        .or_else(|| fields.get("type"))
        .and_then(msgpack::as_text)
        .ok_or_else(|| Error::invalid_field("tool", "the request does not name a tool"))?;
    admit(name)?;
    match native(name, request) {
        Some(request) => request.map(ToolCall::Native).map_err(|error| misfit(name, &error)),
        None => named(body, name, fields.get("arguments")),
    }
}

/// Reads `["name", field, field…]`: the fields without names, in the order of the type's fields.
fn decode_positional(
    body: &Bytes,
    mut items: Items<'_>,
    admit: impl FnOnce(&str) -> Result<(), Error>,
) -> Result<ToolCall, Error> {
    let name = items
        .next()
        .and_then(msgpack::as_text)
        .ok_or_else(|| Error::invalid_field("tool", "the request does not name a tool"))?;
    admit(name)?;
    match native(name, &as_array(items)) {
        Some(request) => request.map(ToolCall::Native).map_err(|error| misfit(name, &error)),
        None => named(body, name, items.next()),
    }
}

/// Reads the request of a native tool; `None` if there is no such tool. Not generic, so that the
/// program has one decoder of all requests in MsgPack.
fn native(name: &str, fields: &[u8]) -> Option<Result<ToolRequest, rmp_serde::decode::Error>> {
    ToolRequest::deserialize_named(name, &mut rmp_serde::Deserializer::from_read_ref(fields))
}

fn named(body: &Bytes, name: &str, arguments: Option<&[u8]>) -> Result<ToolCall, Error> {
    if name.is_empty() || name.len() > TOOL_NAME_BYTES_MAX {
        return Err(Error::invalid_field("tool", "the tool's name is empty or too long"));
    }
    /// An empty map: a tool without input needs no arguments.
    const NOTHING: &[u8] = &[0x80];
    let bytes = arguments.map_or(Bytes::from_static(NOTHING), |bytes| body.slice_ref(bytes));
    let arguments = Any { format: Format::MsgPack, bytes };
    Ok(ToolCall::Named { name: name.to_owned(), arguments })
}

fn misfit(tool: &str, error: &rmp_serde::decode::Error) -> Error {
    Error::invalid(format!("the input of `{tool}` does not match its schema: {}", bounded(error)))
}

/// The decoder's message, shortened: it quotes text whose length an untrusted peer chooses.
fn bounded(error: &rmp_serde::decode::Error) -> String {
    let mut text = error.to_string();
    if text.len() > MISFIT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(MISFIT_BYTES_MAX));
        text.push('…');
    }
    text
}

fn decode_fields<'de, T: Deserialize<'de>>(bytes: &'de [u8], what: &str) -> Result<T, Error> {
    rmp_serde::from_slice(bytes)
        .map_err(|error| Error::invalid(format!("{what} is malformed: {}", bounded(&error))))
}

/// Encodes the remaining items as an array of their own.
fn as_array(items: Items<'_>) -> Vec<u8> {
    let (len, rest) = items.remaining();
    let mut array = Vec::with_capacity(rest.len() + 5);
    let len = u32::try_from(len).expect("a length that was read from 32 bits");
    rmp::encode::write_array_len(&mut array, len).expect("writing to a Vec cannot fail");
    array.extend_from_slice(rest);
    array
}

fn encode_call(body: &mut Vec<u8>, call: &ToolCall) -> Result<(), Error> {
    match call {
        ToolCall::Native(request) => {
            rmp_serde::encode::write_named(body, request).map_err(|error| {
                Error::invalid(format!("the input cannot be written as MsgPack: {error}"))
            })?;
        }
        ToolCall::Named { name, arguments } => {
            map_header(body, 2);
            text(body, "tool");
            text(body, name);
            text(body, "arguments");
            body.extend_from_slice(&arguments.bytes);
        }
    }
    Ok(())
}

fn map_header(body: &mut Vec<u8>, len: usize) {
    let len = u32::try_from(len).expect("a handful of fields");
    rmp::encode::write_map_len(body, len).expect("writing to a Vec cannot fail");
}

fn text(body: &mut Vec<u8>, text: &str) {
    rmp::encode::write_str(body, text).expect("writing to a Vec cannot fail");
}
