//! Real model proxies between an agent, played by the test, and a real HTTP provider.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod bodies;
mod keys;
mod limits;
mod outages;
mod support;
