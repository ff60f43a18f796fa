//! The HTTP edge over real sockets: a broker, a listener, and clients of every kind.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod audit;
mod blobs;
mod calls;
mod errors;
mod events;
mod execute;
mod faults;
mod heap;
mod jobs;
mod openapi;
mod register;
mod result;
mod sessions;
mod streams;
mod support;
mod tokens;
