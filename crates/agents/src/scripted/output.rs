//! Events of the scripted agent, on standard output.

use std::io::Write as _;

use ringback_mcp_wire::RawValue;
use serde::Serialize;

use crate::event::AgentEvent;

/// The largest arguments or result that are reported in full.
const PAYLOAD_BYTES_MAX: usize = 256 * 1024;

/// Standard output.
#[derive(Debug, Default)]
pub(super) struct Output {
    /// The conversation of the updates, for a client of the Agent Client Protocol.
    conversation: Option<String>,
}

impl Output {
    pub(super) fn of_conversation(name: &str) -> Self {
        Self { conversation: Some(name.to_owned()) }
    }

    /// Reports an event; a payload that is too large is replaced by its size.
    pub(super) fn tell(&self, event: &AgentEvent) -> Result<(), String> {
        match &self.conversation {
            None => self.raw(&event.encode()),
            Some(_) => update(event).map_or(Ok(()), |update| self.update(&update)),
        }
    }

    /// Returns whether there is a client to ask.
    pub(super) const fn has_client(&self) -> bool {
        self.conversation.is_some()
    }

    /// Asks for permission.
    pub(super) fn ask(&self, call: &str, tool: &str) -> Result<(), String> {
        let name = json(self.conversation.as_deref().unwrap_or_default());
        let (call, tool) = (json(call), json(tool));
        let options = r#"[{"optionId":"once","name":"Allow once","kind":"allow_once"},{"optionId":"no","name":"Reject","kind":"reject_once"}]"#;
        let params = format!(
            r#"{{"sessionId":{name},"toolCall":{{"toolCallId":{call},"title":{tool}}},"options":{options}}}"#
        );
        let method = "session/request_permission";
        self.raw(&format!(
            r#"{{"jsonrpc":"2.0","id":{call},"method":"{method}","params":{params}}}"#
        ))
    }

    /// Replays a user's message when a conversation is resumed.
    pub(super) fn say_of_user(&self, text: &str) -> Result<(), String> {
        self.update(&chunk("user_message_chunk", text))
    }

    fn update(&self, update: &str) -> Result<(), String> {
        let name = json(self.conversation.as_deref().unwrap_or_default());
        self.raw(&format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":{name},"update":{update}}}}}"#
        ))
    }

    pub(super) fn say(&self, text: impl Into<String>) -> Result<(), String> {
        self.tell(&AgentEvent::Message { text: text.into() })
    }

    pub(super) fn log(&self, text: impl Into<String>) -> Result<(), String> {
        self.tell(&AgentEvent::Log { text: text.into() })
    }

    /// Writes a line of text unchanged, which may not be an event.
    pub(super) fn raw(&self, line: &str) -> Result<(), String> {
        let mut output = std::io::stdout().lock();
        let written = writeln!(output, "{line}").and_then(|()| output.flush());
        written.map_err(|error| format!("cannot write events: {error}"))
    }
}

/// Returns an event as an update of the protocol; `None` if it has no equivalent.
fn update(event: &AgentEvent) -> Option<String> {
    match event {
        AgentEvent::Message { text } | AgentEvent::Error { text } => {
            Some(chunk("agent_message_chunk", text))
        }
        AgentEvent::Thought { text } | AgentEvent::Log { text } => {
            Some(chunk("agent_thought_chunk", text))
        }
        AgentEvent::ToolCall { id, tool, arguments } => Some(format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":{},"title":{},"kind":"other","status":"in_progress","rawInput":{arguments}}}"#,
            json(id),
            json(tool),
        )),
        AgentEvent::ToolResult { id, is_error, result, .. } => Some(format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":{},"status":"{}","rawOutput":{result}}}"#,
            json(id),
            if *is_error { "failed" } else { "completed" },
        )),
        AgentEvent::Plan { entries } => {
            let entry = |it: &crate::PlanEntry| {
                let (text, status) = (json(&it.text), json(&it.status));
                format!(r#"{{"content":{text},"priority":"medium","status":{status}}}"#)
            };
            let entries: Vec<_> = entries.iter().map(entry).collect();
            Some(format!(r#"{{"sessionUpdate":"plan","entries":[{}]}}"#, entries.join(",")))
        }
        AgentEvent::Done
        | AgentEvent::PermissionRequest { .. }
        | AgentEvent::PermissionAnswer { .. }
        | AgentEvent::Conversation { .. }
        | AgentEvent::Completion { .. }
        | AgentEvent::AgentGarbage { .. }
        | AgentEvent::AgentExited { .. } => None,
    }
}

fn chunk(kind: &str, text: &str) -> String {
    let content = format!(r#"{{"type":"text","text":{}}}"#, json(text));
    format!(r#"{{"sessionUpdate":"{kind}","content":{content}}}"#)
}

pub(super) fn json(value: &(impl Serialize + ?Sized)) -> String {
    serde_json::to_string(value).expect("plain data can be serialized")
}

/// Returns a payload that fits into an event: itself, or its size.
pub(super) fn shown(payload: &RawValue) -> Box<RawValue> {
    let n_bytes = payload.get().len();
    if n_bytes <= PAYLOAD_BYTES_MAX {
        return payload.to_owned();
    }
    RawValue::from_string(format!("{{\"omitted_bytes\":{n_bytes}}}"))
        .expect("an object with a number")
}
