//! The relay edge: one Unix socket for each session, on which the programs in it call the tools of
//! the session's callers and, with a key, those of the daemon. JSON-RPC 2.0, one object per line
//! (`docs/relay.md`). It decodes a line, calls the broker and encodes the answer.
//!
//! Main types: [`RelayEdge`], which opens the sockets for the broker, and [`Config`].
//!
//! Invariants:
//!
//! * A client that connects is the session: a socket belongs to one session from its first byte to
//!   its end, in a directory that only the daemon's user can enter.
//! * A key comes with each request and is checked at each request. It is never kept and never
//!   logged; no line is.
//! * Payloads pass unchanged; only whitespace between tokens may be removed, where it would break a
//!   line.
//! * Rules about permissions, deadlines and jobs are not here. The timers here are how long an
//!   answer is held back before it becomes a job's id, which depends on the tool's timing, and how
//!   long a peer may take to read.
//! * A connection is one task. Its lines, its requests and its outbox are bounded; a peer that does
//!   not read is disconnected, and costs no other peer anything.
//! * Disconnecting cancels the calls of a connection. A message to another session is delivered
//!   nevertheless.
//! * The end of a session, and of the edge, closes its socket and every connection.

mod callers;
mod config;
mod connection;
mod edge;
mod events;
mod list;
mod methods;
mod outbox;
mod outcome;
mod protocol;
mod refusal;
mod request;
mod socket;

pub use config::Config;
pub use edge::RelayEdge;
