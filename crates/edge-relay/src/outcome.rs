//! The outcome of a request, and which outcomes are results and which are errors.

use std::borrow::Cow;

use ringback_mcp_wire::relay::{ERROR_META, RelayedValue};
use ringback_mcp_wire::{Object, RawValue, on_one_line};
use ringback_proto::any::{Any, Format};
use ringback_proto::error::ToolError;
use ringback_proto::ids::JobId;
use ringback_proto::timing::ToolTiming;
use ringback_proto::{Error, ErrorKind, ResponseEnvelope, ToolResponse};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::value::to_raw_value;

use crate::outbox::Outbox;
use crate::refusal::Refusal;

/// The outcome of a request.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// A passed-on value, unchanged.
    Passed(Any),
    /// A value from the daemon.
    Json(Box<RawValue>),
    /// An error.
    Refused(Refusal),
}

/// The form of the answer to a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Face {
    /// The tool's value alone.
    Bare,
    /// As the result of an MCP tool.
    Content,
}

/// The result of an MCP tool.
#[derive(Debug, Default)]
struct Content<'a> {
    text: Cow<'a, str>,
    structured: Option<&'a RawValue>,
    error: Option<&'a Error>,
}

/// A started job.
#[derive(Serialize)]
struct StartedJob {
    job_id: JobId,
    status: &'static str,
    tool: String,
    expected_timing: ToolTiming,
    /// What a command did.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

impl Outcome {
    /// A value from the daemon.
    pub(crate) fn json(value: &impl Serialize) -> Self {
        Self::Json(raw(value))
    }

    /// The outcome of the last reply to a call of a caller's tool.
    pub(crate) fn of_caller(last: ResponseEnvelope) -> Self {
        match end_of(last, String::new()) {
            End::Passed(passed) => Self::Passed(passed),
            End::Error(error) => Self::Refused(error.into()),
            End::Native(_) | End::Job(_) => Self::Refused(out_of_turn().into()),
        }
    }

    /// The outcome of the last reply to a call with a key. Only what kept the tool from running is
    /// a protocol error; what the tool reports is its result.
    pub(crate) fn of_tool(last: ResponseEnvelope, tool: &str, face: Face) -> Self {
        match (end_of(last, tool.to_owned()), face) {
            (End::Passed(passed), Face::Bare) => Self::Passed(passed),
            (End::Passed(passed), Face::Content) => passed_content(&passed),
            (End::Native(response), Face::Bare) => Self::json(&response),
            (End::Native(response), Face::Content) => own_content(&raw(&*response)),
            (End::Job(started), Face::Bare) => Self::json(&started),
            (End::Job(started), Face::Content) => own_content(&raw(&started)),
            (End::Error(error), Face::Bare) => Self::Refused(Refusal::with_key(error)),
            (End::Error(error), Face::Content) => Self::of_error(error, tool),
        }
    }

    /// An error of a call with a key.
    pub(crate) fn of_error(error: Error, tool: &str) -> Self {
        let kind = error.kind();
        let is_refused = kind.token_problem().is_some()
            || error.is_unknown_tool(tool)
            || matches!(kind, ErrorKind::Cancelled | ErrorKind::Internal);
        if is_refused { Self::Refused(Refusal::with_key(error)) } else { failed_content(&error) }
    }

    /// Puts the answer into the outbox.
    pub(crate) fn answer(&self, id: Option<&RawValue>, outbox: &mut Outbox, line_bytes_max: usize) {
        match self {
            Self::Json(value) => outbox.answer(id, value, line_bytes_max),
            Self::Passed(passed) => match json_of(passed) {
                Ok(value) => outbox.answer(id, &value, line_bytes_max),
                Err(refusal) => outbox.refuse(id, &refusal),
            },
            Self::Refused(refusal) => outbox.refuse(id, refusal),
        }
    }
}

/// The end of a call.
enum End {
    Passed(Any),
    Native(Box<ToolResponse>),
    Job(StartedJob),
    Error(Error),
}

fn end_of(last: ResponseEnvelope, tool: String) -> End {
    let status = "started";
    match last {
        ResponseEnvelope::Success { response: ToolResponse::Passed(passed) }
        | ResponseEnvelope::StreamEnd {
            final_response: Some(ToolResponse::Passed(passed)), ..
        } => End::Passed(passed),
        ResponseEnvelope::Success { response }
        | ResponseEnvelope::StreamEnd { final_response: Some(response), .. } => {
            End::Native(Box::new(response))
        }
        ResponseEnvelope::JobStarted { job_id, tool, expected_timing } => {
            End::Job(StartedJob { job_id, status, tool, expected_timing, message: None })
        }
        ResponseEnvelope::Ack { job_id: Some(job_id), message } => {
            let (status, expected_timing) = ("accepted", ToolTiming::FireAndForget);
            let message = Some(message);
            End::Job(StartedJob { job_id, status, tool, expected_timing, message })
        }
        ResponseEnvelope::Error(error) => End::Error(error.into()),
        ResponseEnvelope::Ack { job_id: None, .. }
        | ResponseEnvelope::StreamStart { .. }
        | ResponseEnvelope::StreamChunk { .. }
        | ResponseEnvelope::StreamEnd { final_response: None, .. } => End::Error(out_of_turn()),
    }
}

fn out_of_turn() -> Error {
    Error::internal("relay", "the tool sent a reply that is not a result")
}

/// A payload as JSON on one line, with the same tokens.
fn json_of(passed: &Any) -> Result<Cow<'_, RawValue>, Refusal> {
    let value = match passed.format {
        Format::Json => serde_json::from_slice::<&RawValue>(&passed.bytes).ok(),
        Format::MsgPack => None,
    };
    let value = value.ok_or_else(|| Error::internal("relay", "the tool's answer is not JSON"))?;
    Ok(on_one_line(value))
}

/// A tool result stays as it is; any other value is returned as text and as structured content.
fn passed_content(passed: &Any) -> Outcome {
    let value = match json_of(passed) {
        Ok(value) => value,
        Err(refusal) => return Outcome::Refused(refusal),
    };
    match RelayedValue::of(&value) {
        RelayedValue::Result(result) => Outcome::json(&WithIsError(&result)),
        RelayedValue::Value { text, structured } => {
            Outcome::json(&Content { text, structured: Some(structured), error: None })
        }
    }
}

fn own_content(value: &RawValue) -> Outcome {
    Outcome::json(&Content { text: value.get().into(), structured: Some(value), error: None })
}

fn failed_content(error: &Error) -> Outcome {
    Outcome::json(&Content { text: error.told().into(), structured: None, error: Some(error) })
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Block<'a> {
            r#type: &'static str,
            text: &'a str,
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("content", &[Block { r#type: "text", text: &self.text }])?;
        if let Some(structured) = self.structured {
            map.serialize_entry("structuredContent", structured)?;
        }
        map.serialize_entry("isError", &self.error.is_some())?;
        if let Some(error) = self.error {
            let meta = std::collections::BTreeMap::from([(ERROR_META, ToolError::from(error))]);
            map.serialize_entry("_meta", &meta)?;
        }
        map.end()
    }
}

/// A result unchanged, but with an explicit `isError` where it was not a failure.
struct WithIsError<'a>(&'a Object<'a>);

impl Serialize for WithIsError<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in self.0.fields() {
            map.serialize_entry(name, value)?;
        }
        if self.0.get("isError").is_none() {
            map.serialize_entry("isError", &false)?;
        }
        map.end()
    }
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("what the table defines serializes as JSON")
}
