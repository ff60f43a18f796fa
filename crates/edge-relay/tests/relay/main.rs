//! The relay edge over real Unix sockets, against a real broker. The tests play what runs inside a
//! session, and its callers.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod answers;
mod callers;
mod keys;
mod limits;
mod protocol;
mod sessions;
mod support;
