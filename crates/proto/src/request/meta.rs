//! The daemon itself: `ping`, `list_tools`, `config_get`, `event_poll`.

use super::wire_struct;
use crate::event::SequencedEvent;
use crate::principal::Level;
use crate::timing::ToolTiming;
use crate::value::Value;

wire_struct! {
    /// Takes nothing.
    #[derive(Default)]
    PingRequest {}

    /// The daemon is alive.
    PongResponse {
        /// How long it has been running.
        uptime_ms: u64,
        /// Which version it is.
        version: String,
    }

    /// Which tools to list.
    #[derive(Default)]
    ListToolsRequest {
        /// Where the page before this one ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
        /// Only names that start so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<String>,
    }

    /// A page of tools, in the order of their names.
    ToolsListResponse {
        /// The tools you may call.
        tools: Vec<ToolInfo>,
        /// Where the next page starts; absent on the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    /// One tool.
    ToolInfo {
        /// Its name.
        name: String,
        /// What it does.
        description: String,
        /// The JSON Schema of its input.
        input_schema: Value,
        /// How long it takes.
        timing: ToolTiming,
        /// The least level that may call it.
        scope: Level,
    }

    /// Which part of the configuration.
    #[derive(Default)]
    ConfigGetRequest {
        /// A section; all of them if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section: Option<String>,
        /// A key of the section.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    }

    /// A part of the configuration.
    ConfigValueResponse {
        /// The section asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section: Option<String>,
        /// The key asked for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Its value, secrets masked.
        value: Value,
    }

    /// Which events.
    #[derive(Default)]
    EventPollRequest {
        /// The cursor of the answer before; the oldest kept event if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
        /// Only these types.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        types: Option<Vec<String>>,
        /// At most so many: 100 if absent, 1000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// How long to wait for the first event: not at all if absent, 30 s at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
    }

    /// Events in their order.
    EventsResponse {
        /// The events after the cursor that you may see.
        events: Vec<SequencedEvent>,
        /// Where to go on.
        cursor: String,
        /// How many events between the cursor given and the first kept one are gone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missed: Option<u64>,
    }

    /// Done.
    AckResponse {
        /// What was done.
        message: String,
    }
}
