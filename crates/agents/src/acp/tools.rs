//! An agent's pending tool calls.

use std::collections::VecDeque;

use ringback_mcp_wire::{Object, RawValue};

use crate::event::AgentEvent;
use crate::protocol::Effects;

/// The most pending calls; beyond that, the oldest one is reported without its result.
const CALLS_MAX: usize = 256;

/// Calls without a result.
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
    /// Handles a new call, or further details of one.
    pub(super) fn update(&mut self, update: &Object<'_>, out: &mut Effects) {
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
            // Some agents announce a call before they know its arguments.
            Some("pending") | None if call.has_no_arguments() => {}
            Some(_) | None => call.tell(out),
        }
    }

    /// Reports a call that permission is about to be requested for: everything about it is known
    /// now.
    pub(super) fn tell(&mut self, id: &str, out: &mut Effects) {
        self.calls.iter_mut().filter(|call| call.id == id).for_each(|call| call.tell(out));
    }

    /// Returns the arguments of a call, if it has any.
    pub(super) fn arguments(&self, id: &str) -> Option<&RawValue> {
        let call = self.calls.iter().find(|call| call.id == id)?;
        (!is_empty(&call.arguments)).then_some(&*call.arguments)
    }

    /// Reports the remaining calls at the end of a turn.
    pub(super) fn tell_rest(&mut self, out: &mut Effects) {
        self.calls.drain(..).for_each(|mut call| call.tell(out));
    }
}

impl ToolCall {
    fn learn(&mut self, update: &Object<'_>) {
        // The first title is the tool's name; later ones describe the call.
        if self.tool.is_empty() {
            self.tool = update.text("title").unwrap_or_default().into_owned();
        }
        if let Some(arguments) = update.get("rawInput").filter(|_| !self.is_told) {
            self.arguments = arguments.to_owned();
        }
    }

    fn has_no_arguments(&self) -> bool {
        is_empty(&self.arguments)
    }

    fn tell(&mut self, out: &mut Effects) {
        if !std::mem::replace(&mut self.is_told, true) {
            out.tell(AgentEvent::ToolCall {
                id: self.id.clone(),
                tool: self.tool.clone(),
                arguments: self.arguments.clone(),
            });
        }
    }
}

/// Whether arguments say nothing.
pub(super) fn is_empty(arguments: &RawValue) -> bool {
    matches!(arguments.get(), "null" | "{}" | "[]")
}
