//! Messages from the agent.

use ringback_mcp_wire::{Object, RawValue};
use serde::Deserialize;

use super::{Conversation, Stage};
use crate::event::{AgentEvent, PlanEntry, StopReason, Usage};
use crate::protocol::Effects;

/// How much of a reason is shown.
const REASON_CHARS_MAX: usize = 4000;
/// The most entries of a plan that are reported.
const ENTRIES_MAX: usize = 100;

/// The capabilities of an agent.
#[derive(Debug)]
pub(super) struct InitializeResult {
    pub(super) version: Option<u64>,
    pub(super) can_load: bool,
    pub(super) takes: PromptCapabilities,
}

/// What an agent accepts in a prompt besides text and links.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PromptCapabilities {
    pub(super) images: bool,
    pub(super) audio: bool,
    /// Embedded files, with their names.
    pub(super) files: bool,
}

impl InitializeResult {
    pub(super) fn of(result: &RawValue) -> Self {
        let result = Object::of(result).unwrap_or_default();
        let can = object(&result, "agentCapabilities");
        Self {
            version: value(&result, "protocolVersion"),
            can_load: can.as_ref().and_then(|can| value(can, "loadSession")).unwrap_or(false),
            takes: PromptCapabilities::of(&can.unwrap_or_default()),
        }
    }
}

impl PromptCapabilities {
    fn of(can: &Object<'_>) -> Self {
        let prompts = object(can, "promptCapabilities").unwrap_or_default();
        let takes = |name| value(&prompts, name).unwrap_or(false);
        Self { images: takes("image"), audio: takes("audio"), files: takes("embeddedContext") }
    }
}

impl Conversation {
    /// Handles an update of the conversation.
    pub(super) fn update(&mut self, params: &Object<'_>, out: &mut Effects) {
        // When a conversation is resumed, its history is replayed.
        if matches!(self.stage, Stage::TakingUp(_)) {
            return;
        }
        let Some(update) = object(params, "update") else { return };
        match update.text("sessionUpdate").as_deref() {
            Some("agent_message_chunk") => {
                out.events.extend(self.thought.rest().map(|text| AgentEvent::Thought { text }));
                self.said.push(&content(&update));
            }
            Some("agent_thought_chunk") => {
                out.events.extend(self.said.rest().map(|text| AgentEvent::Message { text }));
                self.thought.push(&content(&update));
            }
            Some("tool_call" | "tool_call_update") => {
                self.flush(out);
                self.calls.update(&update, out);
            }
            Some("plan") => {
                self.flush(out);
                out.tell(AgentEvent::Plan { entries: plan(&update) });
            }
            // Commands, modes, titles, and future kinds.
            Some(_) | None => {}
        }
    }
}

/// Returns why a turn ended, and its usage.
pub(super) fn turn_end(result: &RawValue) -> (StopReason, Option<Usage>) {
    let result = Object::of(result).unwrap_or_default();
    let stop = match result.text("stopReason").as_deref() {
        Some("end_turn") => StopReason::EndTurn,
        Some("max_tokens") => StopReason::MaxTokens,
        Some("max_turn_requests") => StopReason::MaxTurnRequests,
        Some("refusal") => StopReason::Refusal,
        Some("cancelled") => StopReason::Cancelled,
        Some(_) | None => StopReason::Other,
    };
    let usage = object(&result, "usage").map(|usage| Usage {
        input_tokens: value(&usage, "inputTokens").unwrap_or(0),
        output_tokens: value(&usage, "outputTokens").unwrap_or(0),
        total_tokens: value(&usage, "totalTokens").unwrap_or(0),
    });
    (stop, usage)
}

/// Returns the message of an error.
pub(super) fn reason(error: &RawValue) -> String {
    let Ok(error) = Object::of(error) else { return shortened(error.get()) };
    let message = error.text("message").unwrap_or_default();
    match error.get("data").map(RawValue::get).filter(|data| *data != "null") {
        None => shortened(&message),
        Some(data) => shortened(&format!("{message} ({data})")),
    }
}

pub(super) fn object<'a>(of: &Object<'a>, name: &str) -> Option<Object<'a>> {
    Object::of(of.get(name)?).ok()
}

pub(super) fn value<'a, T: Deserialize<'a>>(of: &Object<'a>, name: &str) -> Option<T> {
    serde_json::from_str(of.get(name)?.get()).ok()
}

fn plan(update: &Object<'_>) -> Vec<PlanEntry> {
    let entries: Vec<Object<'_>> = value(update, "entries").unwrap_or_default();
    let entry = |entry: &Object<'_>| {
        let text = entry.text("content")?.into_owned();
        Some(PlanEntry { text, status: entry.text("status").unwrap_or_default().into_owned() })
    };
    entries.iter().filter_map(entry).take(ENTRIES_MAX).collect()
}

/// Returns the text of a block, or a placeholder for other kinds.
fn content(update: &Object<'_>) -> String {
    let Some(block) = object(update, "content") else { return String::new() };
    match block.text("text") {
        Some(text) => text.into_owned(),
        None => format!("[{}]", block.text("type").unwrap_or_default()),
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(REASON_CHARS_MAX).collect()
}
