//! The daemon itself: `ping`, `list_tools`, `config_get`, `event_poll`.

use std::time::Duration;

use ringback_core::policy::authorize;
use ringback_proto::principal::Level;
use ringback_proto::request::{
    ConfigGetRequest, ConfigValueResponse, EventPollRequest, EventsResponse, ListToolsRequest,
    PingRequest, PongResponse, ToolInfo, ToolsListResponse,
};
use ringback_proto::tool::{TOOLS, find, tools};
use ringback_proto::value::Value;
use ringback_proto::{Error, Event, Result};
use serde::Deserialize as _;

use super::Native;
use crate::handler::{Context, Handler, SyncContext, SyncHandler};
use crate::lines::OfferedTool;
use crate::studio::StudioTools;

/// The section of the configuration that lists the music services.
const SERVICES: &str = "studio.services";
/// The key that `config_get` adds to it.
const HEALTH: &str = "health";
/// Tools on a page.
const TOOLS_PER_PAGE: usize = 100;
/// Events on a page by default.
const EVENTS_LIMIT: u32 = 100;
/// Events on a page at most.
const EVENTS_LIMIT_MAX: u32 = 1000;
/// The longest wait for an event.
const EVENTS_WAIT_MS_MAX: u64 = 30_000;

impl SyncHandler<tools::Ping> for Native {
    fn handle(ctx: &SyncContext<'_>, _: PingRequest) -> Result<PongResponse> {
        Ok(PongResponse {
            uptime_ms: ctx.now.mono.saturating_sub(ctx.facts.started.mono),
            version: ctx.facts.version.clone(),
        })
    }
}

impl SyncHandler<tools::ListTools> for Native {
    fn handle(ctx: &SyncContext<'_>, request: ListToolsRequest) -> Result<ToolsListResponse> {
        let prefix = request.prefix.unwrap_or_default();
        let after = request.cursor.unwrap_or_default();
        let mut native = ctx
            .facts
            .tools
            .iter()
            .filter(|tool| tool.name > after && tool.name.starts_with(&prefix))
            .filter(|tool| {
                find(&tool.name).is_some_and(|row| authorize(ctx.principal, row).is_ok())
            })
            .peekable();
        let on_lines = ctx.lines.page(ctx.principal, &after, &prefix, TOOLS_PER_PAGE + 1);
        let mut on_lines = on_lines.iter().peekable();
        let mut tools = Vec::new();
        while tools.len() < TOOLS_PER_PAGE {
            let next = match (native.peek(), on_lines.peek()) {
                (Some(native), Some(on_line)) if *on_line.full_name < *native.name => None,
                (Some(_), _) => native.next().cloned(),
                (None, Some(_)) => None,
                (None, None) => break,
            };
            tools.extend(next.or_else(|| on_lines.next().map(|tool| on_line_info(tool))));
        }
        let has_more = native.peek().is_some() || on_lines.peek().is_some();
        let next_cursor = tools.last().filter(|_| has_more).map(|last| last.name.clone());
        Ok(ToolsListResponse { tools, next_cursor })
    }
}

fn on_line_info(tool: &OfferedTool) -> ToolInfo {
    ToolInfo {
        name: tool.full_name.to_string(),
        description: tool.info.description.to_string(),
        input_schema: tool.info.schema.value(),
        timing: tool.info.timing,
        scope: Level::Write,
    }
}

impl SyncHandler<tools::ConfigGet> for Native {
    fn handle(ctx: &SyncContext<'_>, request: ConfigGetRequest) -> Result<ConfigValueResponse> {
        let ConfigGetRequest { section, key } = request;
        if section.is_none() && key.is_some() {
            return Err(Error::invalid_field("key", "`key` needs `section`"));
        }
        let shown = ctx.facts.view.get(section.as_deref(), key.as_deref());
        let shown = match (section.as_deref(), key.as_deref()) {
            (Some(SERVICES), Some(HEALTH)) => Some(service_health(&*ctx.facts.studio)),
            (Some(SERVICES), None) => shown.map(|shown| with_health(shown, &*ctx.facts.studio)),
            _ => shown,
        };
        let value = shown.ok_or_else(|| {
            let name = [section.as_deref(), key.as_deref()];
            Error::not_found("setting", name.into_iter().flatten().collect::<Vec<_>>().join("."))
        })?;
        Ok(ConfigValueResponse { section, key, value })
    }
}

