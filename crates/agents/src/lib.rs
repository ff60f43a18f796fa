//! Drives an agent program: starts it in its own process group and directory with a cleared
//! environment, passes messages to it, turns what it says into events, and ends it with everything
//! it started. Knows no edge and no session.
//!
//! Main types: [`Agent`], [`AgentSpec`], [`AgentEvent`], [`AgentExit`].
//!
//! Invariants:
//! * Nothing an agent writes can wedge its driver: lines are bounded, floods are held back by the
//!   pipe, and what is no event is told as garbage.
//! * Nothing of the daemon's environment reaches an agent.
//! * When [`Agent::terminate`] returns, no process of the agent's group is left.

mod driver;
mod event;
mod lines;

pub use driver::{Agent, AgentExit, AgentSpec, NotTaken, StartAgentError};
pub use event::AgentEvent;
