//! Configuration of the edge.

use std::path::PathBuf;
use std::time::Duration;

use ringback_proto::secret::Secret;
use tracing::Span;

use crate::clock::Clock;

/// Configuration of the edge.
#[derive(Debug, Clone)]
pub struct Config {
    /// TCP addresses to listen on.
    pub tcp: Option<ListenAddresses>,
    /// Socket files for the daemon's own user.
    pub ipc: Option<Ipc>,
    /// The daemon's CURVE secret key (Z85). With it TCP peers must use CURVE: the bytes of their
    /// token are their secret key.
    pub curve_secret_key: Option<Secret>,
    /// Whether TCP peers need no token; only ever on loopback.
    pub open: bool,
    /// The largest message, in bytes.
    pub message_bytes_max: usize,
    /// The bytes that may wait for one peer that does not read.
    pub peer_backlog_bytes_max: usize,
    /// Peers that may be connected, over all sockets.
    pub peers_max: usize,
    /// How long a peer whose machine vanished is kept.
    pub peer_idle: Duration,
    /// The clock by which workers are silent; the transport has its own.
    pub clock: Clock,
    /// Continues a trace that a peer started.
    pub set_trace_parent: fn(&Span, &str),
}

/// Two TCP addresses, such as `tcp://127.0.0.1:5580`.
#[derive(Debug, Clone)]
pub struct ListenAddresses {
    /// For calls.
    pub calls: String,
    /// For events.
    pub events: String,
}

/// Two socket files in a directory that only the daemon's user can enter.
#[derive(Debug, Clone)]
pub struct Ipc {
    /// For calls.
    pub calls: PathBuf,
    /// For events.
    pub events: PathBuf,
}
