//! The lines that agents and their driver exchange: one JSON object each.

use serde::{Deserialize, Serialize};

/// What an agent says. On its standard output each is one line of JSON with `type`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// Words for whoever asked.
    Message {
        /// What.
        text: String,
    },
    /// It calls a tool.
    ToolCall {
        /// Which.
        tool: String,
    },
    /// A tool has answered.
    ToolResult {
        /// Which.
        tool: String,
        /// What, as text.
        #[serde(default)]
        text: String,
        /// Whether it failed.
        #[serde(default)]
        is_error: bool,
    },
    /// What may help to understand it.
    Log {
        /// What.
        text: String,
    },
    /// It has done what the last message asked for.
    Done {
        /// Its last word, if it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// A line that is no event; told by the driver, never by an agent.
    #[serde(skip)]
    Garbage {
        /// Its beginning.
        text: String,
    },
}

/// What is told to an agent, on its standard input.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Told<'a> {
    /// Somebody says something to it.
    Message {
        /// What.
        text: &'a str,
    },
}

/// Enough of a line that is no event to recognise it.
const GARBAGE_CHARS_MAX: usize = 200;

impl AgentEvent {
    /// Reads a line.
    pub(crate) fn read(line: &[u8]) -> Self {
        serde_json::from_slice(line).unwrap_or_else(|_| Self::garbage(line))
    }

    pub(crate) fn garbage(line: &[u8]) -> Self {
        let text = String::from_utf8_lossy(&line[..line.len().min(4 * GARBAGE_CHARS_MAX)]);
        Self::Garbage { text: text.chars().take(GARBAGE_CHARS_MAX).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_event_or_garbage() {
        let said = AgentEvent::read(br#"{"type":"message","text":"hello","new_field":1}"#);
        assert_eq!(said, AgentEvent::Message { text: "hello".to_owned() });
        let done = AgentEvent::read(br#"{"type":"done"}"#);
        assert_eq!(done, AgentEvent::Done { text: None });
        for line in [&b"hello"[..], b"{}", br#"{"type":"garbage","text":"x"}"#, b"\xff\xfe"] {
            assert!(matches!(AgentEvent::read(line), AgentEvent::Garbage { .. }), "{line:?}");
        }
        let AgentEvent::Garbage { text } = AgentEvent::read(&[b'x'; 100_000]) else { panic!() };
        assert_eq!(text.len(), GARBAGE_CHARS_MAX);
    }
}
