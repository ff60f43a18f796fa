//! The relay edge over real Unix sockets, against a real broker. The tests play the programs inside
//! a session, and its callers.
#![expect(
    clippy::needless_pass_by_value,
    clippy::unwrap_used,
    reason = "a test names what it expects, where it expects it, and fails on the rest"
)]

mod answers;
mod callers;
mod keys;
mod limits;
mod logs;
mod protocol;
mod sessions;
mod support;
