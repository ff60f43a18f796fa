//! Drives an agent program: a child process that takes messages on its standard input and tells
//! what it does on its standard output, one JSON object per line (`docs/agents.md`). The one agent
//! there is so far does what a script says.
//!
//! Main types:
//!
//! * [`Agent`]: a running agent, what it tells, and how it is told and ended.
//! * [`AgentSpec`]: which program, with what environment, where.
//! * [`AgentEvent`]: what an agent says; [`AgentExit`]: how it ended.
//! * [`scripted`]: the scripted agent, as a program.
//!
//! Invariants:
//!
//! * Nothing of the daemon's environment reaches an agent.
//! * No task is started: whoever owns an [`Agent`] drives it by asking for the next event.
//! * When [`Agent::terminate`] or [`Agent::exited`] returns, or an [`Agent`] is dropped, no process of
//!   its group is left. Neither waits for a process that left the group.
//! * Nothing an agent writes can wedge its driver: lines are bounded, floods are held back by the pipe,
//!   and what is no event is told as [`AgentEvent::Garbage`].
//! * No edge, no session and no store is known here.

mod driver;
mod event;
pub mod scripted;
mod spec;
mod tail;

pub use driver::{Agent, AgentExit, NotTaken};
pub use event::AgentEvent;
pub use spec::{AgentSpec, StartAgentError};
