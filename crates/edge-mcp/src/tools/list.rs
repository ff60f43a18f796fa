//! `tools/list`: a page of the tools that the caller may call.

use std::sync::Arc;

use ringback_broker::{Broker, Call, Credential, Edge, OfferedTool};
use ringback_mcp_wire::outgoing::{self, Cache, CacheScope, Stamp, ToolsPage};
use ringback_mcp_wire::{Fault, Id, Object, RawValue, compact, names};
use ringback_proto::Error;
use ringback_proto::envelope::RequestEnvelope;
use ringback_proto::request::{ListToolsRequest, ToolInfo, ToolsListResponse};
use ringback_proto::tool::find;
use ringback_proto::tool::tools::ListTools;
use serde_json::value::to_raw_value;

use super::native::{ToolListing, ToolMeta, native};
use crate::agent;
use crate::changes::on_lines;
use crate::peer::Peer;

/// Short: a tool on a line may disappear at any time, and listing again costs little.
pub(crate) const TTL_MS: u64 = 5_000;

/// A tool ready to be listed.
enum ListedTool {
    Native(&'static RawValue),
    OnALine(Box<RawValue>),
}

/// The answer to `tools/list`.
pub(crate) fn page(
    broker: &Broker,
    peer: &Peer,
    id: &Id,
    cursor: Option<String>,
    stamp: Stamp<'_>,
) -> Result<String, Error> {
    match peer {
        Peer::Caller(credential) => callers_page(broker, credential, id, cursor, stamp),
        Peer::Agent(pass) => agent::page(broker, pass, id, cursor, stamp),
    }
}

fn callers_page(
    broker: &Broker,
    credential: &Credential,
    id: &Id,
    cursor: Option<String>,
    stamp: Stamp<'_>,
) -> Result<String, Error> {
    let ToolsListResponse { tools, next_cursor } =
        listed(broker, credential, ListToolsRequest { cursor, prefix: None })?;
    let is_native = |tool: &ToolInfo| find(&tool.name).is_some();
    let on_lines =
        if tools.iter().all(is_native) { Vec::new() } else { on_lines(broker, credential) };
    let shown: Vec<_> = tools.iter().map(|tool| show(tool, &on_lines)).collect();
    let tools = shown.iter().map(ListedTool::raw).collect();
    let cache = Cache { ttl_ms: TTL_MS, scope: CacheScope::Private };
    Ok(outgoing::answer(id, &ToolsPage { tools, next_cursor, cache }, stamp))
}

/// The tool behind a name generated for clients, searched among those the caller may call.
pub(super) fn behind(broker: &Broker, credential: &Credential, made: &str) -> Option<String> {
    let mut request = ListToolsRequest::default();
    loop {
        let ToolsListResponse { tools, next_cursor } = listed(broker, credential, request).ok()?;
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
) -> Result<ToolsListResponse, Error> {
    let envelope = RequestEnvelope::plain(request);
    broker.call(Call { credential, edge: Edge::Mcp, envelope, request_id: None }).now::<ListTools>()
}

fn show(tool: &ToolInfo, on_lines: &[Arc<OfferedTool>]) -> ListedTool {
    if let Some(row) = find(&tool.name) {
        return ListedTool::Native(&native(row).listed);
    }
    // The schema exactly as its owner declared it; absent if the tool disappeared just now.
    let offered = on_lines.iter().find(|offered| *offered.full_name == *tool.name);
    let schema = offered.and_then(|offered| {
        let raw: &RawValue = serde_json::from_slice(offered.info.schema_json()).ok()?;
        Some(with_type(raw))
    });
    let schema = schema.unwrap_or_else(|| {
        to_raw_value(&tool.input_schema).expect("a schema can be written as JSON")
    });
    let listed = ToolListing {
        name: &names::offered(&tool.name),
        description: tool.description.as_str().into(),
        input_schema: &*schema,
        output_schema: None,
        annotations: None,
        meta: ToolMeta { timing: tool.timing, scope: tool.scope },
    };
    ListedTool::OnALine(to_raw_value(&listed).expect("a schema can be written as JSON"))
}

/// A schema on one line with type `object`, as clients require.
pub(crate) fn with_type(schema: &RawValue) -> Box<RawValue> {
    let packed = compact(schema);
    let has_type = Object::of(&packed).is_ok_and(|object| object.get("type").is_some());
    match packed.get().strip_prefix('{') {
        Some(rest) if !has_type => {
            let comma = if rest == "}" { "" } else { "," };
            let typed = format!("{{\"type\":\"object\"{comma}{rest}");
            RawValue::from_string(typed).unwrap_or(packed)
        }
        Some(_) | None => packed,
    }
}

impl ListedTool {
    fn raw(&self) -> &RawValue {
        match self {
            Self::Native(raw) => raw,
            Self::OnALine(raw) => raw,
        }
    }
}

/// A page that does not exist is the client's error.
pub(crate) fn fault(error: &Error) -> Fault {
    Fault::invalid_params(error.message())
}
