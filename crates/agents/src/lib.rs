//! Drives an agent program, a child process, and tells what it does: by the Agent Client Protocol,
//! in JSON lines of our own, or by starting it once for each message (`docs/agents.md`). Knows how
//! some agents are started ([`preset`]), and has one that does what a script says.
//!
//! Main types:
//!
//! * [`Driver`]: an agent under way, however it is talked to ([`Protocol`]); [`AgentHandle`] sends
//!   messages, answers what it asks permission for, stops it and ends it.
//! * [`AgentSpec`]: which program, with what environment, where; a [`Launcher`] starts it in a place
//!   of its own.
//! * [`AgentEvent`]: what happened.
//! * [`Agent`]: one process of an agent.
//! * [`Programs`]: where agents are installed, and what belongs to each.
//! * [`preset`]: agents that are known by name, and whether they are there.
//! * [`scripted`]: the scripted agent, as a program.
//! * [`server::ToolServer`]: an MCP server that is started for its tools, and spoken to over its pipes.
//!
//! Invariants:
//!
//! * An agent has a process group of its own and no environment but the one it is given. When an
//!   [`Agent`] is dropped, nothing of its group is left.
//! * No task is started: whoever owns an [`Agent`] drives it by asking for the next event.
//! * The last event is [`AgentEvent::AgentExited`], and there is exactly one.
//! * Lines, queues and what is kept of the error output have limits. What an agent writes that makes
//!   no sense is told as [`AgentEvent::AgentGarbage`], and stops nothing.
//! * An agent that does not begin or stop a conversation in time is ended.
//! * Nothing is written through a link in an agent's home.
//! * No edge, no session and no store is known here.

mod acp;
mod agent;
mod attached;
mod child;
mod driver;
mod event;
mod files;
mod handle;
mod installed;
mod one_shot;
mod permission;
mod policy;
pub mod preset;
pub mod scripted;
pub mod server;
mod spec;
mod tail;
mod talk;
mod template;
mod text;

pub use acp::{AcpOptions, McpServer};
pub use agent::Agent;
pub use attached::Attached;
pub use child::spawn;
pub use driver::{DriveError, Driver, Protocol};
pub use event::{AgentEvent, Message, PlanEntry, StopReason, Usage};
pub use files::{ConfigFile, WriteFileError, write_files};
pub use handle::{AgentHandle, SendError};
pub use installed::{Installed, Programs};
pub use one_shot::OneShot;
pub use permission::{PermissionKind, PermissionOption, Permissions};
pub use policy::{PatternError, Policy, SharedPolicy};
pub use spec::{AgentLimits, AgentProcess, AgentSpec, Exiting, Launched, Launcher, StartError};
