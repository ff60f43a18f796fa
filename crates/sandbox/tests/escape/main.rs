//! Tries to get out of a box, from inside of it, in every way there is a promise about. Most of it
//! is tried four times: in a box of bubblewrap's and in a container, as the user of these tests and as
//! one without any rights.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod bench;
mod calls;
mod docker;
mod ending;
#[path = "../../../../tests/docker/engine.rs"]
mod engine;
mod limits;
mod many;
mod network;
mod reading;
mod refusing;
#[path = "../../../../tests/rights.rs"]
mod rights;
mod watches;
