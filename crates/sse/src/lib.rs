//! Server-sent events as data: bytes in, events out.
//!
//! Main types:
//!
//! * [`Parser`]: takes bytes as they arrive, and returns each [`Event`] when it is complete.
//! * [`BadEvent`]: why nothing more can be read.
//!
//! Invariants:
//!
//! * No IO, no clock, no knowledge of what an event means.
//! * The events do not depend on how the bytes were cut, and neither does the error.
//! * An event has a limit; only one incomplete event is kept.

mod parser;

pub use parser::{BadEvent, Event, Parser};
