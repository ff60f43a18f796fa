//! What an agent sees on every way to its session: the socket or the URL, through the program
//! inside or directly, in either era. Every scenario runs on every way.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod agent;
mod answers;
mod bearer;
mod callers;
mod keys;
mod servers;
mod support;
