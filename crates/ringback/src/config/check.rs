//! Checks of the whole configuration: ranges, and keys that must agree.

use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use ringback_service::http::check_reach;

use super::known::{self, KnownProvider};
use super::quantity::{ByteSize, Millis, PlainMillis};
use super::{Config, ConfigError, SandboxBackend, dirs};

const KIB: u64 = 1024;
const GIB: u64 = KIB * KIB * KIB;

/// Anything smaller cannot hold a tool list.
const MESSAGE_LEAST: ByteSize = ByteSize(64 * KIB);

/// Enough for a shell and a few small programs.
const SANDBOX_LEAST: ByteSize = ByteSize(16 * KIB * KIB);

/// Larger sizes are typing errors.
const SIZE_MOST: ByteSize = ByteSize(KIB * GIB);

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// No call takes longer than a day, and a peer that is silent for longer is gone for every practical
/// purpose.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// More than any real setup needs; larger numbers are typing errors.
const COUNT_MOST: u64 = 100_000_000;

impl Config {
    /// Checks that every value is in its range and that they agree with each other.
    ///
    /// # Errors
    /// The first bad value, with the place where it was set.
    pub fn check(&self) -> Result<(), ConfigError> {
        self.check_ranges()?;
        self.check_http()?;
        self.check_hoot()?;
        self.check_sockets()?;
        self.check_providers()?;
        self.check_sandbox()?;
        if let Some(root) = self.files.roots.iter().find(|root| root.is_relative()) {
            let reason = format!("expected absolute paths, found `{}`", root.display());
            return Err(self.invalid("files.roots", reason));
        }
        Ok(())
    }

    /// Checks that a daemon without tokens is reachable only from this machine.
    ///
    /// # Errors
    /// The first listener that is not on loopback.
    pub fn check_open(&self) -> Result<(), ConfigError> {
        for (key, addr) in self.listeners() {
            if !addr.ip().is_loopback() {
                let reason = format!(
                    "`--open` disables tokens and needs a loopback address, found `{addr}`"
                );
                return Err(self.invalid(key, reason));
            }
        }
        if self.http.behind_proxy {
            let reason =
                "`--open` disables tokens, and a proxy would let other machines in".to_owned();
            return Err(self.invalid("http.behind_proxy", reason));
        }
        Ok(())
    }

