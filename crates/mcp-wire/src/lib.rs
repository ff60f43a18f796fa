//! MCP as data: JSON-RPC messages and the two eras of the protocol, from the `initialize` handshake
//! of 2024-11-05 to the stateless requests of 2026-07-28. Payloads that are passed on stay
//! unchanged: key order, unknown fields, unknown content types, integers of any length, null.
//!
//! Main types:
//!
//! * [`Message`]: a message from a peer, parsed without copying; [`Limits`] bound it.
//! * [`Lines`]: messages out of a stream of bytes.
//! * [`Object`]: a JSON object whose values stay unparsed.
//! * [`Version`] and [`Era`]: the protocol of a peer.
//! * [`ClientRequest`]: a client's request, by method; [`Meta`] is its metadata.
//! * [`Fault`]: a JSON-RPC error, with its HTTP status.
//! * [`outgoing`]: results and notifications, stamped as the era requires.
//! * [`relay`]: a result from elsewhere, passed on.
//! * [`header`]: text as the value of an HTTP header.
//! * [`names`]: names that every client accepts, unique in a list.
//!
//! Invariants:
//!
//! * No IO, no clock, no tokio.
//! * A relayed token never changes; only whitespace between tokens may be removed ([`compact`]).
//! * Nothing is parsed before its size and depth are checked.
//! * An object with a duplicate name is refused: two readers could read different values.

mod compact;
pub mod elicitation;
mod fault;
pub mod header;
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

pub use compact::{compact, on_one_line};
pub use fault::{Code, Fault};
pub use id::Id;
pub use limits::{LimitError, Limits};
pub use lines::{Line, Lines};
pub use message::{MalformedMessage, Message, Notification, Reply, Request};
pub use meta::{LogLevel, Meta, keys};
pub use object::{NotAnObject, Object};
pub use request::{CallTool, ClientRequest, Initialize, ListenFilter};
pub use schema::{NotOfAnObject, input_schema};
pub use serde_json::value::RawValue;
pub use version::{Era, Version};
