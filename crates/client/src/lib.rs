//! The Rust client for HOOT01: calls typed tools of a daemon over ZeroMQ, follows streams,
//! transfers content, and subscribes to events.
//!
//! Main types:
//!
//! * [`Client`]: a cloneable handle to one connection, set up by [`Config`] and [`Credentials`].
//! * [`Outcome`]: the outcome of a call: a result, a job, or an acknowledgement.
//! * [`CallStream`]: the chunks of a call as they arrive.
//! * [`NamedStream`]: the same for a tool on a line, whose input and answer are only bytes here.
//! * [`Subscriber`]: events, and gaps between them, as [`Notice`]s.
//! * [`Worker`]: offers [`WorkerTools`] to a daemon and runs the calls that come back.
//! * [`line::Line`]: the same over HTTP, as client tools.
//!
//! Invariants:
//!
//! * One task owns the socket. Dropping a call before its answer cancels it there.
//! * Every call ends: with its reply, with the link (`gone`), or with its time (`timeout`). Each
//!   failure says whether the tool may have run.
//! * Nothing waits without a limit: calls in flight, frames of a stream and pieces of content are
//!   all bounded, and a full queue is an immediate `busy`.
//! * No call is repeated automatically: after a lost link only the caller knows whether it should
//!   be.

mod blob;
mod call;
mod client;
mod config;
mod error;
mod gaps;
mod heartbeat;
pub mod line;
mod link_loop;
mod named_calls;
mod pending;
mod stream;
mod subscriber;
mod task;
mod transport;
mod worker;

pub use self::call::Outcome;
pub use self::client::Client;
pub use self::config::{Config, Credentials};
pub use self::error::ConnectError;
pub use self::gaps::Gap;
pub use self::named_calls::NamedStream;
pub use self::stream::{CallStream, StreamItem};
pub use self::subscriber::{Notice, SubscribeError, Subscriber};
pub use self::transport::LinkState;
pub use self::worker::{ServeError, ServingState, Worker, WorkerCall, WorkerTools};
