//! What is said to an agent and by it, apart from how it travels: a state machine without IO for
//! each protocol.

use std::collections::VecDeque;
use std::time::Duration;

use crate::acp::Conversation;
use crate::event::{AgentEvent, Message, StopReason};
use crate::handle::Told;
use crate::spec::AgentLimits;
use crate::text::Text;

/// What is being said.
#[derive(Debug)]
pub(crate) enum Talk {
    /// JSON lines of our own.
    Lines,
    /// The Agent Client Protocol.
    Acp(Box<Conversation>),
    /// What a program prints is what it says; it is told everything when it is started.
    Output(Text),
}

/// What an agent is told besides messages.
#[derive(Debug)]
pub(crate) enum Control {
    /// The answer to what it asked for; `None` takes the question back.
    Answer { id: String, option: Option<String> },
    /// To stop what it does, if it was told to before this abort of that number.
    Abort { number: u64 },
}

/// What comes of it.
#[derive(Debug, Default)]
pub(crate) struct Out {
    /// To be told.
    pub(crate) events: VecDeque<AgentEvent>,
    /// To be written.
    pub(crate) bytes: Vec<u8>,
    /// There is no use in going on.
    pub(crate) is_over: bool,
}

/// What an agent has to do soon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// Take up the conversation.
    Opening,
    /// Stop what it was doing.
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
                "the agent did not take up a conversation in time; does it speak the Agent Client \
                 Protocol? It is ended, and the next message starts it again"
            }
            Self::Aborting => {
                "the agent did not stop in time; it is ended, and the next message starts it again"
            }
        }
    }
}

impl Out {
    pub(crate) fn tell(&mut self, event: AgentEvent) {
        self.events.push_back(event);
    }

    pub(crate) fn write(&mut self, line: &str) {
        self.bytes.extend_from_slice(line.as_bytes());
        self.bytes.push(b'\n');
    }
}

impl Talk {
    /// A line of the agent; false if it makes no sense.
    pub(crate) fn hear(&mut self, line: &[u8], out: &mut Out) -> bool {
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

    /// All there is was heard, for now or for good.
    pub(crate) fn pause(&mut self, is_end: bool, out: &mut Out) {
        match self {
            Self::Lines => {}
            Self::Acp(conversation) => conversation.pause(is_end, out),
            Self::Output(text) => {
                let said = if is_end { text.rest() } else { text.block() };
                out.events.extend(said.map(|text| AgentEvent::Message { text }));
            }
        }
    }

    /// Whether there is something that is not told yet since more may come.
    pub(crate) fn holds(&self) -> bool {
        match self {
            Self::Lines => false,
            Self::Acp(conversation) => conversation.holds(),
            Self::Output(text) => !text.is_empty(),
        }
    }

    /// Whether a message can be said now.
    pub(crate) fn takes_messages(&self) -> bool {
        match self {
            Self::Lines => true,
            Self::Acp(conversation) => conversation.is_ready(),
            Self::Output(_) => false,
        }
    }

    /// Whether whatever it is told was written to it at once.
    pub(crate) const fn ends_after_start(&self) -> bool {
        match self {
            Self::Lines | Self::Acp(_) => false,
            Self::Output(_) => true,
        }
    }

    pub(crate) fn tell(&mut self, told: Told, out: &mut Out) {
        match self {
            // What is attached is in its workspace.
            Self::Lines => out.write(&Message::Message { text: told.text }.encode()),
            Self::Acp(conversation) => conversation.prompt(&told, out),
            Self::Output(_) => {}
        }
    }

    pub(crate) fn answer(&mut self, id: &str, option: Option<&str>, out: &mut Out) {
        match self {
            Self::Acp(conversation) => conversation.answer(id, option, out),
            // They cannot ask.
            Self::Lines | Self::Output(_) => {}
        }
    }

    pub(crate) fn abort(&mut self, out: &mut Out) {
        match self {
            Self::Acp(conversation) => conversation.abort(out),
            // There is no way to ask it.
            Self::Lines | Self::Output(_) => out.is_over = true,
        }
    }

    /// A message that it has not seen was taken back: its turn is over.
    pub(crate) fn taken_back(&self, out: &mut Out) {
        match self {
            // It is ended, and with it every turn.
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
