//! `tools/list`: a page of what the caller may call.

use ringback_broker::{Answer, Broker, Call, Credential, Edge};
use ringback_mcp_wire::outgoing::{self, Cache, CacheScope, Stamp, ToolsPage};
use ringback_mcp_wire::{Fault, Id, RawValue};
use ringback_proto::envelope::RequestEnvelope;
use ringback_proto::request::{ListToolsRequest, ToolInfo};
use ringback_proto::tool::find;
use ringback_proto::{Error, ResponseEnvelope, ToolResponse};
use serde_json::value::to_raw_value;

use super::names;
use super::native::{Listed, ListedMeta, native};

/// Short: a tool on a line may go at any time, and asking again costs little.
const TTL_MS: u64 = 5_000;

/// A tool ready to be shown.
enum Shown {
    Native(&'static RawValue),
    OnALine(Box<RawValue>),
}

/// The answer to `tools/list`.
pub(crate) fn page(
    broker: &Broker,
    credential: &Credential,
    id: &Id,
    cursor: Option<String>,
    stamp: Stamp<'_>,
) -> Result<String, Error> {
    let (tools, next_cursor) =
        listed(broker, credential, ListToolsRequest { cursor, prefix: None })?;
    let shown: Vec<_> = tools.iter().map(show).collect();
    let tools = shown.iter().map(Shown::raw).collect();
    let cache = Cache { ttl_ms: TTL_MS, scope: CacheScope::Private };
    Ok(outgoing::answer(id, &ToolsPage { tools, next_cursor, cache }, stamp))
}

/// The tool behind a name that was made for clients, found among those the caller may call.
pub(super) fn behind(broker: &Broker, credential: &Credential, made: &str) -> Option<String> {
    let mut request = ListToolsRequest::default();
    loop {
        let (tools, next_cursor) = listed(broker, credential, request).ok()?;
        if let Some(tool) = tools.into_iter().find(|tool| names::offered(&tool.name) == made) {
            return Some(tool.name);
        }
        request = ListToolsRequest { cursor: Some(next_cursor?), prefix: None };
    }
}

fn listed(
    broker: &Broker,
    credential: &Credential,
    request: ListToolsRequest,
) -> Result<(Vec<ToolInfo>, Option<String>), Error> {
    let envelope = RequestEnvelope::plain(request);
    let unexpected = || Error::internal("mcp", "`list_tools` did not answer with a list");
    match broker.call(Call { credential, edge: Edge::Mcp, envelope, request_id: None }) {
        Answer::Now(ResponseEnvelope::Success { response: ToolResponse::ToolsList(list) }) => {
            Ok((list.tools, list.next_cursor))
        }
        Answer::Now(ResponseEnvelope::Error(error)) => Err(error.into()),
        Answer::Now(
            ResponseEnvelope::Success { .. }
            | ResponseEnvelope::JobStarted { .. }
            | ResponseEnvelope::Ack { .. }
            | ResponseEnvelope::StreamStart { .. }
            | ResponseEnvelope::StreamChunk { .. }
            | ResponseEnvelope::StreamEnd { .. },
        )
        | Answer::Later(..) => Err(unexpected()),
    }
}

fn show(tool: &ToolInfo) -> Shown {
    if let Some(row) = find(&tool.name) {
        return Shown::Native(&native(row).listed);
    }
    let listed = Listed {
        name: &names::offered(&tool.name),
        description: tool.description.as_str().into(),
        input_schema: &tool.input_schema,
        output_schema: None,
        annotations: None,
        meta: ListedMeta { timing: tool.timing, scope: tool.scope },
    };
    Shown::OnALine(to_raw_value(&listed).expect("a schema can be written as JSON"))
}

impl Shown {
    fn raw(&self) -> &RawValue {
        match self {
            Self::Native(raw) => raw,
            Self::OnALine(raw) => raw,
        }
    }
}

/// A page that does not exist is the client's mistake.
pub(crate) fn fault(error: &Error) -> Fault {
    Fault::invalid_params(error.message())
}
