//! Configuration of the edge.

use std::time::Duration;

use ringback_broker::Door;

/// Limits on the number of MCP sessions and on their idle time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Total.
    pub max: usize,
    /// Per principal.
    pub per_principal_max: usize,
    /// An MCP session without a request, an open stream or a running call ends after this time.
    pub idle: Duration,
    /// An MCP session whose client never sends `initialized` ends after this time.
    pub handshake: Duration,
}

/// Settings of the edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How callers authenticate.
    pub door: Door,
    /// The daemon's version, for `serverInfo`.
    pub version: String,
    /// Limits of MCP sessions.
    pub sessions: SessionLimits,
    /// A call of an MCP session whose stream broke is cancelled unless its client resumes it in
    /// this time.
    pub resume_grace: Duration,
    /// The largest message.
    pub message_bytes_max: usize,
    /// The issuers of tokens for this resource, other than `ringback token create`.
    pub authorization_servers: Vec<String>,
    /// Whether our own address starts with `https`.
    pub is_https: bool,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            max: 4096,
            per_principal_max: 2048,
            // An agent that thinks for a quarter of an hour still finds its MCP session.
            idle: Duration::from_secs(30 * 60),
            handshake: Duration::from_secs(60),
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            door: Door::Token,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sessions: SessionLimits::default(),
            // A client that lost its connection returns within seconds.
            resume_grace: Duration::from_secs(15),
            message_bytes_max: 16 * 1024 * 1024,
            authorization_servers: Vec::new(),
            is_https: false,
        }
    }
}
