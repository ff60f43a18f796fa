//! The lines that agents and their driver exchange: one JSON object each (`docs/agents.md`).

use serde::{Deserialize, Serialize};

/// What an agent says. On its standard output each is one line of JSON with `type`; fields that are
/// not known here are passed over.
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
        /// Which, as the agent sees it.
        tool: String,
    },
    /// A tool has answered.
    ToolResult {
        /// Which, as the agent sees it.
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
    /// Lines that are no event; told by the driver, never by an agent.
    #[serde(skip)]
    Garbage {
        /// The beginning of the first.
        text: String,
    },
}

/// What is told to an agent, on its standard input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Message {
    /// Somebody says something to it.
    Message {
        /// What.
        text: String,
    },
}

impl AgentEvent {
    /// Reads a line of an agent; `None` if it is no event.
    #[must_use]
    pub fn decode(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

impl Message {
    /// Reads a line to an agent; `None` if it is no message.
    pub(crate) fn decode(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }

    pub(crate) fn encode(&self) -> String {
        serde_json::to_string(self).expect("plain data can be written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_event_or_none() {
        let said = AgentEvent::decode(br#"{"type":"message","text":"hello","new_field":1}"#);
        assert_eq!(said, Some(AgentEvent::Message { text: "hello".to_owned() }));
        let done = AgentEvent::decode(br#"{"type":"done"}"#);
        assert_eq!(done, Some(AgentEvent::Done { text: None }));
        for line in [
            &b"hello"[..],
            b"",
            b"{}",
            br#"{"type":"message"}"#,
            br#"{"type":"garbage","text":"x"}"#,
            b"\xff\xfe",
        ] {
            assert_eq!(AgentEvent::decode(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let message = Message::Message { text: "say\n\"hi\"".to_owned() };
        assert_eq!(Message::decode(message.encode().as_bytes()), Some(message));
    }
}
