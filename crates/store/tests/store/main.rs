//! Tests of the store's public API.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod audit;
mod commits;
mod common;
mod counts;
mod crash;
mod garden;
mod graph;
mod journal;
mod open;
mod reads;
mod sessions;
