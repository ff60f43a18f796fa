//! Configuration of a connection: endpoint, credentials and limits.

use std::time::Duration;

use ringback_proto::secret::Secret;

/// The credentials of a client.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// None: for the `ipc://` sockets of the runtime directory, or a daemon that runs open.
    None,
    /// A token in clear text: only for loopback.
    Token(Secret),
    /// A token that is never sent: its bytes are the secret key of an encrypted connection.
    Curve {
        /// The token.
        token: Secret,
        /// The daemon's public key, 40 characters of Z85.
        server_key: String,
    },
}

/// A connection to a daemon.
#[derive(Debug, Clone)]
pub struct Config {
    /// The endpoint, such as `tcp://127.0.0.1:5580` or `ipc:///run/user/1000/ringback/hoot.sock`.
    pub endpoint: String,
    /// The credentials.
    pub credentials: Credentials,
    /// How long the first connection may take.
    pub connect_timeout: Duration,
    /// How often a heartbeat is sent and expected.
    pub heartbeat_interval: Duration,
    /// After this many intervals without a heartbeat the link counts as dead, and the client
    /// reconnects.
    pub heartbeat_misses_max: u32,
    /// Calls in flight, including streams; one more is `busy`.
    pub calls_max: usize,
    /// Unread frames of one stream; a reader that falls further behind loses the stream.
    pub stream_frames_max: usize,
    /// How long a call without its own deadline waits for its reply.
    pub reply_timeout: Duration,
    /// How much content goes into one message, up and down.
    pub piece_bytes: usize,
}

impl Config {
    /// Well below the message limit of 64 MiB, and large enough that a round trip per piece does
    /// not matter.
    pub const PIECE_BYTES: usize = 4 << 20;

    /// Makes a configuration with the default limits.
    #[must_use]
    pub fn new(endpoint: impl Into<String>, credentials: Credentials) -> Self {
        Self {
            endpoint: endpoint.into(),
            credentials,
            connect_timeout: Duration::from_secs(5),
            heartbeat_interval: Duration::from_secs(5),
            heartbeat_misses_max: 3,
            calls_max: 1024,
            stream_frames_max: 1024,
            // The longest wait a caller may request is 120 s; the rest is for a slow network.
            reply_timeout: Duration::from_secs(150),
            piece_bytes: Self::PIECE_BYTES,
        }
    }
}
