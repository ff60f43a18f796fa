//! The network proxies of sessions, with hosts on this machine's loopback.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod changes;
mod destinations;
mod limits;
mod support;
