//! `oubliette_tools`: every tool of the daemon that a key may call.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use ringback_broker::{Broker, Call, Credential, Edge, LineKind, OfferedTool};
use ringback_mcp_wire::{RawValue, compact, input_schema};
use ringback_proto::Result;
use ringback_proto::envelope::RequestEnvelope;
use ringback_proto::request::{ListToolsRequest, ToolInfo};
use ringback_proto::tool::tools::ListTools;
use ringback_proto::tool::{TOOLS, ToolRow, find};
use serde::Serialize;
use serde_json::value::to_raw_value;

/// The rows of the tool table as listed, built once.
static NATIVE: LazyLock<Vec<Box<RawValue>>> =
    LazyLock::new(|| TOOLS.iter().map(|row| shown(row)).collect());

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolEntry<'a, Schema> {
    name: &'a str,
    description: Cow<'a, str>,
    input_schema: Schema,
}

#[derive(Serialize)]
struct ToolList<'a> {
    tools: Vec<&'a RawValue>,
}

/// The answer to `oubliette_tools`.
pub(crate) fn list(broker: &Broker, credential: &Credential) -> Result<Box<RawValue>> {
    let mut infos = Vec::new();
    let mut request = ListToolsRequest::default();
    loop {
        let envelope = RequestEnvelope::plain(request);
        let call = Call { credential, edge: Edge::Relay, envelope, request_id: None };
        let page = broker.call(call).now::<ListTools>()?;
        infos.extend(page.tools);
        let Some(cursor) = page.next_cursor else { break };
        request = ListToolsRequest { cursor: Some(cursor), prefix: None };
    }
    let kinds = [LineKind::Client, LineKind::Worker];
    let on_lines = kinds.map(|kind| broker.lines().tools(credential, kind).unwrap_or_default());
    let on_lines = on_lines.concat();
    let made: Vec<_> = infos.iter().map(|info| show(info, &on_lines)).collect();
    let tools = made.iter().map(Cow::as_ref).collect();
    Ok(raw(&ToolList { tools }))
}

fn show(info: &ToolInfo, on_lines: &[Arc<OfferedTool>]) -> Cow<'static, RawValue> {
    if let Some(row) = find(&info.name) {
        return Cow::Borrowed(&NATIVE[row.kind as usize]);
    }
    // The schema exactly as its owner declared it; absent if the tool disappeared just now.
    let offered = on_lines.iter().find(|offered| *offered.full_name == *info.name);
    let schema = offered.and_then(|offered| {
        let declared: &RawValue = serde_json::from_slice(offered.info.schema_json()).ok()?;
        input_schema(Some(&compact(declared))).ok()
    });
    let input_schema = schema.unwrap_or_else(|| raw(&info.input_schema));
    let description = info.description.as_str().into();
    Cow::Owned(raw(&ToolEntry { name: &info.name, description, input_schema }))
}

fn shown(row: &ToolRow) -> Box<RawValue> {
    let input_schema = (row.request_schema)().to_value();
    raw(&ToolEntry { name: row.name, description: row.described(), input_schema })
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("names, texts and schemas can be written as JSON")
}
