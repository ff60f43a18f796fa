//! The garden's tools against a scripted garden: commands and their jobs, the timeline, and who may
//! do what.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod attacks;
mod events;
mod faces;
mod flow;
mod monitor;
mod picture;
mod promises;
mod support;
mod timeline;
