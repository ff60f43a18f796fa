//! What an agent meets, whichever way it comes to its session: the socket or the URL, by the program
//! inside or by itself, in either era. Every scenario runs through every door.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod agent;
mod answers;
mod bearer;
mod callers;
mod keys;
mod servers;
mod support;