/// Adds the state of the music services to their section.
fn with_health(shown: Value, studio: &dyn StudioTools) -> Value {
    let Value::Map(mut entries) = shown else { return shown };
    entries.push((HEALTH.to_owned(), service_health(studio)));
    Value::Map(entries)
}

/// Returns the configured music services, and what is known of them.
fn service_health(studio: &dyn StudioTools) -> Value {
    let entry = |(name, health): (&str, &str)| (name.to_owned(), Value::Text(health.to_owned()));
    Value::Map(studio.services().into_iter().map(entry).collect())
}

impl Handler<tools::EventPoll> for Native {
    async fn handle(ctx: Context, request: EventPollRequest) -> Result<EventsResponse> {
        let types = request.types;
        if let Some(unknown) =
            types.iter().flatten().find(|name| !Event::TOPICS.contains(&name.as_str()))
        {
            let known = Event::TOPICS.join(", ");
            return Err(Error::invalid_field(
                "types",
                format!("unknown event type `{unknown}`; the types are {known}"),
            ));
        }
        let limit = request.limit.unwrap_or(EVENTS_LIMIT).clamp(1, EVENTS_LIMIT_MAX) as usize;
        let hub = &ctx.rooms.kernel.events;
        let (epoch, sight) = (hub.epoch(), ctx.sight());
        let cursor = read_cursor(request.cursor.as_deref(), epoch)?;
        let wait = Duration::from_millis(request.wait_ms.unwrap_or(0).min(EVENTS_WAIT_MS_MAX));
        let until = tokio::time::Instant::now() + wait;
        let mut looked_at = cursor;
        let mut missed = 0;
        loop {
            let rung = hub.rung();
            let page = hub.after(looked_at, limit, &sight, |event| {
                types.as_ref().is_none_or(|types| types.iter().any(|name| name == event.topic()))
            });
            looked_at = page.cursor;
            missed += page.missed;
            if !page.events.is_empty() || tokio::time::timeout_at(until, rung).await.is_err() {
                return Ok(EventsResponse {
                    events: page.events.iter().map(|seen| seen.event.clone()).collect(),
                    cursor: write_cursor(epoch, page.cursor),
                    missed: (missed > 0).then_some(missed),
                });
            }
        }
    }
}

/// A cursor of an earlier epoch starts over: everything kept in this run is new to its reader.
fn read_cursor(cursor: Option<&str>, epoch: u64) -> Result<u64> {
    let Some(cursor) = cursor else { return Ok(0) };
    let parsed = cursor.split_once('-').and_then(|(cursor_epoch, seq)| {
        Some((cursor_epoch.parse::<u64>().ok()?, seq.parse::<u64>().ok()?))
    });
    match parsed {
        None => Err(Error::invalid_field("cursor", "the cursor does not come from `event_poll`")),
        Some((cursor_epoch, seq)) => Ok(if cursor_epoch == epoch { seq } else { 0 }),
    }
}

fn write_cursor(epoch: u64, seq: u64) -> String {
    format!("{epoch}-{seq}")
}

/// Returns the native tools as `list_tools` shows them, in the order of their names.
pub(super) fn tool_infos() -> Vec<ToolInfo> {
    let mut infos: Vec<_> = TOOLS
        .iter()
        .map(|row| ToolInfo {
            name: row.name.to_owned(),
            description: row.description.to_owned(),
            input_schema: Value::deserialize((row.request_schema)().to_value())
                .expect("a schema is a value"),
            timing: row.timing,
            scope: row.level,
        })
        .collect();
    infos.sort_by(|a, b| a.name.cmp(&b.name));
    infos
}
