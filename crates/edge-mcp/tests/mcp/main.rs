//! The MCP edge over real HTTP, against a real broker.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod agents;
mod callers;
mod calls;
mod followers;
mod handshake;
mod identity;
mod lines;
mod modern;
mod questions;
mod resumption;
mod streams;
mod support;
