//! The driver with real processes, and the scripted agent driven by it.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod acp;
mod driver;
mod one_shot;
mod scripted;
mod support;
