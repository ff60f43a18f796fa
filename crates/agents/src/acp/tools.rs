//! The tools that an agent is calling.

use std::collections::VecDeque;

use ringback_mcp_wire::{Object, RawValue};

use crate::event::AgentEvent;
use crate::talk::Out;

/// Calls that are under way at once; the oldest one is told without its end.
const CALLS_MAX: usize = 256;

/// Calls that have not come out.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    calls: VecDeque<ToolCall>,
}

#[derive(Debug)]
struct ToolCall {
    id: String,
    tool: String,
    arguments: Box<RawValue>,
    is_told: bool,
}

impl ToolCalls {
    /// A call is new, or is known better.
    pub(super) fn update(&mut self, update: &Object<'_>, out: &mut Out) {
        let Some(id) = update.text("toolCallId") else { return };
        if !self.calls.iter().any(|call| call.id == id) {
            if self.calls.len() == CALLS_MAX
                && let Some(mut oldest) = self.calls.pop_front()
            {
                oldest.tell(out);
            }
            self.calls.push_back(ToolCall {
                id: id.clone().into_owned(),
                tool: String::new(),
                arguments: RawValue::NULL.to_owned(),
                is_told: false,
            });
        }
        let Some(place) = self.calls.iter().position(|call| call.id == id) else { return };
        let call = &mut self.calls[place];
        call.learn(update);
        match update.text("status").as_deref() {
            Some(status @ ("completed" | "failed")) => {
                call.tell(out);
                let result = update.get("rawOutput").or_else(|| update.get("content"));
                out.tell(AgentEvent::ToolResult {
                    id: call.id.clone(),
                    tool: call.tool.clone(),
                    is_error: status == "failed",
                    result: result.unwrap_or(RawValue::NULL).to_owned(),
                });
                self.calls.remove(place);
            }
            // Some announce a call before they know what it is called with.
            Some("pending") | None if call.has_no_arguments() => {}
            Some(_) | None => call.tell(out),
        }
    }

    /// A call is about to be asked for: now everything about it is known.
    pub(super) fn tell(&mut self, id: &str, out: &mut Out) {
        self.calls.iter_mut().filter(|call| call.id == id).for_each(|call| call.tell(out));
    }

    /// The turn is over, and with it every call.
    pub(super) fn tell_rest(&mut self, out: &mut Out) {
        self.calls.drain(..).for_each(|mut call| call.tell(out));
    }
}

impl ToolCall {
    fn learn(&mut self, update: &Object<'_>) {
        // The first title is the tool's name; later ones tell what it does.
        if self.tool.is_empty() {
            self.tool = update.text("title").unwrap_or_default().into_owned();
        }
        if let Some(arguments) = update.get("rawInput").filter(|_| !self.is_told) {
            self.arguments = arguments.to_owned();
        }
    }

    fn has_no_arguments(&self) -> bool {
        matches!(self.arguments.get(), "null" | "{}")
    }

    fn tell(&mut self, out: &mut Out) {
        if !std::mem::replace(&mut self.is_told, true) {
            out.tell(AgentEvent::ToolCall {
                id: self.id.clone(),
                tool: self.tool.clone(),
                arguments: self.arguments.clone(),
            });
        }
    }
}
