//! The command line end to end: the real binary, a daemon in a temporary directory, free ports.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod boxed;
mod calls;
mod containers;
mod content;
mod daemon;
mod docker;
mod garden;
mod mcp;
mod models;
mod network;
mod offer;
mod one_command;
mod projects;
mod protection;
mod repositories;
mod run;
mod sandbox;
mod secrets;
mod sessions;
mod spending;
mod standalone;
mod studio;
mod support;
mod terminal;
mod toolchains;
mod vault;
mod verify;
