//! The HOOT01 edge: a ROUTER for calls and a PUB for events, on TCP and on Unix sockets. It decodes
//! frames, calls the broker and encodes the replies; peers that offer tools get calls the same way.
//!
//! Main types: [`HootEdge`], [`Config`].
//!
//! Invariants:
//! * The sockets live on their own thread, which never waits for a call: a slow call delays no
//!   heartbeat and no other peer.
//! * The identity of a peer comes from the connection's handshake, and is checked again at every
//!   request. A reply goes only to the connection that sent the request.
//! * Sending never waits. A peer that does not read has a budget of bytes, and is disconnected
//!   beyond it.
//! * Connections that have not authenticated have few places, and compete for them only with each
//!   other.
//! * Rules about permissions, deadlines and jobs are not here.

mod backlog;
mod call;
mod clock;
mod config;
mod edge;
mod iopub;
mod lobby;
mod peers;
mod router;
mod transport;
mod views;
mod wire;
mod worker;

pub use clock::Clock;
pub use config::{Config, Ipc, ListenAddresses};
pub use edge::{BindError, Endpoints, HootEdge};
