//! How far doors go, and what is behind them.

use std::path::PathBuf;
use std::time::Duration;

use crate::{BaseUrl, KeyHeader, KeySource, Prices};

/// The limits of every door.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Requests of one session that are under way at once.
    pub requests_at_once_max: usize,
    /// Connections of one session.
    pub connections_max: usize,
    /// The largest body of a request.
    pub request_bytes_max: usize,
    /// The largest body of an answer; a longer one is cut off.
    pub answer_bytes_max: u64,
    /// How long a provider may take to accept a connection.
    pub connect_timeout: Duration,
    /// How long a provider may take until its answer starts.
    pub answer_timeout: Duration,
    /// How long a body may stand still, in either direction.
    pub body_timeout: Duration,
    /// How long a connection may go without the head of a request.
    pub head_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // An agent asks once at a time, its helpers perhaps a few times more.
            requests_at_once_max: 16,
            connections_max: 64,
            // Twice what the largest of the known providers takes.
            request_bytes_max: 64 << 20,
            answer_bytes_max: 1 << 30,
            connect_timeout: Duration::from_secs(10),
            // What clients of models wait for an answer that does not stream.
            answer_timeout: Duration::from_secs(600),
            body_timeout: Duration::from_secs(300),
            head_timeout: Duration::from_secs(60),
        }
    }
}

/// A model: where it is, and how it knows who asks.
#[derive(Debug, Clone)]
pub struct Provider {
    /// What the path of a request is appended to.
    pub url: BaseUrl,
    /// The key; without one a request carries none.
    pub key: Option<KeySource>,
    /// Where the provider wants the key.
    pub header: KeyHeader,
    /// The roots to trust, PEM, in place of the system's.
    pub ca_file: Option<PathBuf>,
    /// Requests that one session may make; without it there is no limit.
    pub requests_max: Option<u64>,
    /// What its models cost.
    pub prices: Prices,
}
