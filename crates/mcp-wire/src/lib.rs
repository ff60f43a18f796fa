//! MCP as data: JSON-RPC messages and the two eras of the protocol, from the `initialize` handshake
//! of 2024-11-05 to the stateless requests of 2026-07-28. Payloads that only pass through stay the
//! bytes they were: key order, unknown fields, unknown content types, integers of any length, null.
//!
//! Main types:
//!
//! * [`Message`]: what a peer sent, taken apart without copying; [`Limits`] bound it.
//! * [`Lines`]: messages out of a stream of bytes.
//! * [`Object`]: a JSON object whose values are left as they are.
//! * [`Version`] and [`Era`]: which protocol a peer speaks.
//! * [`ClientRequest`]: what a client asks for, by method; [`Meta`] is what comes with it.
//! * [`Fault`]: a JSON-RPC error, with the HTTP status that belongs to it.
//! * [`outgoing`]: results and notifications, stamped as the era wants them.
//! * [`relay`]: somebody else's result, passed on.
//! * [`names`]: names that every client takes, no two the same in a list.
//!
//! Invariants:
//!
//! * No IO, no clock, no tokio.
//! * A relayed token never changes; only whitespace between tokens may go ([`compact`]).
//! * Nothing is parsed before its size and depth are checked.
//! * An object with the same name twice is refused: two readers could read two things.

mod compact;
pub mod elicitation;
mod fault;
mod id;
mod limits;
mod lines;
mod message;
mod meta;
pub mod names;
mod object;
pub mod outgoing;
pub mod relay;
mod request;
mod schema;
mod version;

pub use compact::compact;
pub use fault::{Code, Fault};
pub use id::Id;
pub use limits::{LimitError, Limits};
pub use lines::{Line, Lines};
pub use message::{Malformed, Message, Notification, Reply, Request};
pub use meta::{LogLevel, Meta, keys};
pub use object::{NotAnObject, Object};
pub use request::{CallTool, ClientRequest, Initialize, ListenFilter};
pub use schema::{NotOfAnObject, input_schema};
pub use serde_json::value::RawValue;
pub use version::{Era, Version};
