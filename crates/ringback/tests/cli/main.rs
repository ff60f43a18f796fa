//! The command line end to end: the real binary, a daemon in a temporary directory, free ports.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod alone;
mod calls;
mod containers;
mod content;
mod daemon;
mod docker;
#[path = "../../../../tests/docker/engine.rs"]
mod engine;
mod mcp;
mod models;
mod network;
mod offer;
mod protecting;
#[path = "../../../../tests/rights.rs"]
mod rights;
mod run;
mod sandbox;
mod secrets;
mod sessions;
mod spending;
mod studio;
mod support;
mod vault;
mod verify;
