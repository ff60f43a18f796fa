//! The line protocol: messages to an agent, events from it.

use ringback_mcp_wire::{Limits, Object, RawValue};
use serde::Serialize;

use crate::permission::PermissionOption;

/// An event. Up to [`Self::Done`], each is a line of text that an agent may write; only the driver
/// reports the others.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The agent says something.
    Message {
        /// The text.
        text: String,
    },
    /// The agent's reasoning before its answer.
    Thought {
        /// The text.
        text: String,
    },
    /// The agent calls a tool.
    ToolCall {
        /// The agent's ID for the call.
        id: String,
        /// The tool's name, as the agent sees it.
        tool: String,
        /// As the agent wrote them.
        arguments: Box<RawValue>,
    },
    /// A call has returned.
    ToolResult {
        /// The agent's ID for the call.
        id: String,
        /// The tool's name, as the agent sees it.
        tool: String,
        /// Whether it failed.
        is_error: bool,
        /// The result as the agent got it.
        result: Box<RawValue>,
    },
    /// A log message.
    Log {
        /// The text.
        text: String,
    },
    /// The agent cannot complete its task.
    Error {
        /// The reason.
        text: String,
    },
    /// The agent has finished with the last message, and waits for the next.
    Done,
    /// The agent's plan.
    Plan {
        /// In the agent's order.
        entries: Vec<PlanEntry>,
    },
    /// The agent requests permission.
    PermissionRequest {
        /// The ID for the answer, unique within a session.
        id: String,
        /// The tool call that it is about, by the agent's ID.
        call: String,
        /// The tool, or the agent's title for the action.
        tool: String,
        /// The arguments of that call or, without any, what the agent shows of it, such as a change
        /// to a file.
        #[serde(skip_serializing_if = "Option::is_none")]
        arguments: Option<Box<RawValue>>,
        /// The options for the answer.
        options: Vec<PermissionOption>,
    },
    /// A permission request was answered.
    PermissionAnswer {
        /// The ID of the request.
        id: String,
        /// The option; absent if the request was cancelled.
        option: Option<String>,
        /// `caller`, `policy` or `abort`.
        by: String,
    },
    /// The agent's own ID for the conversation, with which it may be resumed.
    Conversation {
        /// The ID.
        id: String,
        /// Whether it resumes the conversation of an earlier agent.
        is_resumed: bool,
    },
    /// A turn has ended, and the agent waits for the next message.
    Completion {
        /// The reason.
        stop: StopReason,
        /// Its usage, if the agent reports it.
        usage: Option<Usage>,
    },
    /// Output that is not an event.
    AgentGarbage {
        /// The number of consecutive lines of text.
        lines: u64,
        /// The start of the first one.
        sample: String,
    },
    /// The agent has ended.
    AgentExited {
        /// Its exit code.
        code: Option<i32>,
        /// The signal that ended it.
        signal: Option<i32>,
        /// The end of its error output.
        stderr: String,
    },
}

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanEntry {
    /// The text.
    pub text: String,
    /// Its state: `pending`, `in_progress`, `completed`, or the agent's own word.
    pub status: String,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The agent has finished.
    EndTurn,
    /// The model has reached its token limit.
    MaxTokens,
    /// The agent has reached its limit of model requests.
    MaxTurnRequests,
    /// The agent refuses.
    Refusal,
    /// It was cancelled.
    Cancelled,
    /// Another reason.
    Other,
}

/// Tokens of a turn, as the agent counts them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Read by the model.
    pub input_tokens: u64,
    /// Written by the model.
    pub output_tokens: u64,
    /// All of them.
    pub total_tokens: u64,
}

/// A message to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Message {
    /// A task or question.
    Message {
        /// The text.
        text: String,
    },
}

impl AgentEvent {
    /// Reads a line of an agent's output; `None` if it is not an event.
    #[must_use]
    pub fn decode(line: &[u8]) -> Option<Self> {
        Limits::default().check(line).ok()?;
        let object = Object::parse(line).ok()?;
        let text = |name: &str| object.text(name).map(|text| text.into_owned());
        let raw = |name: &str| object.get(name).map(ToOwned::to_owned);
        Some(match object.text("type")?.as_ref() {
            "message" => Self::Message { text: text("text")? },
            "thought" => Self::Thought { text: text("text")? },
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

    /// Returns it as a line of text.
    ///
    /// # Panics
    /// Never: it consists of JSON or plain data.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("JSON and plain data can be serialized")
    }
}

impl StopReason {
    /// Returns its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::MaxTurnRequests => "max_turn_requests",
            Self::Refusal => "refusal",
            Self::Cancelled => "cancelled",
            Self::Other => "other",
        }
    }
}

impl Message {
    /// Reads an input line of an agent; `None` if it is not a message.
    #[must_use]
    pub fn decode(line: &[u8]) -> Option<Self> {
        Limits::default().check(line).ok()?;
        let object = Object::parse(line).ok()?;
        match object.text("type")?.as_ref() {
            "message" => Some(Self::Message { text: object.text("text")?.into_owned() }),
            _ => None,
        }
    }

    /// Returns it as a line of text.
    ///
    /// # Panics
    /// Never: it consists of plain data.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("plain data can be serialized")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_as_they_were_written() {
        for line in [
            r#"{"type":"message","text":"a\nb"}"#,
            r#"{"type":"thought","text":"hm"}"#,
            r#"{"type":"tool_call","id":"1","tool":"ant_x","arguments":{"n":12345678901234567890}}"#,
            r#"{"type":"tool_result","id":"1","tool":"ant_x","is_error":true,"result":null}"#,
            r#"{"type":"log","text":""}"#,
            r#"{"type":"error","text":"no"}"#,
            r#"{"type":"done"}"#,
        ] {
            assert_eq!(AgentEvent::decode(line.as_bytes()).unwrap().encode(), line);
        }
    }

    /// Rule: an agent cannot report its own end.
    #[test]
    fn what_is_no_event_of_an_agent_is_not_read() {
        for line in [
            "",
            "hello",
            "{}",
            r#"{"type":"message"}"#,
            r#"{"type":"agent_exited","code":0,"signal":null,"stderr":""}"#,
            r#"{"type":"agent_garbage","lines":1,"sample":""}"#,
            r#"{"type":"permission_answer","id":"1","option":"yes","by":"caller"}"#,
            r#"{"type":"completion","stop":"end_turn","usage":null}"#,
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
