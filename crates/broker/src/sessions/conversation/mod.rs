//! The conversation of a session: messages to its agent, the agent's events, permission requests
//! and their answers.

pub(super) mod agent_events;
pub(super) mod events;
pub(super) mod message;
pub(super) mod permissions;
pub(super) mod questions;
pub(super) mod redaction;
