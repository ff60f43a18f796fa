//! Translates what an agent reports into events of its session.

use ringback_agents::{AgentEvent, PermissionOption, PlanEntry, StopReason};
use ringback_proto::request::{PermissionChoice, SessionEventInfo, TokenUsage};
use serde_json::value::RawValue;

use crate::sessions::conversation::events::{
    PAYLOAD_BYTES_MAX, QUESTION_BYTES_MAX, bounded, event,
};
use crate::sessions::conversation::questions::{ANSWERED, ASKED};
use crate::sessions::conversation::redaction::Redactor;

/// The event with the id by which a conversation can be resumed.
pub(in crate::sessions) const CONVERSATION: &str = "conversation";

/// Returns the session event; `None` for an agent that exited normally. `redactor` returns what hides
/// the secrets in a call of a tool.
pub(in crate::sessions) fn shown(
    heard: AgentEvent,
    redactor: impl FnOnce(&str) -> Redactor,
) -> Option<SessionEventInfo> {
    let said =
        |kind: &str, text: String| SessionEventInfo { text: Some(bounded(text)), ..event(kind) };
    Some(match heard {
        AgentEvent::Message { text } => {
            SessionEventInfo { role: Some("assistant".to_owned()), ..said("message", text) }
        }
        AgentEvent::Thought { text } => said("thought", text),
        AgentEvent::ToolCall { id, tool, arguments } => {
            let redactor = redactor(&tool);
            let arguments = Some(redactor.json(arguments.get(), PAYLOAD_BYTES_MAX));
            let (tool_name, request_id) = (Some(redactor.text(&tool)), Some(id));
            SessionEventInfo { tool_name, request_id, arguments, ..event("tool_call") }
        }
        AgentEvent::ToolResult { id, tool, is_error, result } => {
            let redactor = redactor(&tool);
            let result = Some(redactor.json(result.get(), PAYLOAD_BYTES_MAX));
            let (tool_name, request_id) = (Some(redactor.text(&tool)), Some(id));
            let text = Some(if is_error { "failed" } else { "succeeded" }.to_owned());
            SessionEventInfo { tool_name, request_id, text, result, ..event("tool_result") }
        }
        AgentEvent::Plan { entries } => said("plan", plan(&entries)),
        AgentEvent::PermissionRequest { id, tool, arguments, options, .. } => {
            let redactor = redactor(&tool);
            let about = |about: Box<RawValue>| redactor.json(about.get(), QUESTION_BYTES_MAX);
            let arguments = arguments.map(about);
            SessionEventInfo { arguments, ..asked(id, redactor.text(&tool), options) }
        }
        AgentEvent::PermissionAnswer { id, option, by } => {
            let (request_id, role) = (Some(id), Some(by));
            SessionEventInfo { request_id, role, text: option, ..event(ANSWERED) }
        }
        AgentEvent::Conversation { id, .. } => said(CONVERSATION, id),
        AgentEvent::Log { text } => said("log", text),
        AgentEvent::Error { text } => said("error", text),
        AgentEvent::AgentGarbage { lines, sample } => {
            said("agent_garbage", format!("{lines} unreadable lines, the first: {sample}"))
        }
        AgentEvent::Done => event("completion"),
        AgentEvent::Completion { stop, usage } => {
            let text = (stop != StopReason::EndTurn).then(|| stop.name().to_owned());
            let usage = usage.map(|usage| TokenUsage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                total_tokens: usage.total_tokens,
            });
            SessionEventInfo { text, usage, ..event("completion") }
        }
        AgentEvent::AgentExited { code: Some(0), .. } => return None,
        AgentEvent::AgentExited { code, signal, stderr } => {
            let how = match (code, signal) {
                (Some(code), _) => format!("with code {code}"),
                (None, Some(signal)) => format!("by signal {signal}"),
                (None, None) => "for an unknown reason".to_owned(),
            };
            said("error", format!("the agent ended {how}\n{}", stderr.trim_end()))
        }
    })
}

fn asked(id: String, tool: String, options: Vec<PermissionOption>) -> SessionEventInfo {
    let answers: Vec<_> = options.iter().map(|it| format!("{}: {}", it.id, it.name)).collect();
    let choice = |option: PermissionOption| PermissionChoice {
        id: option.id,
        name: option.name,
        kind: option.kind.name().to_owned(),
    };
    SessionEventInfo {
        request_id: Some(id),
        text: Some(bounded(answers.join(", "))),
        tool_name: Some(bounded(tool)),
        options: options.into_iter().map(choice).collect(),
        ..event(ASKED)
    }
}

fn plan(entries: &[PlanEntry]) -> String {
    let lines: Vec<_> =
        entries.iter().map(|entry| format!("[{}] {}", entry.status, entry.text)).collect();
    lines.join("\n")
}
