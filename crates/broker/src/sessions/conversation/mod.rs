//! What is said in sessions: messages to agents, what agents say and ask, and who answers.

pub(super) mod events;
pub(super) mod heard;
pub(super) mod message;
pub(super) mod permissions;
pub(super) mod questions;
