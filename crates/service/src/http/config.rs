//! The configuration of a listener, and what it refuses.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use super::tls::Tls;

/// Loopback, so that other machines cannot reach a fresh install.
pub const DEFAULT_LISTEN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7180);

/// A quarter of the usual limit of 4096 open files, which leaves room for blobs and sandboxes.
pub const DEFAULT_MAX_CONNECTIONS: usize = 1024;

/// Room for a tool call with large arguments; bigger content goes through the blob store in pieces.
pub const DEFAULT_MAX_BODY_BYTES: usize = 16 * 1024 * 1024;

/// A listener, before it is bound.
#[derive(Clone, Debug)]
pub struct HttpConfig {
    /// Where to listen; port 0 takes any free one.
    pub listen: SocketAddr,
    /// Names other than the loopback ones that a request's `Host` may carry, with or without a
    /// port.
    pub hosts: Vec<String>,
    /// Origins other than the loopback ones whose pages may send requests: `https://name[:port]`.
    pub origins: Vec<String>,
    /// The certificate for TLS; plain HTTP without.
    pub tls: Option<Tls>,
    /// States that a reverse proxy with TLS stands in front; a non-loopback address needs this or
    /// `tls`.
    pub behind_proxy: bool,
    /// Concurrent connections; the next one is answered 503.
    pub max_connections: usize,
    /// The largest request body; a larger one is answered 413.
    pub max_body_bytes: usize,
    /// Paths with larger bodies, because their routes never hold a body in memory as a whole.
    pub larger_bodies: Vec<BodyLimit>,
    /// Paths that a browser may open from a page of another site, such as by a link.
    pub pages: Vec<&'static str>,
    /// How long a peer may keep the daemon waiting.
    pub patience: Timeouts,
}

/// A path, with everything below it, whose bodies are streamed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyLimit {
    /// The path, without a final slash.
    pub path: &'static str,
    /// The largest body there.
    pub max_bytes: u64,
}

/// How long a peer may keep the daemon waiting, each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first expected byte to the last header line, without the TLS handshake. It also
    /// ends idle connections; browsers and proxies reconnect on their own.
    pub head: Duration,
    /// Between two pieces of a body. A slow link sends something in this time; a connection that
    /// does not would hold its place forever.
    pub body: Duration,
    /// Until sent data is acknowledged: a peer that vanished, or stopped reading, is cut off.
    pub unread: Duration,
}

/// Why a listener cannot be bound.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// The address is reachable from other machines and the configuration does not provide TLS.
    #[error(
        "refusing to listen on `{listen}`: it is not a loopback address, and plain HTTP would send \
         tokens unencrypted; set `http.tls`, or put a reverse proxy with TLS in front and set \
         `http.behind_proxy = true`, or listen on 127.0.0.1"
    )]
    BeyondLoopback {
        /// The address.
        listen: SocketAddr,
    },
    /// The system refused the address.
    #[error("cannot listen on `{listen}`; choose another address with `http.listen` or `--http`")]
    Listen {
        /// The address.
        listen: SocketAddr,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            listen: DEFAULT_LISTEN,
            hosts: Vec::new(),
            origins: Vec::new(),
            tls: None,
            behind_proxy: false,
            max_connections: DEFAULT_MAX_CONNECTIONS,
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
            larger_bodies: Vec::new(),
            pages: Vec::new(),
            patience: Timeouts::default(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        let half_a_minute = Duration::from_secs(30);
        Self { head: half_a_minute, body: half_a_minute, unread: Duration::from_secs(60) }
    }
}

impl HttpConfig {
    /// Checks what can be checked before binding.
    ///
    /// # Errors
    /// [`BindError::BeyondLoopback`].
    pub const fn check(&self) -> Result<(), BindError> {
        check_reach(self.listen, self.tls.is_some() || self.behind_proxy)
    }
}

/// Checks that no address other than loopback serves unprotected plain HTTP.
///
/// # Errors
/// [`BindError::BeyondLoopback`].
pub const fn check_reach(listen: SocketAddr, is_protected: bool) -> Result<(), BindError> {
    if listen.ip().is_loopback() || is_protected {
        return Ok(());
    }
    Err(BindError::BeyondLoopback { listen })
}

#[cfg(test)]
mod tests {
    use super::HttpConfig;

    #[test]
    fn beyond_loopback_needs_a_stated_proxy() {
        let check = |listen: &str, behind_proxy| {
            let listen = listen.parse().unwrap();
            HttpConfig { listen, behind_proxy, ..HttpConfig::default() }.check().is_ok()
        };
        assert!(check("127.0.0.1:7180", false));
        assert!(check("127.8.8.8:7180", false));
        assert!(check("[::1]:7180", false));
        assert!(!check("0.0.0.0:7180", false));
        assert!(!check("[::]:7180", false));
        assert!(!check("192.168.1.4:7180", false));
        assert!(check("192.168.1.4:7180", true));
    }

    #[test]
    fn the_refusal_says_what_to_do() {
        let config =
            HttpConfig { listen: "0.0.0.0:7180".parse().unwrap(), ..HttpConfig::default() };
        let text = config.check().unwrap_err().to_string();
        assert!(text.contains("http.tls") && text.contains("http.behind_proxy"), "{text}");
    }
}
