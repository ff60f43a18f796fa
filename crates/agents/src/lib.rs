//! Drives an agent program: a child process that takes messages on its standard input and tells
//! what it does on its standard output, one JSON object per line (`docs/agents.md`). The one agent
//! there is so far does what a script says.
//!
//! Main types:
//!
//! * [`Agent`]: a running agent and what it tells; [`AgentHandle`] sends messages and ends it.
//! * [`AgentSpec`]: which program, with what environment, where; a [`Launcher`] starts it in a place
//!   of its own.
//! * [`AgentEvent`]: what happened.
//! * [`scripted`]: the scripted agent, as a program.
//!
//! Invariants:
//!
//! * An agent has a process group of its own and no environment but the one it is given. When an
//!   [`Agent`] is dropped, nothing of its group is left.
//! * No task is started: whoever owns an [`Agent`] drives it by asking for the next event.
//! * The last event is [`AgentEvent::AgentExited`], and there is exactly one.
//! * Lines, queues and what is kept of the error output have limits. What an agent writes that is
//!   no event is told as [`AgentEvent::AgentGarbage`], and stops nothing.
//! * No edge, no session and no store is known here.

mod agent;
mod event;
pub mod scripted;
mod spec;
mod tail;

pub use agent::{Agent, AgentHandle, SendError};
pub use event::{AgentEvent, Message};
pub use spec::{AgentLimits, AgentSpec, Launched, Launcher, StartError};
