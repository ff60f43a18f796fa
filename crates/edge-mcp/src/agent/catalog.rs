//! The tools of a session and their names: the same as `ringback-inside` gives them.

use std::borrow::Cow;
use std::sync::Arc;

use ringback_broker::{Broker, OfferedTool, SessionPass};
use ringback_mcp_wire::names::{self, Claim};
use ringback_mcp_wire::outgoing::{self, Cache, CacheScope, Stamp, ToolsPage};
use ringback_mcp_wire::{Id, RawValue, compact};
use ringback_proto::principal::Level;
use ringback_proto::tool::ToolRow;
use ringback_proto::{Error, Result};
use serde::Serialize;
use serde_json::value::to_raw_value;

use crate::tools::{self, ToolListing, ToolMeta};

/// Tools per page.
const PAGE_MAX: usize = 100;

/// The target of a tool call.
#[derive(Debug, Clone)]
pub(super) enum Route {
    /// A caller.
    Caller(Arc<str>, Arc<OfferedTool>),
    /// The daemon, with the key.
    Native(&'static ToolRow),
    /// A line, with the key.
    OnALine(Arc<OfferedTool>),
}

/// A caller's tool as listed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeclaredTool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_schema: Option<Box<RawValue>>,
}

/// The answer to `tools/list`.
pub(crate) fn page(
    broker: &Broker,
    pass: &SessionPass,
    id: &Id,
    cursor: Option<String>,
    stamp: Stamp<'_>,
) -> Result<String> {
    let start = match cursor {
        None => 0,
        Some(cursor) => cursor.parse::<usize>().map_err(|_| {
            Error::invalid_field("cursor", "no such page; list the tools from the start")
        })?,
    };
    let mut routes = of_callers(broker, pass);
    routes.extend(of_key(broker, pass));
    let named = named(routes);
    let shown: Vec<_> =
        named.iter().skip(start).take(PAGE_MAX).map(|(name, route)| show(name, route)).collect();
    let next = start.saturating_add(shown.len());
    let next_cursor = (next < named.len()).then(|| next.to_string());
    let tools = shown.iter().map(Cow::as_ref).collect();
    let cache = Cache { ttl_ms: tools::TTL_MS, scope: CacheScope::Private };
    Ok(outgoing::answer(id, &ToolsPage { tools, next_cursor, cache }, stamp))
}

/// Returns the target of a call to the tool of this name.
pub(super) fn route(broker: &Broker, pass: &SessionPass, name: &str) -> Option<Route> {
    let mut routes = of_callers(broker, pass);
    // A name starts with its owner's prefix, so that others cannot claim it.
    if name.starts_with(names::NATIVE) {
        routes.extend(of_key(broker, pass));
    }
    named(routes).into_iter().find(|(own, _)| own == name).map(|(_, route)| route)
}

fn of_callers(broker: &Broker, pass: &SessionPass) -> Vec<Route> {
    let callers = broker.session_caller_tools(pass.session());
    let route = |caller_id: &Arc<str>, tool| Route::Caller(Arc::clone(caller_id), tool);
    callers
        .into_iter()
        .flat_map(|caller| caller.tools.into_iter().map(move |tool| route(&caller.caller_id, tool)))
        .collect()
}

fn of_key(broker: &Broker, pass: &SessionPass) -> impl Iterator<Item = Route> {
    let (native, on_lines) = broker.key_tools(pass);
    native.into_iter().map(Route::Native).chain(on_lines.into_iter().map(Route::OnALine))
}

fn named(routes: Vec<Route>) -> Vec<(String, Route)> {
    let claims: Vec<_> = routes.iter().map(Route::claim).collect();
    let names = names::assign(&claims);
    names.into_iter().zip(routes).collect()
}

impl Route {
    fn claim(&self) -> Claim<'_> {
        match self {
            Self::Caller(caller_id, tool) => Claim::caller(caller_id, &tool.name),
            Self::Native(row) => Claim::native(row.name),
            Self::OnALine(tool) => Claim::native(&tool.full_name),
        }
    }
}

fn show(name: &str, route: &Route) -> Cow<'static, RawValue> {
    let schema = |tool: &OfferedTool| {
        let declared = serde_json::from_slice::<&RawValue>(tool.info.schema_json());
        declared.ok().map(compact)
    };
    match route {
        Route::Native(row) => Cow::Borrowed(tools::in_session(row)),
        Route::Caller(_, tool) => {
            let (description, input_schema) = (&*tool.info.description, schema(tool));
            Cow::Owned(raw(&DeclaredTool { name, description, input_schema }))
        }
        Route::OnALine(tool) => Cow::Owned(raw(&ToolListing {
            name,
            description: Cow::Borrowed(&*tool.info.description),
            input_schema: schema(tool).map(|schema| tools::with_type(&schema)),
            output_schema: None,
            annotations: None,
            meta: ToolMeta { timing: tool.info.timing, scope: Level::Write },
        })),
    }
}

fn raw(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).expect("names, texts and schemas can be written as JSON")
}
