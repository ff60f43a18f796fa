//! Events of the scripted agent, on standard output.

use std::io::Write as _;

use ringback_mcp_wire::RawValue;

use crate::event::AgentEvent;

/// The largest arguments or result that are told in full.
const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// Standard output.
#[derive(Debug, Default)]
pub(super) struct Output {}

impl Output {
    /// Tells an event; a payload that is too large is replaced by its size.
    pub(super) fn tell(&self, event: &AgentEvent) -> Result<(), String> {
        self.raw(&event.encode())
    }

    pub(super) fn say(&self, text: impl Into<String>) -> Result<(), String> {
        self.tell(&AgentEvent::Message { text: text.into() })
    }

    pub(super) fn log(&self, text: impl Into<String>) -> Result<(), String> {
        self.tell(&AgentEvent::Log { text: text.into() })
    }

    /// A line as it is, which may be no event.
    pub(super) fn raw(&self, line: &str) -> Result<(), String> {
        let mut output = std::io::stdout().lock();
        let written = writeln!(output, "{line}").and_then(|()| output.flush());
        written.map_err(|error| format!("nobody takes events any more: {error}"))
    }
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
