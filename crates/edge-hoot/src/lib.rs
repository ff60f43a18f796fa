//! The HOOT01 edge: a ROUTER for calls and a PUB for events, on TCP and on Unix sockets. It decodes
//! frames, calls the broker and encodes what comes back; peers that offer tools get calls the same way.
//!
//! Main types: [`HootEdge`], [`Config`].
//!
//! Invariants:
//! * The sockets live on a thread of their own, which never waits for a call: a slow call delays no
//!   heartbeat and no other peer.
//! * Who a peer is comes from the connection's handshake, and is checked again at every request. A
//!   reply goes only to the connection that asked.
//! * Sending never waits. A peer that does not read has a budget of bytes, and is disconnected
//!   beyond it.
//! * Connections that have not shown who they are have few places, which strangers take from each other
//!   alone.
//! * No rule about permissions, deadlines or jobs is here.

mod backlog;
mod call;
mod config;
mod edge;
mod iopub;
mod lobby;
mod peers;
mod router;
mod transport;
mod wire;
mod worker;

pub use config::{Config, Ipc, Listen};
pub use edge::{BindError, Endpoints, HootEdge};
