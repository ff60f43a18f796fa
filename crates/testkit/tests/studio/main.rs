//! The music tools over every face of the daemon, with and without music services.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

mod abc;
mod faces;
mod load;
mod model_service;
mod models;
mod sound;
mod sources;
mod support;
