//! The protocols, apart from transport: a state machine without IO for each.

use std::collections::VecDeque;
use std::time::Duration;

use crate::acp::Conversation;
use crate::event::{AgentEvent, Message, StopReason};
use crate::handle::QueuedMessage;
use crate::spec::AgentLimits;
use crate::text::Text;

/// The state of a conversation.
#[derive(Debug)]
pub(crate) enum ProtocolState {
    /// Ringback's own JSON lines.
    Lines,
    /// The Agent Client Protocol.
    Acp(Box<Conversation>),
    /// The program's output is its answer; it gets all of its input at the start.
    Output(Text),
}

/// What an agent gets besides messages.
#[derive(Debug)]
pub(crate) enum Control {
    /// The answer to a permission request; `None` cancels the request.
    Answer { id: String, option: Option<String> },
    /// Stops its turn, if that started before the abort with this number.
    Abort { number: u64 },
}

/// The results of a step.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    /// Events to report.
    pub(crate) events: VecDeque<AgentEvent>,
    /// Bytes to write to the agent.
    pub(crate) bytes: Vec<u8>,
    /// Whether the agent is to be ended.
    pub(crate) is_over: bool,
}

/// What an agent has to do before a deadline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Open the conversation.
    Opening,
    /// Stop its turn.
    Aborting,
}

impl Wait {
    pub(crate) const fn limit(self, limits: &AgentLimits) -> Duration {
        match self {
            Self::Opening => limits.opening,
            Self::Aborting => limits.aborting,
        }
    }

    pub(crate) const fn failure(self) -> &'static str {
        match self {
            Self::Opening => {
                "the agent did not open a conversation in time; does it speak the Agent Client \
                 Protocol? It is ended, and the next message starts it again"
            }
            Self::Aborting => {
                "the agent did not stop in time; it is ended, and the next message starts it again"
            }
        }
    }
}

impl Effects {
    pub(crate) fn tell(&mut self, event: AgentEvent) {
        self.events.push_back(event);
    }

    pub(crate) fn write(&mut self, line: &str) {
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.push(b'\n');
    }
}

impl ProtocolState {
    /// Reads a line of the agent's output; returns false if it makes no sense.
    pub(crate) fn hear(&mut self, line: &[u8], out: &mut Effects) -> bool {
        match self {
            Self::Lines => match AgentEvent::decode(line) {
                Some(event) => {
                    out.tell(event);
                    true
                }
                None => false,
            },
            Self::Acp(conversation) => conversation.hear(line, out),
            Self::Output(text) => {
                text.push(&String::from_utf8_lossy(line));
                text.push("\n");
                true
            }
        }
    }

    /// Handles a pause in the output, or its end.
    pub(crate) fn pause(&mut self, is_end: bool, out: &mut Effects) {
        match self {
            Self::Lines => {}
            Self::Acp(conversation) => conversation.pause(is_end, out),
            Self::Output(text) => {
                let said = if is_end { text.rest() } else { text.block() };
                out.events.extend(said.map(|text| AgentEvent::Message { text }));
            }
        }
    }

    /// Returns whether output is held back because more may follow.
    pub(crate) fn holds(&self) -> bool {
        match self {
            Self::Lines => false,
            Self::Acp(conversation) => conversation.holds(),
            Self::Output(text) => !text.is_empty(),
        }
    }

    /// Returns whether a message can be sent now.
    pub(crate) fn takes_messages(&self) -> bool {
        match self {
            Self::Lines => true,
            Self::Acp(conversation) => conversation.is_ready(),
            Self::Output(_) => false,
        }
    }

    /// Returns whether all of its input is written at the start.
    pub(crate) const fn ends_after_start(&self) -> bool {
        match self {
            Self::Lines | Self::Acp(_) => false,
            Self::Output(_) => true,
        }
    }

    pub(crate) fn tell(&mut self, told: QueuedMessage, out: &mut Effects) {
        match self {
            // Attachments are in its workspace.
            Self::Lines => out.write(&Message::Message { text: told.text }.encode()),
            Self::Acp(conversation) => conversation.prompt(&told, out),
            Self::Output(_) => {}
        }
    }

    pub(crate) fn answer(&mut self, id: &str, option: Option<&str>, out: &mut Effects) {
        match self {
            Self::Acp(conversation) => conversation.answer(id, option, out),
            // They have no permission requests.
            Self::Lines | Self::Output(_) => {}
        }
    }

    pub(crate) fn abort(&mut self, out: &mut Effects) {
        match self {
            Self::Acp(conversation) => conversation.abort(out),
            // Without a way to abort, the agent is ended.
            Self::Lines | Self::Output(_) => out.is_over = true,
        }
    }

    /// Handles a message that was taken back before the agent saw it: its turn is over.
    pub(crate) fn taken_back(&self, out: &mut Effects) {
        match self {
            // The agent is ended, and with it every turn.
            Self::Lines | Self::Output(_) => {}
            Self::Acp(_) => {
                out.tell(AgentEvent::Completion { stop: StopReason::Cancelled, usage: None });
            }
        }
    }

    pub(crate) fn wait(&self) -> Option<Wait> {
        match self {
            Self::Lines | Self::Output(_) => None,
            Self::Acp(conversation) => conversation.wait(),
        }
    }
}
