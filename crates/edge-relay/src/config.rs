//! Configuration of the edge.

use std::time::Duration;

/// Limits of one session's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Bytes of a line of text, in either direction.
    pub line_bytes_max: usize,
    /// Connections of one session.
    pub connections_max: usize,
    /// Running requests of one connection.
    pub requests_max: usize,
    /// Bytes of all running requests of one connection.
    pub request_bytes_max: usize,
    /// Unread bytes for one connection's peer.
    pub outbox_bytes_max: usize,
    /// How long a peer may go without reading while something waits for it.
    pub stall: Duration,
}

impl Default for Config {
    /// An agent has one connection, and some run helpers of their own. Four of the longest lines
    /// may be in progress, and as many may wait.
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
