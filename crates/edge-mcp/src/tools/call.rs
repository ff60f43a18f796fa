//! `tools/call`: from a name and arguments to a call of the broker.

use ringback_broker::{Answer, Broker, Call, Credential, Edge};
use ringback_mcp_wire::{CallTool, Code, Fault, Id, RawValue, names};
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::timing::ToolTiming;
use ringback_proto::tool::ToolRow;
use ringback_proto::{Error, ToolRequest};

use super::interest::Interest;
use super::outcome::Outcome;
use super::running_call::{Facts, NotificationOptions, RunningCall};
use super::{arguments, list};
use crate::agent;
use crate::peer::Peer;

/// Longer than any tool name.
const TOOL_NAME_BYTES_MAX: usize = 256;

/// A requested call.
#[derive(Debug)]
pub(crate) struct CallRequest<'a> {
    pub(crate) id: &'a Id,
    pub(crate) peer: &'a Peer,
    pub(crate) call: CallTool<'a>,
    pub(crate) wanted: NotificationOptions,
    /// Whether the client can receive events of a session on this request.
    pub(crate) can_follow: bool,
}

/// An ended or running call.
#[derive(Debug)]
pub(crate) enum CallState {
    /// It has ended.
    Done(Outcome),
    /// It is running.
    Later(Box<RunningCall>),
}

/// Starts a call.
pub(crate) fn begin(broker: &Broker, call_request: CallRequest<'_>) -> CallState {
    let CallRequest { id, peer, call, wanted, can_follow } = call_request;
    let credential = match peer {
        Peer::Caller(credential) => credential,
        Peer::Agent(pass) => return agent::begin(broker, pass, id, &call, wanted),
    };
    if let Some(row) = arguments::row(&call.name) {
        return native(broker, credential, row, call.arguments, wanted, can_follow);
    }
    match named(broker, credential, &call) {
        // The owner of the line takes as long as it needs; the broker knows the deadline.
        Ok(call) => start(broker, credential, call, ToolTiming::AsyncShort, true, wanted),
        Err(error) => CallState::Done(Outcome::error(error, &call.name)),
    }
}

/// Starts a call of a native tool.
pub(crate) fn native(
    broker: &Broker,
    credential: &Credential,
    row: &'static ToolRow,
    arguments: Option<&RawValue>,
    wanted: NotificationOptions,
    can_follow: bool,
) -> CallState {
    let may = broker.may_call(credential, Edge::Mcp, row.name);
    let request = match may.and_then(|()| arguments::request(row, arguments)) {
        Ok(request) => ToolCall::Native(request),
        Err(error) => return CallState::Done(Outcome::error(error, row.name)),
    };
    if !can_follow && Interest::of(&request).is_some_and(|interest| interest.follows()) {
        return CallState::Done(Outcome::error(cannot_follow(), row.name));
    }
    // Whether its answer is worth an open stream.
    let is_long = row.makes_job && !row.timing.edge_wait().is_zero();
    start(broker, credential, request, row.timing, is_long, wanted)
}

/// A call of a tool on a line.
fn named(broker: &Broker, credential: &Credential, call: &CallTool<'_>) -> Result<ToolCall, Error> {
    let CallTool { name, arguments, .. } = call;
    if name.is_empty() || name.len() > TOOL_NAME_BYTES_MAX {
        let shown: String = name.chars().take(TOOL_NAME_BYTES_MAX).collect();
        return Err(Error::not_found("tool", shown));
    }
    let behind = names::is_made(name).then(|| list::behind(broker, credential, name)).flatten();
    let bytes = arguments::object(*arguments)?.into_owned().into();
    let arguments = Any { format: Format::Json, bytes };
    Ok(ToolCall::Named { name: behind.unwrap_or_else(|| name.to_string()), arguments })
}

fn start(
    broker: &Broker,
    credential: &Credential,
    call: ToolCall,
    timing: ToolTiming,
    is_long: bool,
    wanted: NotificationOptions,
) -> CallState {
    let tool = call.name().to_owned();
    let interest = Interest::of(&call);
    let stream = is_long && wanted.is_any();
    let options = CallOptions { stream, ..CallOptions::default() };
    let envelope = RequestEnvelope { request: call, options };
    // Every client's JSON-RPC ids start at 0 or 1, so they do not identify a call.
    let answer = broker.call(Call { credential, edge: Edge::Mcp, envelope, request_id: None });
    let streamed = stream.then_some(wanted);
    call_state(answer, Facts { tool, timing, is_long, interest, streamed })
}

/// A started call.
pub(crate) fn call_state(answer: Answer, facts: Facts) -> CallState {
    match answer {
        Answer::Now(reply) => CallState::Done(Outcome::of(reply, &facts.tool)),
        Answer::Later(replies, control) => {
            CallState::Later(Box::new(RunningCall::new(replies, control, facts)))
        }
    }
}

/// Repeats an earlier call, for the current state.
pub(crate) async fn again(
    broker: &Broker,
    credential: &Credential,
    request: impl Into<ToolRequest>,
) -> Outcome {
    let call = ToolCall::Native(request.into());
    let tool = call.name().to_owned();
    let envelope = RequestEnvelope { request: call, options: CallOptions::default() };
    let reply = match broker.call(Call { credential, edge: Edge::Mcp, envelope, request_id: None })
    {
        Answer::Now(reply) => Some(reply),
        Answer::Later(mut replies, _) => replies.next().await,
    };
    let lost = || Outcome::Fault(Fault::new(Code::Internal, "the tool ended without an answer"));
    reply.map_or_else(lost, |reply| Outcome::of(reply, &tool))
}

/// The model may have asked for it, and can do without.
fn cannot_follow() -> Error {
    let message = "cannot follow a session on this request: leave `follow` out and read \
        `session_events` with `wait_ms`, or set `io.modelcontextprotocol/logLevel` in `_meta` to \
        `info` or `debug` and accept `text/event-stream`";
    Error::invalid_field("follow", message)
}
