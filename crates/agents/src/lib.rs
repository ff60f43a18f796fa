//! Drives an agent program, a child process, and reports its actions: with the Agent Client
//! Protocol, with Ringback's own JSON lines, or by running it once for each message
//! (`docs/agents.md`). Has presets for some agents ([`preset`]), and an agent that runs a script.
//!
//! Main types:
//!
//! * [`Driver`]: a running agent, whatever its protocol ([`Protocol`]); [`AgentHandle`] sends
//!   messages, answers permission requests, stops it and ends it.
//! * [`AgentSpec`]: its program, environment and directory; a [`Launcher`] starts it elsewhere,
//!   such as in a sandbox.
//! * [`AgentEvent`]: an event.
//! * [`Agent`]: one process of an agent.
//! * [`Programs`]: where agents are installed, and what belongs to each.
//! * [`preset`]: agents known by name, and whether they are installed.
//! * [`scripted`]: the scripted agent, as a program.
//! * [`mcp_client::ToolServer`]: an MCP server that is started for its tools, and its pipes.
//!
//! Invariants:
//!
//! * An agent has a process group of its own and only the environment it is given. When an
//!   [`Agent`] is dropped, nothing of its group is left.
//! * No task is started: the owner of an [`Agent`] drives it by awaiting the next event.
//! * The last event is [`AgentEvent::AgentExited`], and there is exactly one.
//! * Lines of text, queues and the kept error output have limits. Invalid output is reported as
//!   [`AgentEvent::AgentGarbage`], and stops nothing.
//! * An agent that does not start or stop a conversation in time is ended.
//! * Nothing is written through a link in an agent's home.
//! * This crate knows no edges, sessions or stores.

mod acp;
mod agent;
mod attachment;
mod child;
mod driver;
mod event;
mod files;
mod handle;
mod installed;
pub mod mcp_client;
mod one_shot;
mod permission;
mod policy;
pub mod preset;
mod protocol;
pub mod scripted;
mod spec;
mod tail;
mod template;
mod text;

pub use acp::{AcpOptions, McpServer};
pub use agent::Agent;
pub use attachment::MessageAttachment;
pub use child::spawn;
pub use driver::{DriveError, Driver, Protocol};
pub use event::{AgentEvent, Message, PlanEntry, StopReason, Usage};
pub use files::{ConfigFile, WriteFileError, write_files};
pub use handle::{AgentHandle, SendError};
pub use installed::{Installed, Programs};
pub use one_shot::OneShot;
pub use permission::{PermissionKind, PermissionOption, Permissions};
pub use policy::{Asked, PatternError, Policy, SharedPolicy};
pub use spec::{
    AgentLimits, AgentProcess, AgentSpec, ExitFuture, LaunchedProcess, Launcher, StartError,
};
