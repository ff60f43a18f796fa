//! The real program between a real pipe and a real socket.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod calls;
mod forward;
mod outages;
mod support;
mod tools;
mod url;
mod wait;
