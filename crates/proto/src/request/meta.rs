//! The daemon itself: `ping`, `list_tools`, `config_get`, `event_poll`.

use super::wire_struct;
use crate::event::SequencedEvent;
use crate::principal::Level;
use crate::timing::ToolTiming;
use crate::value::Value;

wire_struct! {
    /// No input.
    #[derive(Default)]
    PingRequest {}

    /// The answer to a ping.
    PongResponse {
        /// How long the daemon has been running, in milliseconds.
        uptime_ms: u64,
        /// The version of the daemon.
        version: String,
    }

    /// The filter for tools.
    #[derive(Default)]
    ListToolsRequest {
        /// The `next_cursor` of the previous page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
        /// Only tools whose names start with this text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prefix: Option<String>,
    }

    /// A page of tools, sorted by name.
    ToolsListResponse {
        /// The tools you may call.
        tools: Vec<ToolInfo>,
        /// The cursor of the next page; absent on the last page.
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
        /// Its timing class.
        timing: ToolTiming,
        /// The scope a token needs to call it.
        scope: Level,
    }

    /// The part of the configuration to read.
    #[derive(Default)]
    ConfigGetRequest {
        /// A section; all sections if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section: Option<String>,
        /// A key in the section.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    }

    /// A part of the configuration.
    ConfigValueResponse {
        /// The requested section.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        section: Option<String>,
        /// The requested key.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// The value, with secrets masked.
        value: Value,
    }

    /// The filter for events.
    #[derive(Default)]
    EventPollRequest {
        /// The cursor of the previous answer; the oldest kept event if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
        /// Only events of these types.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        types: Option<Vec<String>>,
        /// The maximum number of events to return: default 100, at most 1000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// How long to wait for the first event, in milliseconds: default 0, at most 30 s.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        wait_ms: Option<u64>,
    }

    /// Events in order.
    EventsResponse {
        /// The events after the cursor that you may see.
        events: Vec<SequencedEvent>,
        /// The cursor for the next request.
        cursor: String,
        /// The number of events after the given cursor that are no longer kept.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        missed: Option<u64>,
    }

    /// An acknowledgement.
    AckResponse {
        /// What was done.
        message: String,
    }
}
