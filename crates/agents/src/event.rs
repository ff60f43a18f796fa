//! The line protocol: messages to an agent, events from it.

use ringback_mcp_wire::{Limits, Object, RawValue};
use serde::Serialize;

use crate::permission::PermissionOption;

/// What happened. Up to [`Self::Done`] each is a line that an agent may write; the others only the
/// driver tells.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// The agent says something.
    Message {
        /// What.
        text: String,
    },
    /// What the agent thinks on its way to what it says.
    Thought {
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
    /// What the agent means to do.
    Plan {
        /// In its order.
        entries: Vec<PlanEntry>,
    },
    /// The agent asks whether it may go on.
    PermissionRequest {
        /// What it is answered by; no two questions of a session have the same.
        id: String,
        /// The call that it is about, as the agent names it.
        call: String,
        /// The tool, or what the agent calls that which it wants to do.
        tool: String,
        /// The answers that it offers.
        options: Vec<PermissionOption>,
    },
    /// It was answered.
    PermissionAnswer {
        /// Which question.
        id: String,
        /// The option; without one the question was taken back.
        option: Option<String>,
        /// `caller`, `policy` or `abort`.
        by: String,
    },
    /// The agent's own name for the conversation, by which it may be taken up again.
    Conversation {
        /// The name.
        id: String,
        /// Whether it goes on where another agent stopped.
        is_resumed: bool,
    },
    /// A turn has ended, and the agent waits for the next message.
    Completion {
        /// Why.
        stop: StopReason,
        /// What it cost, where the agent tells.
        usage: Option<Usage>,
    },
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

/// A step of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanEntry {
    /// What is to be done.
    pub text: String,
    /// How far it is: `pending`, `in_progress`, `completed`, or what the agent says.
    pub status: String,
}

/// Why a turn has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The agent has done what it was told.
    EndTurn,
    /// Its model may say no more.
    MaxTokens,
    /// It may ask its model no more.
    MaxTurnRequests,
    /// It will not.
    Refusal,
    /// It was told to stop.
    Cancelled,
    /// It says something else.
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

    /// The line that tells it.
    ///
    /// # Panics
    /// Never: what is put in is JSON or plain data.
    #[must_use]
    pub fn encode(&self) -> String {
        serde_json::to_string(self).expect("JSON and plain data can be written")
    }
}

impl StopReason {
    /// Its name.
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
