//! An agent's permission requests.

use ringback_mcp_wire::{Id, Object, RawValue};
use serde::Serialize;

use super::read::{object, value};
use super::tools::is_empty;
use super::write;
use crate::event::AgentEvent;
use crate::permission::{PermissionKind, PermissionOption, Permissions};
use crate::protocol::Effects;

/// The most open requests; further ones are cancelled on arrival.
const OPEN_MAX: usize = 32;
/// The most options of a request.
const OPTIONS_MAX: usize = 16;
/// What the protocol calls a tool that neither reads, changes nor executes anything here.
const KIND_OF_SERVED: &str = "other";
/// How much of an option's name is shown.
const NAME_CHARS_MAX: usize = 200;

/// Permission requests without an answer.
#[derive(Debug)]
pub(super) struct Questions {
    /// Distinguishes the requests of this agent from those of its predecessors.
    agent: String,
    n_asked: u64,
    open: Vec<OpenQuestion>,
}

#[derive(Debug)]
struct OpenQuestion {
    /// Our ID for it.
    id: String,
    question: Question,
}

/// A permission request.
#[derive(Debug)]
pub(super) struct Question {
    request: Id,
    /// The tool call that it is about.
    pub(super) call: String,
    pub(super) tool: String,
    /// What it is about: the arguments of the call, or the changes it shows.
    pub(super) arguments: Option<Box<RawValue>>,
    /// Whether it may be the tool of an MCP server.
    pub(super) may_be_served: bool,
    options: Vec<PermissionOption>,
}

#[derive(Serialize)]
struct PermissionResponse<'a> {
    outcome: Outcome<'a>,
}

#[derive(Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
enum Outcome<'a> {
    Cancelled,
    #[serde(rename_all = "camelCase")]
    Selected {
        option_id: &'a str,
    },
}

impl Question {
    /// Returns `None` if it offers no usable option.
    pub(super) fn read(request: &Id, params: &Object<'_>) -> Option<Self> {
        let call = object(params, "toolCall").unwrap_or_default();
        let options: Vec<Object<'_>> = value(params, "options")?;
        let option = |option: &Object<'_>| {
            Some(PermissionOption {
                id: option.text("optionId")?.into_owned(),
                name: option.text("name")?.chars().take(NAME_CHARS_MAX).collect(),
                kind: PermissionKind::of(&option.text("kind").unwrap_or_default()),
            })
        };
        let shown = |name| call.get(name).filter(|shown: &&RawValue| !is_empty(shown));
        Some(Self {
            request: request.clone(),
            arguments: shown("rawInput").or_else(|| shown("content")).map(ToOwned::to_owned),
            call: call.text("toolCallId").unwrap_or_default().into_owned(),
            tool: call.text("title").unwrap_or_default().into_owned(),
            may_be_served: call.text("kind").is_none_or(|kind| kind == KIND_OF_SERVED),
            options: options.iter().filter_map(option).take(OPTIONS_MAX).collect(),
        })
    }
}

impl Questions {
    pub(super) fn new(agent: &str) -> Self {
        Self { agent: agent.to_owned(), n_asked: 0, open: Vec::new() }
    }

    /// Reports the request, and answers it if the policy does.
    pub(super) fn ask(&mut self, question: Question, policy: Permissions, out: &mut Effects) {
        self.n_asked += 1;
        let id = format!("{}-{}", self.agent, self.n_asked);
        out.tell(AgentEvent::PermissionRequest {
            id: id.clone(),
            call: question.call.clone(),
            tool: question.tool.clone(),
            arguments: question.arguments.clone(),
            options: question.options.clone(),
        });
        let answer = match policy.choose(&question.options) {
            None if self.open.len() < OPEN_MAX => None,
            None => Some(None),
            Some(option) => Some(option),
        };
        self.open.push(OpenQuestion { id: id.clone(), question });
        if let Some(option) = answer {
            self.answer(&id, option.as_deref(), "policy", out);
        }
    }

    /// Passes an answer on. An answer that was not offered, or comes late, changes nothing and is
    /// reported.
    pub(super) fn answer(&mut self, id: &str, option: Option<&str>, by: &str, out: &mut Effects) {
        let Some(place) = self.open.iter().position(|open| open.id == id) else {
            let text = format!("no open permission request `{id}`: it was answered or cancelled");
            return out.tell(AgentEvent::Log { text });
        };
        let offered = &self.open[place].question.options;
        if let Some(option) = option.filter(|it| !offered.iter().any(|option| option.id == *it)) {
            let names: Vec<_> = offered.iter().map(|option| option.id.as_str()).collect();
            let text = format!(
                "`{option}` is not an option of `{id}`; the options are {}",
                names.join(", ")
            );
            return out.tell(AgentEvent::Log { text });
        }
        let open = self.open.remove(place);
        write_outcome(&open.question.request, option, out);
        let (option, by) = (option.map(ToOwned::to_owned), by.to_owned());
        out.tell(AgentEvent::PermissionAnswer { id: open.id, option, by });
    }

    /// Cancels every open request.
    pub(super) fn take_all_back(&mut self, out: &mut Effects) {
        while let Some(id) = self.open.first().map(|open| open.id.clone()) {
            self.answer(&id, None, "abort", out);
        }
    }
}

pub(super) fn write_outcome(request: &Id, option: Option<&str>, out: &mut Effects) {
    let outcome = match option {
        None => Outcome::Cancelled,
        Some(option_id) => Outcome::Selected { option_id },
    };
    write::respond(request, &PermissionResponse { outcome }, out);
}
