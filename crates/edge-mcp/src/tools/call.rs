//! `tools/call`: from a name and arguments to a call of the broker.

use ringback_broker::{Answer, Broker, Call, Credential, Edge};
use ringback_mcp_wire::{CallTool, Code, Fault};
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::timing::ToolTiming;
use ringback_proto::{Error, ToolRequest};

use super::follow::{Facts, Follow, Wanted};
use super::interest::Interest;
use super::outcome::Outcome;
use super::{arguments, list, names};

/// Longer than any name of a tool.
const TOOL_NAME_BYTES_MAX: usize = 256;

/// A call as a client asks for it.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) credential: &'a Credential,
    pub(crate) call: CallTool<'a>,
    pub(crate) wanted: Wanted,
    /// Whether there is a way to tell what happens in a session.
    pub(crate) can_follow: bool,
}

/// A call that is over, or under way.
#[derive(Debug)]
pub(crate) enum Begun {
    /// It is over.
    Done(Outcome),
    /// It is under way.
    Later(Box<Follow>),
}

/// Begins a call.
pub(crate) fn begin(broker: &Broker, asked: Asked<'_>) -> Begun {
    let name = asked.call.name.clone();
    match prepare(broker, &asked) {
        Ok(prepared) => start(broker, asked, prepared),
        Err(error) => Begun::Done(Outcome::error(error, &name)),
    }
}

/// What is known of a call before it is made.
struct Prepared {
    call: ToolCall,
    timing: ToolTiming,
    /// Whether its answer is worth waiting for with an open stream.
    is_long: bool,
}

fn prepare(broker: &Broker, asked: &Asked<'_>) -> Result<Prepared, Error> {
    let CallTool { name, arguments } = &asked.call;
    if let Some(row) = arguments::row(name) {
        let call = ToolCall::Native(arguments::request(row, *arguments)?);
        if !asked.can_follow && Interest::of(&call).is_some_and(|interest| interest.follows()) {
            return Err(cannot_follow());
        }
        let is_long = row.makes_job && !row.timing.edge_wait().is_zero();
        return Ok(Prepared { call, timing: row.timing, is_long });
    }
    if name.is_empty() || name.len() > TOOL_NAME_BYTES_MAX {
        let shown: String = name.chars().take(TOOL_NAME_BYTES_MAX).collect();
        return Err(Error::not_found("tool", shown));
    }
    let behind =
        names::is_made(name).then(|| list::behind(broker, asked.credential, name)).flatten();
    let bytes = arguments::object(*arguments)?.into_owned().into();
    let arguments = Any { format: Format::Json, bytes };
    let call = ToolCall::Named { name: behind.unwrap_or_else(|| name.to_string()), arguments };
    // Whoever holds the line takes the time it takes; the broker knows until when.
    Ok(Prepared { call, timing: ToolTiming::AsyncShort, is_long: true })
}

fn start(broker: &Broker, asked: Asked<'_>, prepared: Prepared) -> Begun {
    let Prepared { call, timing, is_long } = prepared;
    let Asked { credential, wanted, .. } = asked;
    let tool = call.name().to_owned();
    let interest = Interest::of(&call);
    let stream = is_long && (wanted.progress.is_some() || wanted.log.is_some());
    let options = CallOptions { stream, ..CallOptions::default() };
    let envelope = RequestEnvelope { request: call, options };
    // JSON-RPC ids start at 0 or 1 with every client, so none of them is known by its id.
    match broker.call(Call { credential, edge: Edge::Mcp, envelope, request_id: None }) {
        Answer::Now(reply) => Begun::Done(Outcome::of(reply, &tool)),
        Answer::Later(replies, control) => {
            let streamed = stream.then_some(wanted);
            let facts = Facts { tool, timing, is_long, interest, streamed };
            Begun::Later(Box::new(Follow::new(replies, control, facts)))
        }
    }
}

/// Makes a call that was made before once more, for how things stand now.
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
    let message = "nothing can be told here while a session goes on: leave `follow` out and read \
        `session_events` with `wait_ms`, or set `io.modelcontextprotocol/logLevel` in `_meta` to \
        `info` or `debug` and accept `text/event-stream`";
    Error::invalid_field("follow", message)
}
