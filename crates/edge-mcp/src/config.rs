//! What the edge is told.

use std::time::Duration;

/// How callers show who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// By a bearer token.
    Token,
    /// Not at all: whoever reaches the listener is the daemon's own user. Only ever on loopback.
    Open,
}

/// How many sessions there may be, and how long they last without a sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// In all.
    pub max: usize,
    /// Of one principal.
    pub per_principal_max: usize,
    /// A session without a request, an open stream or a running call ends after this.
    pub idle: Duration,
    /// A session whose client never says that it is initialized ends after this.
    pub handshake: Duration,
}

/// Settings of the edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// How callers show who they are.
    pub door: Door,
    /// The daemon's version, for `serverInfo`.
    pub version: String,
    /// Bounds of the sessions.
    pub sessions: SessionLimits,
    /// A call of a session whose stream broke is cancelled unless somebody resumes it in this time.
    pub resume_grace: Duration,
    /// Largest message.
    pub message_bytes_max: usize,
    /// Where tokens for this resource are issued, if anywhere but by `ringback token create`.
    pub authorization_servers: Vec<String>,
    /// Whether our own address starts with `https`.
    pub is_https: bool,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            max: 4096,
            per_principal_max: 2048,
            // An agent that thinks for a quarter of an hour still finds its session.
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
            // A client that lost its connection comes back in a few seconds.
            resume_grace: Duration::from_secs(15),
            message_bytes_max: 16 * 1024 * 1024,
            authorization_servers: Vec::new(),
            is_https: false,
        }
    }
}
