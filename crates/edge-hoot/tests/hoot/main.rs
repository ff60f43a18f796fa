//! Scenarios over the real HOOT01 edge: a daemon in this process, clients and peers on TCP.

#![expect(
    clippy::unwrap_used,
    clippy::wildcard_enum_match_arm,
    reason = "a test names what it expects and fails on everything else"
)]

mod calls;
mod content;
mod credit;
mod events;
mod faults;
mod frames;
mod identity;
mod limits;
mod stalls;
mod strangers;
mod streams;
mod support;
mod tokens;
mod workers;
