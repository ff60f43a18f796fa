//! What the edge is told at its start.

use std::path::PathBuf;
use std::time::Duration;

use ringback_proto::secret::Secret;
use tracing::Span;

/// What the edge is told at its start.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it listens on TCP.
    pub tcp: Option<Listen>,
    /// Where it listens for its own user.
    pub ipc: Option<Ipc>,
    /// The daemon's CURVE secret key (Z85). With it TCP peers must use CURVE: the bytes of their
    /// token are their secret key.
    pub curve_secret_key: Option<Secret>,
    /// Whether TCP peers need no token; only ever on loopback.
    pub open: bool,
    /// The largest message, in bytes.
    pub message_bytes_max: usize,
    /// What may wait for one peer that does not read, in bytes.
    pub peer_backlog_bytes_max: usize,
    /// Peers that may be connected, to all sockets together.
    pub peers_max: usize,
    /// How long a peer whose machine vanished is kept.
    pub peer_idle: Duration,
    /// Continues a trace that a peer began.
    pub set_trace_parent: fn(&Span, &str),
}

/// Two TCP addresses, such as `tcp://127.0.0.1:5580`.
#[derive(Debug, Clone)]
pub struct Listen {
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
