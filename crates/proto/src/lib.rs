//! The vocabulary of Ringback: ids, the tool table, requests, responses, envelopes, errors, chunks,
//! events and records, and the HOOT01 frame codec. Everything else speaks in these types.
//!
//! Main types: [`error::Error`], [`principal::Principal`], [`record::Record`].
//!
//! Invariants:
//! * No IO, no clock, no tokio. Ids come from random bytes that the caller passes in.
//! * No JSON: serde derives serve the edges that speak it.

pub mod error;
pub mod ids;
pub mod principal;
pub mod record;
pub mod timing;

pub use error::{Certainty, Error, ErrorKind, Result};
