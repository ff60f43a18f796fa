//! The outcome of a call, and the one place that turns errors into MCP.

use ringback_mcp_wire::outgoing::{self, CallResult, Stamp};
use ringback_mcp_wire::relay::{ERROR_META, RelayedResult, RelayedValue};
use ringback_mcp_wire::{Code, Fault, Id, RawValue, on_one_line};
use ringback_proto::any::{Any, Format};
use ringback_proto::error::{TokenProblem, ToolError};
use ringback_proto::ids::JobId;
use ringback_proto::timing::ToolTiming;
use ringback_proto::{Error, ErrorKind, ResponseEnvelope, ToolResponse};
use serde::Serialize;
use serde_json::value::to_raw_value;

/// The outcome of a call.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The tool's answer.
    Native(Box<ToolResponse>),
    /// The answer of a tool on a line, unchanged.
    Passed(Any),
    /// The call continues as a job.
    Job(StartedJob),
    /// The tool failed, or did not run; the model may read why.
    Failed(Box<Error>),
    /// The request itself is invalid.
    Fault(Fault),
    /// The token is no longer valid.
    Unauthenticated(Box<Error>),
    /// The token may not do this.
    Forbidden(Box<Error>),
    /// The client cancelled it, and expects no answer.
    Silent,
}

/// A started job.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct StartedJob {
    pub(crate) job_id: JobId,
    pub(crate) status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expected_timing: Option<ToolTiming>,
    /// What a command did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl StartedJob {
    pub(super) fn new(job_id: JobId, tool: String, timing: ToolTiming) -> Self {
        let (tool, expected_timing) = (Some(tool), Some(timing));
        Self { job_id, status: "started", tool, expected_timing, message: None }
    }

    /// The job of a command that was executed.
    fn of_command(job_id: JobId, tool: &str, message: String) -> Self {
        let job = Self::new(job_id, tool.to_owned(), ToolTiming::FireAndForget);
        Self { status: "accepted", message: Some(message), ..job }
    }
}

impl Outcome {
    /// Returns the outcome of the last reply to a call.
    pub(super) fn of(reply: ResponseEnvelope, tool: &str) -> Self {
        match reply {
            ResponseEnvelope::Success { response: ToolResponse::Passed(passed) }
            | ResponseEnvelope::StreamEnd {
                final_response: Some(ToolResponse::Passed(passed)),
                ..
            } => Self::Passed(passed),
            ResponseEnvelope::Success { response }
            | ResponseEnvelope::StreamEnd { final_response: Some(response), .. } => {
                Self::Native(Box::new(response))
            }
            ResponseEnvelope::JobStarted { job_id, tool, expected_timing } => {
                Self::Job(StartedJob::new(job_id, tool, expected_timing))
            }
            ResponseEnvelope::Ack { job_id: Some(job_id), message } => {
                Self::Job(StartedJob::of_command(job_id, tool, message))
            }
            ResponseEnvelope::Error(error) => Self::error(error.into(), tool),
            ResponseEnvelope::Ack { job_id: None, .. }
            | ResponseEnvelope::StreamStart { .. }
            | ResponseEnvelope::StreamChunk { .. }
            | ResponseEnvelope::StreamEnd { final_response: None, .. } => Self::Fault(Fault::new(
                Code::Internal,
                "the tool sent a reply that is not a result",
            )),
        }
    }

    /// Maps kinds of errors to MCP.
    pub(crate) fn error(error: Error, tool: &str) -> Self {
        match error.kind().token_problem() {
            Some(TokenProblem::Invalid) => Self::Unauthenticated(Box::new(error)),
            Some(TokenProblem::TooWeak) => Self::Forbidden(Box::new(error)),
            None if error.is_unknown_tool(tool) => Self::Fault(
                Fault::invalid_params(error.message()).with_data(&ToolError::from(error)),
            ),
            None if error.kind() == ErrorKind::Internal => {
                let fault = Fault::new(Code::Internal, error.message());
                Self::Fault(fault.with_data(&ToolError::from(error)))
            }
            None => Self::Failed(Box::new(error)),
        }
    }

    /// The answer as JSON; `None` for a silent outcome.
    pub(crate) fn encode(&self, id: &Id, stamp: Stamp<'_>) -> Option<String> {
        match self {
            Self::Native(response) => Some(encode_value(id, &json(response.as_ref()), stamp)),
            Self::Passed(passed) => Some(encode_passed(id, passed, stamp)),
            Self::Job(started) => Some(encode_value(id, &json(started), stamp)),
            Self::Failed(error) | Self::Forbidden(error) | Self::Unauthenticated(error) => {
                Some(encode_error(id, error, stamp))
            }
            Self::Fault(fault) => Some(outgoing::error(Some(id), fault)),
            Self::Silent => None,
        }
    }
}

fn json(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("what the table defines serializes as JSON")
}

fn encode_value(id: &Id, value: &RawValue, stamp: Stamp<'_>) -> String {
    let result =
        CallResult { text: value.get(), structured: Some(value), is_error: false, meta: None };
    outgoing::answer(id, &result, stamp)
}

/// A tool result stays as it is; any other value is returned as text and as structured content.
fn encode_passed(id: &Id, passed: &Any, stamp: Stamp<'_>) -> String {
    let raw = match passed.format {
        Format::Json => serde_json::from_slice::<&RawValue>(&passed.bytes).ok(),
        Format::MsgPack => None,
    };
    let Some(raw) = raw else {
        let fault = Fault::new(Code::Internal, "the tool's answer is not JSON");
        return outgoing::error(Some(id), &fault);
    };
    // Lines and events end at a line break, so they must not contain one.
    match RelayedValue::of(&on_one_line(raw)) {
        RelayedValue::Result(result) => outgoing::result(id, &RelayedResult { result, stamp }),
        RelayedValue::Value { text, structured } => {
            let structured = Some(structured);
            let result = CallResult { text: &text, structured, is_error: false, meta: None };
            outgoing::answer(id, &result, stamp)
        }
    }
}

/// An error for programs, with its kind as on a session's socket.
#[derive(Serialize)]
struct ErrorMeta {
    kind: &'static str,
    #[serde(flatten)]
    error: ToolError,
}

/// The message for the model, with whether a retry is safe; the fields for programs.
fn encode_error(id: &Id, error: &Error, stamp: Stamp<'_>) -> String {
    let text = error.told();
    let wire = json(&ErrorMeta { kind: error.kind().as_str(), error: ToolError::from(error) });
    let meta = Some((ERROR_META, wire.as_ref()));
    outgoing::answer(id, &CallResult { text: &text, structured: None, is_error: true, meta }, stamp)
}
