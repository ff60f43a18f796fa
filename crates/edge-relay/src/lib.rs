//! The relay edge: one Unix socket for each session, on which whatever runs in it calls the tools of
//! the session's callers and, with a key, those of the daemon. JSON-RPC 2.0, one object per line
//! (`docs/relay.md`). Decodes a line, asks the broker, encodes the answer.
//!
//! Main types: [`RelayEdge`], which opens the sockets for the broker, and [`Config`].
//!
//! Invariants:
//!
//! * Whoever connects is the session: a socket belongs to one session from its first byte to its end,
//!   in a directory that only the daemon's user can enter.
//! * A key comes with each request and is checked at each request. It is never kept and never logged;
//!   no line is.
//! * Payloads pass as the bytes they are; only whitespace between tokens may go, where it would break
//!   a line.
//! * No rule about permissions, deadlines or jobs is here. The clocks here are how long an answer is
//!   held back before it becomes a job's id, which the tool's timing says, and how long a peer may
//!   take to read.
//! * A connection is one task. Its lines, its requests and what waits to be written are bounded; a peer
//!   that does not read is disconnected, and costs nobody else anything.
//! * Who disconnects cancels its calls. A message to another session is carried through all the same.
//! * The end of a session, and of the edge, closes its socket and every connection.

mod callers;
mod config;
mod connection;
mod edge;
mod events;
mod follow;
mod list;
mod methods;
mod outbox;
mod outcome;
mod refusal;
mod request;
mod socket;
mod talk;

pub use config::Config;
pub use edge::RelayEdge;
