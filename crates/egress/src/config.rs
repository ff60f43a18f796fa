//! Limits of the model proxies, and the models behind them.

use std::path::PathBuf;
use std::time::Duration;

use crate::{BaseUrl, KeyHeader, KeySource, Prices};

/// The limits of every model proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Concurrent requests of one session.
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
    /// How long a body may stall, in either direction.
    pub body_timeout: Duration,
    /// How long a connection may go without the head of a request.
    pub head_timeout: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            // An agent sends one request at a time, its helpers perhaps a few more.
            requests_at_once_max: 16,
            connections_max: 64,
            // Twice what the largest known provider accepts.
            request_bytes_max: 64 << 20,
            answer_bytes_max: 1 << 30,
            connect_timeout: Duration::from_secs(10),
            // How long clients of models wait for an answer that does not stream.
            answer_timeout: Duration::from_secs(600),
            body_timeout: Duration::from_secs(300),
            head_timeout: Duration::from_secs(60),
        }
    }
}

/// A model: its address and its authentication.
#[derive(Debug, Clone)]
pub struct Provider {
    /// The URL that request paths are appended to.
    pub url: BaseUrl,
    /// The key; without one, requests carry none.
    pub key: Option<KeySource>,
    /// The header for the key.
    pub header: KeyHeader,
    /// The trusted root certificates, PEM, in place of the system's.
    pub ca_file: Option<PathBuf>,
    /// The number of requests of one session; unlimited if absent.
    pub requests_max: Option<u64>,
    /// The prices of its models.
    pub prices: Prices,
    /// The API that it offers, if that is known: `openai`, `anthropic` or `google`.
    pub api: Option<&'static str>,
    /// The environment variable in which people have its key.
    pub variable: Option<&'static str>,
}
