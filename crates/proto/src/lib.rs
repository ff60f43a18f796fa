//! The vocabulary of Ringback: ids, the tool table, requests, responses, envelopes, errors, chunks,
//! events and records, and the HOOT01 frame codec. All other crates use these types.
//!
//! Main types: [`ToolRequest`] and [`ToolResponse`], generated from the table in [`table`];
//! [`RequestEnvelope`] and [`ResponseEnvelope`]; [`Error`]; [`Event`]; [`record::Record`].
//!
//! Invariants:
//! * No IO, no clock, no tokio. Ids are made from random bytes that the caller supplies.
//! * A native tool is defined once, as a row of the table.
//! * No JSON except in payloads that are only passed on ([`any`], [`raw`]): the serde derives are for
//!   the edges that use it.
//! * Bytes from untrusted peers pass the limits of [`msgpack`] before any decoder sees them.

pub mod any;
mod chain;
pub mod chunk;
pub mod data;
pub mod envelope;
pub mod error;
pub mod event;
pub mod frame;
pub mod garden;
pub mod ids;
pub mod money;
pub mod msgpack;
pub mod network;
pub mod permission;
pub mod principal;
pub mod raw;
pub mod ready;
pub mod record;
pub mod request;
pub mod secret;
pub mod table;
pub mod timing;
pub mod tool;
pub mod value;
mod wire_enum;

pub use chain::chain;
pub use chunk::StreamChunk;
pub use envelope::{CallOptions, RequestEnvelope, ResponseEnvelope, ToolCall};
pub use error::{Certainty, Error, ErrorKind, Result};
pub use event::Event;
pub use timing::ToolTiming;
pub use tool::{Tool, ToolRequest, ToolResponse};