    fn check_ranges(&self) -> Result<(), ConfigError> {
        self.check_counts()?;
        self.check_sizes()?;
        self.check_times()?;
        let sessions = &self.sessions;
        for (key, is_zero) in [
            ("sessions.max_tokens", sessions.max_tokens == Some(0)),
            ("sessions.max_time", sessions.max_time.is_some_and(|max| max.0.is_zero())),
            ("sessions.max_cost", sessions.max_cost.is_some_and(|max| max.0 == 0)),
        ] {
            if is_zero {
                return Err(self.invalid(key, "expected more than zero".to_owned()));
            }
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), ConfigError> {
        let limits = &self.limits;
        let open_files = self.sandbox.open_files.0.unwrap_or(KIB);
        self.check_range("sandbox.open_files", open_files, 16..=COUNT_MOST)?;
        for (key, count, least) in [
            ("sandbox.containers_max", self.sandbox.containers_max, 0),
            ("mcp.sessions_max", self.mcp.sessions_max, 1),
            ("http.max_connections", self.http.max_connections, 1),
            ("limits.calls_per_principal", limits.calls_per_principal, 1),
            ("limits.jobs_running", limits.jobs_running, 1),
            ("limits.jobs_pending_max", limits.jobs_pending_max, 1),
            ("limits.event_ring", limits.event_ring, 1),
            ("limits.uploads_open", limits.uploads_open, 1),
        ] {
            self.check_range(key, count as u64, least..=COUNT_MOST)?;
        }
        Ok(())
    }

    fn check_sizes(&self) -> Result<(), ConfigError> {
        let (hoot, sandbox) = (&self.hoot, &self.sandbox);
        for (key, size, range) in [
            // With less, nothing starts: the programs that set up a sandbox count too.
            (
                "sandbox.memory",
                sandbox.memory.0.unwrap_or(SANDBOX_LEAST),
                SANDBOX_LEAST..=SIZE_MOST,
            ),
            ("sandbox.tmp", sandbox.tmp, ByteSize(KIB)..=SIZE_MOST),
            ("http.max_body", self.http.max_body, ByteSize(KIB)..=ByteSize(4 * GIB)),
            ("hoot.message_max", hoot.message_max, MESSAGE_LEAST..=ByteSize(GIB)),
            ("hoot.send_queue", hoot.send_queue, hoot.message_max..=ByteSize(64 * GIB)),
            ("background.log_max", self.background.log_max, ByteSize(KIB)..=SIZE_MOST),
            ("limits.upload_max", self.limits.upload_max, ByteSize(1)..=SIZE_MOST),
        ] {
            self.check_range(key, size, range)?;
        }
        Ok(())
    }

    fn check_times(&self) -> Result<(), ConfigError> {
        let (clients, secrets) = (&self.client_tools, &self.secrets);
        for (key, time, least) in [
            ("mcp.session_idle", self.mcp.session_idle.0, SECOND),
            ("hoot.peer_idle", self.hoot.peer_idle.0, SECOND),
            ("background.idle", self.background.idle.0, MILLISECOND),
            ("sessions.limit_wait", self.sessions.limit_wait.0, MILLISECOND),
            ("secrets.command_timeout", secrets.command_timeout.0, MILLISECOND),
            ("secrets.command_kept", secrets.command_kept.0, Duration::ZERO),
        ] {
            self.check_range(key, Millis::from(time), least.into()..=DAY.into())?;
        }
        let day = PlainMillis(Millis::from(DAY).as_millis());
        let least = PlainMillis(1);
        for (key, time, range) in [
            ("clientTools.maxTimeout", clients.maxTimeout, least..=day),
            ("clientTools.defaultTimeout", clients.defaultTimeout, least..=clients.maxTimeout),
            ("clientTools.keepaliveInterval", clients.keepaliveInterval, PlainMillis(10)..=day),
        ] {
            self.check_range(key, time, range)?;
        }
        Ok(())
    }

    fn check_range<T: PartialOrd + Display + Copy>(
        &self,
        key: &str,
        value: T,
        range: RangeInclusive<T>,
    ) -> Result<(), ConfigError> {
        if range.contains(&value) {
            return Ok(());
        }
        let (least, most) = range.into_inner();
        Err(self.invalid(key, format!("expected {least} to {most}, found {value}")))
    }

    fn check_http(&self) -> Result<(), ConfigError> {
        let is_protected = self.http.tls.is_some() || self.http.behind_proxy;
        check_reach(self.http.listen, is_protected)
            .map_err(|error| self.invalid("http.listen", error.to_string()))?;
        if let Some(host) = self.http.hosts.iter().find(|host| !is_host(host)) {
            let reason = format!("expected names such as `ring.example`, found `{host}`");
            return Err(self.invalid("http.hosts", reason));
        }
        if let Some(origin) = self.http.origins.iter().find(|origin| !is_origin(origin)) {
            let reason =
                format!("expected origins such as `https://app.example`, found `{origin}`");
            return Err(self.invalid("http.origins", reason));
        }
        Ok(())
    }

    fn check_hoot(&self) -> Result<(), ConfigError> {
        let curve = self.hoot.curve_secret_key_file.is_some();
        for (key, endpoint) in [("hoot.listen", self.hoot.listen), ("hoot.iopub", self.hoot.iopub)]
        {
            if !curve && !endpoint.0.ip().is_loopback() {
                let reason = format!(
                    "`{endpoint}` is not a loopback address and would carry tokens in the clear; set \
                     `hoot.curve_secret_key_file`, or listen on 127.0.0.1"
                );
                return Err(self.invalid(key, reason));
            }
        }
        Ok(())
    }

    fn check_sockets(&self) -> Result<(), ConfigError> {
        let listeners = self.listeners();
        for (idx, (key, addr)) in listeners.iter().enumerate() {
            let taken =
                listeners[..idx].iter().find(|(_, other)| addr.port() != 0 && addr == other);
            if let Some((other, _)) = taken {
                return Err(self.invalid(key, format!("`{addr}` is also the address of `{other}`")));
            }
        }
        let sockets = self.ipc_sockets();
        if let Some(path) = sockets.as_ref().and_then(dirs::IpcSockets::too_long) {
            let reason = format!(
                "the path of the socket `{}` has {} bytes and the system allows {}; choose a shorter \
                 directory, or set `hoot.ipc = false`",
                path.display(),
                path.as_os_str().len(),
                dirs::SOCKET_PATH_BYTES_MAX
            );
            return Err(self.invalid("runtime_dir", reason));
        }
        Ok(())
    }

    fn check_providers(&self) -> Result<(), ConfigError> {
        let providers = self.providers_in_use();
        for (name, agent) in &self.sessions.agents.0 {
            let unknown = |provider: &&String| !providers.contains_key(*provider);
            let Some(provider) = agent.provider.as_ref().filter(unknown) else {
                continue;
            };
            if let Some(advice) = KnownProvider::of(provider).and_then(KnownProvider::advice) {
                let reason = format!("the agent `{name}`: {advice}");
                return Err(self.invalid("sessions.agents", reason));
            }
            let known: Vec<_> = providers.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let reason = format!(
                "the agent `{name}` uses the unknown provider `{provider}`; configured providers: {known}; \
                 built in: {}",
                known::names()
            );
            return Err(self.invalid("sessions.agents", reason));
        }
        Ok(())
    }

    fn check_sandbox(&self) -> Result<(), ConfigError> {
        let sandbox = &self.sandbox;
        // `DOCKER_HOST` matters only if a container engine is wanted.
        let is_wanted = self.origins.contains_key("sandbox.docker")
            || sandbox.backend == SandboxBackend::Docker;
        if let (Err(error), true) = (sandbox.docker().path(), is_wanted) {
            return Err(self.invalid("sandbox.docker", error.to_string()));
        }
        match &sandbox.image {
            Some(image) if image.is_empty() || image.contains(char::is_whitespace) => {
                let reason = format!("expected a name such as `agents:latest`, found `{image}`");
                Err(self.invalid("sandbox.image", reason))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn listeners(&self) -> [(&'static str, SocketAddr); 3] {
        [
            ("http.listen", self.http.listen),
            ("hoot.listen", self.hoot.listen.0),
            ("hoot.iopub", self.hoot.iopub.0),
        ]
    }

    fn invalid(&self, key: &str, reason: String) -> ConfigError {
        ConfigError::Invalid { key: key.to_owned(), origin: self.origin(key), reason }
    }
}

/// Whether this is a name or address with an optional port, without scheme, path or user.
fn is_host(text: &str) -> bool {
    let allowed =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']');
    !text.is_empty() && text.chars().all(allowed)
}

/// Whether this is scheme and host as a browser sends them, without path or final slash.
fn is_origin(text: &str) -> bool {
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    host.is_some_and(is_host)
}
