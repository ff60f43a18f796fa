//! Events of the scripted agent, on standard output.

use std::io::Write as _;

use ringback_mcp_wire::RawValue;
use serde::Serialize;

/// The largest arguments or result that are told in full.
const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// What is told: the events of the driver, with more in those of calls.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Told<'a> {
    Message { text: &'a str },
    ToolCall { id: u64, tool: &'a str, arguments: &'a RawValue },
    ToolResult { id: u64, tool: &'a str, text: &'a str, is_error: bool, result: &'a RawValue },
    Log { text: &'a str },
    Done {},
}

/// Tells an event.
pub(super) fn tell(told: &Told<'_>) -> Result<(), String> {
    raw(&serde_json::to_string(told).map_err(|error| error.to_string())?)
}

/// Writes a line as it is, which may be no event.
pub(super) fn raw(line: &str) -> Result<(), String> {
    let mut output = std::io::stdout().lock();
    let written = writeln!(output, "{line}").and_then(|()| output.flush());
    written.map_err(|error| format!("nobody takes events any more: {error}"))
}

/// A payload that fits in an event: itself, or how large it is.
pub(super) fn shown(payload: &RawValue) -> Box<RawValue> {
    let n_bytes = payload.get().len();
    if n_bytes <= PAYLOAD_BYTES_MAX {
        return payload.to_owned();
    }
    RawValue::from_string(format!("{{\"omitted_bytes\":{n_bytes}}}"))
        .expect("an object with a number")
}

/// A text that fits in an event.
pub(super) fn shortened(text: &str) -> &str {
    let end = (0..=text.len().min(PAYLOAD_BYTES_MAX)).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or_default()]
}
