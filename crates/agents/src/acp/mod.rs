//! The client side of the Agent Client Protocol: one conversation, a state machine without IO.
//!
//! Messages are read as raw JSON (`docs/adr/0009-acp.md`): payloads that only pass through stay
//! unchanged, and unknown kinds of updates are ignored.

mod blocks;
mod questions;
mod read;
mod tools;
mod write;

use std::path::PathBuf;

use ringback_mcp_wire::{Fault, Id, Limits, Message, Object, RawValue, Reply};

use self::questions::Questions;
use self::read::PromptCapabilities;
use self::tools::ToolCalls;
use crate::event::{AgentEvent, StopReason};
use crate::handle::QueuedMessage;
use crate::policy::{Asked, SharedPolicy};
use crate::protocol::{Effects, Wait};
use crate::text::Text;

/// The supported version of the protocol.
const VERSION: u64 = 1;
/// Longer than any agent's ID for a conversation.
const CONVERSATION_BYTES_MAX: usize = 512;

/// How to start a conversation.
#[derive(Debug, Clone, Default)]
pub struct AcpOptions {
    /// The agent's working directory, as it sees it. Absolute.
    pub cwd: PathBuf,
    /// The MCP servers that the agent starts.
    pub servers: Vec<McpServer>,
    /// The conversation to resume, if the agent can; otherwise a new one starts, and that is
    /// reported.
    pub resume: Option<String>,
    /// Who answers its permission requests.
    pub permissions: SharedPolicy,
}

/// An MCP server on standard input and output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpServer {
    /// The agent's name for it.
    pub name: String,
    /// The program, as the agent sees it. Absolute.
    pub command: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Environment variables in addition to the agent's.
    pub env: Vec<(String, String)>,
}

/// A conversation with an agent.
#[derive(Debug)]
pub(crate) struct Conversation {
    options: AcpOptions,
    stage: Stage,
    request_next: u64,
    /// The agent's ID for it.
    id: String,
    said: Text,
    thought: Text,
    calls: ToolCalls,
    takes: PromptCapabilities,
    questions: Questions,
}

/// The stage of a conversation; the number is that of the pending request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Initializing(u64),
    Beginning(u64),
    TakingUp(u64),
    Ready,
    Prompting { request: u64, is_aborting: bool },
    Over,
}

impl Conversation {
    /// Starts a conversation and writes its first message. `agent` distinguishes this agent from
    /// its predecessors.
    pub(crate) fn begin(options: AcpOptions, agent: &str, out: &mut Effects) -> Self {
        let mut conversation = Self {
            options,
            stage: Stage::Initializing(0),
            request_next: 1,
            id: String::new(),
            said: Text::default(),
            thought: Text::default(),
            calls: ToolCalls::default(),
            takes: PromptCapabilities::default(),
            questions: Questions::new(agent),
        };
        let request =
            conversation.request("initialize", &write::InitializeParams::new(VERSION), out);
        conversation.stage = Stage::Initializing(request);
        conversation
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.stage == Stage::Ready
    }

    pub(crate) const fn wait(&self) -> Option<Wait> {
        match self.stage {
            Stage::Initializing(_) | Stage::Beginning(_) | Stage::TakingUp(_) => {
                Some(Wait::Opening)
            }
            Stage::Prompting { is_aborting: true, .. } => Some(Wait::Aborting),
            Stage::Prompting { is_aborting: false, .. } | Stage::Ready | Stage::Over => None,
        }
    }

    /// Reads a line of the agent's output; returns false if it makes no sense.
    pub(crate) fn hear(&mut self, line: &[u8], out: &mut Effects) -> bool {
        match Message::decode(line, Limits::default()) {
            Ok(Message::Request(request)) => {
                let method = request.method.as_ref();
                if method == "session/request_permission" {
                    self.asked(&request.id, &request.params, out);
                } else {
                    write::refuse(&request.id, &Fault::method_not_found(method), out);
                }
                true
            }
            Ok(Message::Notification(told)) => {
                if told.method == "session/update" && self.is_of_this(&told.params) {
                    self.update(&told.params, out);
                }
                true
            }
            Ok(Message::Reply(reply)) => self.on_reply(&reply, out),
            Err(_) => false,
        }
    }

    /// Handles a pause in the output, or its end.
    pub(crate) fn pause(&mut self, is_end: bool, out: &mut Effects) {
        if is_end {
            return self.flush(out);
        }
        out.events.extend(self.thought.block().map(|text| AgentEvent::Thought { text }));
        out.events.extend(self.said.block().map(|text| AgentEvent::Message { text }));
    }

    pub(crate) const fn holds(&self) -> bool {
        !self.said.is_empty() || !self.thought.is_empty()
    }

    pub(crate) fn prompt(&mut self, told: &QueuedMessage, out: &mut Effects) {
        let blocks = blocks::of(told, &self.options.cwd, self.takes);
        let prompt = write::Prompt { session_id: &self.id, prompt: blocks };
        let request = write::request(&mut self.request_next, "session/prompt", &prompt, out);
        self.stage = Stage::Prompting { request, is_aborting: false };
    }

    pub(crate) fn abort(&mut self, out: &mut Effects) {
        if let Stage::Prompting { request, is_aborting: false } = self.stage {
            self.stage = Stage::Prompting { request, is_aborting: true };
            write::notify("session/cancel", &write::SessionParams::new(&self.id), out);
            // The protocol requires every open request to be cancelled.
            self.questions.take_all_back(out);
        }
    }

    pub(crate) fn answer(&mut self, id: &str, option: Option<&str>, out: &mut Effects) {
        self.questions.answer(id, option, "caller", out);
    }

