//! The line protocol: messages to an agent, events from it.

use ringback_mcp_wire::{Limits, Object, RawValue};
use serde::Serialize;

/// What happened. Each is one line of an agent, but for the last two, which only the driver tells.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The agent says something.
    Message {
        /// What.
        text: String,
    },
    /// The agent calls a tool.
    ToolCall {
        /// Its own name for the call.
        id: String,
        /// The tool's name, as the agent sees it.
        tool: String,
        /// As the agent gave them.
        arguments: Box<RawValue>,
    },
    /// A call has come out.
    ToolResult {
        /// The agent's name for the call.
        id: String,
        /// The tool's name, as the agent sees it.
        tool: String,
        /// Whether it failed.
        is_error: bool,
        /// The result as the agent got it.
        result: Box<RawValue>,
    },
    /// Something worth a line in a log.
    Log {
        /// What.
        text: String,
    },
    /// The agent cannot go on with what it was told to do.
    Error {
        /// Why.
        text: String,
    },
    /// The agent has done what the last message asked for, and waits for the next.
    Done,
    /// Lines that are no event.
    AgentGarbage {
        /// How many in a row.
        lines: u64,
        /// The start of the first.
        sample: String,
    },
    /// The agent has ended.
    AgentExited {
        /// What it ended with.
        code: Option<i32>,
        /// What it was ended by.
        signal: Option<i32>,
        /// The end of its error output.
        stderr: String,
    },
}

/// What an agent is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// To do something.
    Message {
        /// What.
        text: String,
    },
}

impl AgentEvent {
    /// Reads a line of an agent; `None` if it is no event.
    #[must_use]
    pub fn decode(line: &[u8]) -> Option<Self> {
        Limits::default().check(line).ok()?;
        let object = Object::parse(line).ok()?;
        let text = |name: &str| object.text(name).map(|text| text.into_owned());
        let raw = |name: &str| object.get(name).map(ToOwned::to_owned);
        Some(match object.text("type")?.as_ref() {
            "message" => Self::Message { text: text("text")? },
            "tool_call" => Self::ToolCall {
                id: text("id")?,
                tool: text("tool")?,
                arguments: raw("arguments")?,
            },
            "tool_result" => Self::ToolResult {
                id: text("id")?,
                tool: text("tool")?,
                is_error: object.get("is_error").is_some_and(|raw| raw.get() == "true"),
                result: raw("result")?,
            },
            "log" => Self::Log { text: text("text")? },
            "error" => Self::Error { text: text("text")? },
            "done" => Self::Done,
            _ => return None,
        })
    }

    /// The line that tells it.
    ///
    /// # Panics
    /// Never: what is put in is JSON or plain data.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("JSON and plain data can be written")
    }
}

impl Message {
    /// Reads a line to an agent; `None` if it is no message.
    #[must_use]
    pub fn decode(line: &[u8]) -> Option<Self> {
        Limits::default().check(line).ok()?;
        let object = Object::parse(line).ok()?;
        match object.text("type")?.as_ref() {
            "message" => Some(Self::Message { text: object.text("text")?.into_owned() }),
            _ => None,
        }
    }

    /// The line that tells it.
    ///
    /// # Panics
    /// Never: what is put in is plain data.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("plain data can be written")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        for line in [
            r#"{"type":"message","text":"a\nb"}"#,
            r#"{"type":"tool_call","id":"1","tool":"ant_x","arguments":{"n":12345678901234567890}}"#,
            r#"{"type":"tool_result","id":"1","tool":"ant_x","is_error":true,"result":null}"#,
            r#"{"type":"log","text":""}"#,
            r#"{"type":"error","text":"no"}"#,
            r#"{"type":"done"}"#,
        ] {
            assert_eq!(AgentEvent::decode(line.as_bytes()).unwrap().encode(), line);
        }
    }

    /// Rule: an agent cannot say that it has ended.
    #[test]
    fn what_is_no_event_of_an_agent_is_not_read() {
        for line in [
            "",
            "hello",
            "{}",
            r#"{"type":"message"}"#,
            r#"{"type":"agent_exited","code":0,"signal":null,"stderr":""}"#,
            r#"{"type":"agent_garbage","lines":1,"sample":""}"#,
            r#"{"type":"message","type":"done"}"#,
        ] {
            assert!(AgentEvent::decode(line.as_bytes()).is_none(), "{line}");
        }
    }

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let message = Message::Message { text: "say\n\"hi\"".to_owned() };
        assert_eq!(Message::decode(message.encode().as_bytes()), Some(message));
    }
}
