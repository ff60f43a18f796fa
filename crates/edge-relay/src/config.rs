//! What the edge is told at its start.

use std::time::Duration;

/// How much one session's socket may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Bytes of a line, in either direction.
    pub line_bytes_max: usize,
    /// Connections of one session.
    pub connections_max: usize,
    /// Requests of one connection that are under way.
    pub requests_max: usize,
    /// Bytes of all requests of one connection that are under way.
    pub request_bytes_max: usize,
    /// Bytes that wait for one connection's peer to read them.
    pub outbox_bytes_max: usize,
    /// How long a peer may take to read anything of what waits for it.
    pub stall: Duration,
}

impl Default for Config {
    /// An agent has one connection, and some run helpers of their own. Four of the longest lines may
    /// be under way, and as many may wait.
    fn default() -> Self {
        const LINE_BYTES_MAX: usize = 16 << 20;
        Self {
            line_bytes_max: LINE_BYTES_MAX,
            connections_max: 16,
            requests_max: 64,
            request_bytes_max: 4 * LINE_BYTES_MAX,
            outbox_bytes_max: 4 * LINE_BYTES_MAX,
            stall: Duration::from_secs(30),
        }
    }
}