    fn asked(&mut self, id: &Id, params: &Object<'_>, out: &mut Effects) {
        let is_wanted = matches!(self.stage, Stage::Prompting { is_aborting: false, .. });
        if !is_wanted || !self.is_of_this(params) {
            return questions::write_outcome(id, None, out);
        }
        self.flush(out);
        match questions::Question::read(id, params) {
            Some(mut question) => {
                self.calls.tell(&question.call, out);
                if let Some(known) = self.calls.arguments(&question.call)
                    && question.arguments.is_none()
                {
                    question.arguments = Some(known.to_owned());
                }
                let answer = self
                    .options
                    .permissions
                    .of(Asked { tool: &question.tool, may_be_served: question.may_be_served });
                self.questions.ask(question, answer, out);
            }
            None => write::refuse(
                id,
                &Fault::invalid_params("the permission request has no usable options"),
                out,
            ),
        }
    }

    fn is_of_this(&self, params: &Object<'_>) -> bool {
        params.text("sessionId").is_some_and(|id| id == self.id)
    }

    fn on_reply(&mut self, reply: &Reply<'_>, out: &mut Effects) -> bool {
        let is_of = |request: u64| reply.id == Id::from(request);
        match self.stage {
            Stage::Initializing(request) if is_of(request) => {
                self.on_initialized(reply.outcome, out);
            }
            Stage::Beginning(request) if is_of(request) => self.on_started(reply.outcome, out),
            Stage::TakingUp(request) if is_of(request) => self.on_taken_up(reply.outcome, out),
            Stage::Prompting { request, .. } if is_of(request) => {
                self.on_turn_end(reply.outcome, out);
            }
            Stage::Initializing(_)
            | Stage::Beginning(_)
            | Stage::TakingUp(_)
            | Stage::Prompting { .. }
            | Stage::Ready
            | Stage::Over => return false,
        }
        true
    }

    fn on_initialized(&mut self, outcome: Result<&RawValue, &RawValue>, out: &mut Effects) {
        let result = match outcome {
            Ok(result) => result,
            Err(error) => return self.fail("refused to initialize", error, out),
        };
        let initialized = read::InitializeResult::of(result);
        if initialized.version != Some(VERSION) {
            self.stage = Stage::Over;
            let text = format!(
                "the agent does not support version {VERSION} of the Agent Client Protocol"
            );
            out.tell(AgentEvent::Error { text });
            out.is_over = true;
            return;
        }
        self.takes = initialized.takes;
        match self.options.resume.take() {
            Some(id) if initialized.can_load => {
                let load = write::LoadSessionParams {
                    session_id: &id,
                    begin: write::NewSessionParams::new(&self.options),
                };
                let next = &mut self.request_next;
                self.stage = Stage::TakingUp(write::request(next, "session/load", &load, out));
                self.id = id;
            }
            Some(_) => {
                let text = "the agent cannot resume a conversation; starting a new one";
                out.tell(AgentEvent::Log { text: text.to_owned() });
                self.begin_another(out);
            }
            None => self.begin_another(out),
        }
    }

    fn begin_another(&mut self, out: &mut Effects) {
        let begin = write::NewSessionParams::new(&self.options);
        let next = &mut self.request_next;
        self.stage = Stage::Beginning(write::request(next, "session/new", &begin, out));
    }

    fn on_started(&mut self, outcome: Result<&RawValue, &RawValue>, out: &mut Effects) {
        let id = match outcome {
            Ok(result) => Object::of(result).ok().and_then(|it| it.text("sessionId")),
            Err(error) => return self.fail("did not start a conversation", error, out),
        };
        match id.filter(|id| id.len() <= CONVERSATION_BYTES_MAX) {
            Some(id) => {
                self.id = id.into_owned();
                self.is_open(false, out);
            }
            None => self.fail("started a conversation without an ID", RawValue::NULL, out),
        }
    }

    fn on_taken_up(&mut self, outcome: Result<&RawValue, &RawValue>, out: &mut Effects) {
        match outcome {
            Ok(_) => self.is_open(true, out),
            Err(error) => {
                let why = read::reason(error);
                let text = format!("cannot resume the conversation: {why}");
                out.tell(AgentEvent::Log { text });
                self.begin_another(out);
            }
        }
    }

    fn is_open(&mut self, is_resumed: bool, out: &mut Effects) {
        self.stage = Stage::Ready;
        out.tell(AgentEvent::Conversation { id: self.id.clone(), is_resumed });
    }

    fn on_turn_end(&mut self, outcome: Result<&RawValue, &RawValue>, out: &mut Effects) {
        let was_aborting = self.wait() == Some(Wait::Aborting);
        self.flush(out);
        self.calls.tell_rest(out);
        self.questions.take_all_back(out);
        self.stage = Stage::Ready;
        out.tell(match outcome {
            Ok(result) => {
                let (stop, usage) = read::turn_end(result);
                AgentEvent::Completion { stop, usage }
            }
            // Some agents answer an abort with an error.
            Err(_) if was_aborting => {
                AgentEvent::Completion { stop: StopReason::Cancelled, usage: None }
            }
            Err(error) => AgentEvent::Error { text: read::reason(error) },
        });
    }

    fn fail(&mut self, what: &str, error: &RawValue, out: &mut Effects) {
        self.stage = Stage::Over;
        let text = format!("the agent {what}: {}", read::reason(error));
        out.tell(AgentEvent::Error { text });
        out.is_over = true;
    }

    fn request(&mut self, method: &str, params: &impl serde::Serialize, out: &mut Effects) -> u64 {
        write::request(&mut self.request_next, method, params, out)
    }

    fn flush(&mut self, out: &mut Effects) {
        out.events.extend(self.thought.rest().map(|text| AgentEvent::Thought { text }));
        out.events.extend(self.said.rest().map(|text| AgentEvent::Message { text }));
    }
}

#[cfg(test)]
mod tests;
