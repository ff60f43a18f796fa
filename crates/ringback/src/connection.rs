//! Finds the daemon and the token for a command, and connects.

use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use ringback_client::line::LineError;
use ringback_client::{Client, ConnectError, Credentials, Subscriber};
use ringback_proto::request::PingRequest;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::Ping;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::background;
use crate::config::{Config, Environment, ServeFlags, config_path};
use crate::failure::Failure;
use crate::running::RunningDaemon;

/// Loopback answers in milliseconds; this allows for a daemon that is just starting.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Enough for the last few small messages to the daemon.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The variable with the token. It is only for this program: child processes do not get it.
pub(crate) const TOKEN_VARIABLE: &str = "RINGBACK_TOKEN";

/// Shown as the origin when no token was found.
const NO_TOKEN: &str = "nowhere: no token was found";

/// The daemon to call, and the token to use.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Connection")]
pub struct ConnectArgs {
    /// Endpoint of the daemon: `tcp://HOST:PORT` or `ipc:///PATH` [env: RINGBACK_DAEMON] [default:
    /// this user's daemon]
    #[arg(long, global = true, value_name = "ENDPOINT")]
    pub daemon: Option<String>,
    /// File with the token [default: `RINGBACK_TOKEN`, else `token` in the data directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Public key of a daemon that uses CURVE, 40 characters of Z85
    #[arg(long, global = true, value_name = "KEY")]
    pub server_key: Option<String>,
    /// Configuration file with the daemon's addresses
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Data directory of the daemon
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<String>,
}

/// A daemon and the credentials for it.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) endpoint: String,
    pub(crate) credentials: Credentials,
    /// Where the token came from, shown when it is refused.
    origin: String,
    /// Its event endpoint, unless the command line overrides it.
    iopub: Option<String>,
}

/// A daemon's HTTP listener, and the token for it.
#[derive(Debug, Clone)]
pub(crate) struct HttpTarget {
    /// Host and port.
    pub(crate) address: String,
    pub(crate) token: Option<Secret>,
    /// Where the token came from, shown when it is refused.
    origin: String,
}

impl HttpTarget {
    /// Converts an error to a failure with advice.
    pub(crate) fn explain(&self, error: LineError) -> Failure {
        let endpoint = format!("http://{}", self.address);
        match error {
            LineError::Connect { source, .. } => Failure::NoDaemon { endpoint, source },
            LineError::Refused { status: 401, message, .. } => {
                Failure::Refused { endpoint, reason: message, origin: self.origin.clone() }
            }
            other @ (LineError::Token
            | LineError::Exchange { .. }
            | LineError::Timeout { .. }
            | LineError::Refused { .. }
            | LineError::Unreadable { .. }) => other.into(),
        }
    }
}

/// A token and its origin.
struct FoundToken {
    token: Secret,
    origin: String,
}

impl ConnectArgs {
    /// Finds the daemon: as given, else the socket in the runtime directory, else `hoot.listen`.
    ///
    /// An explicit token is always used. The socket would ignore it, because only the daemon's own
    /// user can reach it.
    pub(crate) fn target(&self, environment: &Environment) -> Result<Target, Failure> {
        let named = self.daemon.clone().or_else(|| text_of(environment, "RINGBACK_DAEMON"));
        let given = self.given_token(environment)?;
        if let Some(endpoint) = named {
            let iopub = sibling(&endpoint);
            let found = match given {
                Some(found) => Some(found),
                None if endpoint.starts_with("ipc:") => None,
                None => self.config(environment).ok().and_then(|config| token_in(&config)),
            };
            return Ok(self.at(endpoint, found, iopub));
        }
        let config = self.config(environment)?;
        if given.is_none()
            && let Some(sockets) = config.ipc_sockets()
            && UnixStream::connect(&sockets.hoot).is_ok()
        {
            let ipc = |path: &Path| format!("ipc://{}", path.display());
            return Ok(self.at(ipc(&sockets.hoot), None, Some(ipc(&sockets.iopub))));
        }
        let found = given.or_else(|| token_in(&config));
        Ok(self.at(config.hoot.listen.to_string(), found, Some(config.hoot.iopub.to_string())))
    }

    /// Does the same, and starts this user's daemon in the background if no daemon answers and none
    /// was named.
    pub(crate) async fn target_or_start(
        &self,
        environment: &Environment,
    ) -> Result<Target, Failure> {
        let target = self.target(environment)?;
        let is_named = self.daemon.is_some()
            || environment.get("RINGBACK_DAEMON").is_some()
            || self.given_token(environment)?.is_some();
        if is_named || target.endpoint.starts_with("ipc:") || probe(&target.endpoint).await.is_ok()
        {
            return Ok(target);
        }
        let config = self.config(environment)?;
        if config.ipc_sockets().is_none() {
            return Ok(target);
        }
        background::start(self, &config, environment).await?;
        self.target(environment)
    }

    /// Finds the daemon's HTTP listener: as given, else `http.listen` of the configuration.
    ///
    /// Only on this machine and without TLS: a remote daemon is reached through a tunnel, so that
    /// no token crosses a network in the clear.
    pub(crate) fn http(
        &self,
        environment: &Environment,
        named: Option<&str>,
    ) -> Result<HttpTarget, Failure> {
        let config = self.config(environment)?;
        let address = match named {
            None if config.http.tls.is_some() => {
                let text = "the daemon's HTTP listener uses TLS, which this command does not support; \
                            give a plain listener on this machine with `--http ADDR`";
                return Err(Failure::Usage(text.to_owned()));
            }
            None => http_address(&config),
            Some(named) => {
                named.strip_prefix("http://").unwrap_or(named).trim_end_matches('/').to_owned()
            }
        };
        if !is_here(&address) {
            let text = format!(
                "`{address}` is not HOST:PORT on this machine; open a tunnel such as `ssh -L \
                 7180:127.0.0.1:7180 HOST` and use `--http 127.0.0.1:7180`"
            );
            return Err(Failure::Usage(text));
        }
        let found = match self.given_token(environment)? {
            Some(found) => Some(found),
            None => token_in(&config),
        };
        Ok(match found {
            Some(FoundToken { token, origin }) => {
                HttpTarget { address, token: Some(token), origin }
            }
            None => HttpTarget { address, token: None, origin: NO_TOKEN.to_owned() },
        })
    }

    pub(crate) fn config(&self, environment: &Environment) -> Result<Config, Failure> {
        let flags = ServeFlags {
            config: self.config.clone(),
            data_dir: self.data_dir.clone(),
            ..ServeFlags::default()
        };
        Ok(Config::load(&flags, environment)?)
    }

    /// Returns the daemon's private paths, which are hidden from agents.
    pub(crate) fn private(&self, environment: &Environment) -> Result<Vec<PathBuf>, Failure> {
        let config = self.config(environment)?;
        let flags = ServeFlags { config: self.config.clone(), ..ServeFlags::default() };
        let mut private = config.private();
        private.extend(config_path(&flags, environment));
        Ok(private)
    }

    /// Returns the token to call with: as given, else the one in the data directory.
    pub(crate) fn token(
        &self,
        environment: &Environment,
        config: &Config,
    ) -> Result<Option<Secret>, Failure> {
        let found = self.given_token(environment)?.or_else(|| token_in(config));
        Ok(found.map(|found| found.token))
    }

    fn given_token(&self, environment: &Environment) -> Result<Option<FoundToken>, Failure> {
        if let Some(path) = &self.token_file {
            return read_token(path)
                .map(Some)
                .map_err(|source| Failure::TokenFile { path: path.clone(), source });
        }
        Ok(text_of(environment, TOKEN_VARIABLE).map(|text| FoundToken {
            token: Secret::new(text.trim().to_owned()),
            origin: "`RINGBACK_TOKEN`".to_owned(),
        }))
    }

    fn at(&self, endpoint: String, found: Option<FoundToken>, iopub: Option<String>) -> Target {
        let (credentials, origin) = match (found, &self.server_key) {
            (None, _) => (Credentials::None, NO_TOKEN.to_owned()),
            (Some(FoundToken { token, origin }), None) => (Credentials::Token(token), origin),
            (Some(FoundToken { token, origin }), Some(key)) => {
                (Credentials::Curve { token, server_key: key.clone() }, origin)
            }
        };
        Target { endpoint, credentials, origin, iopub }
    }
}

impl Target {
    /// Whether this is a socket of this user's own daemon, so that no other user and no network is
    /// between.
    pub(crate) async fn is_own_socket(&self) -> bool {
        let Some(path) = self.endpoint.strip_prefix("ipc://") else { return false };
        let Ok(stream) = tokio::net::UnixStream::connect(path).await else { return false };
        stream.peer_cred().is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
    }

    /// Returns its event endpoint, if it is known.
    pub(crate) fn iopub(&self) -> Option<&str> {
        self.iopub.as_deref()
    }

    /// Returns whether calls over an own socket are those of the daemon's user: a token would make
    /// them those of its owner.
    pub(crate) const fn is_without_token(&self) -> bool {
        matches!(self.credentials, Credentials::None)
    }

    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        self.check_token()?;
        probe(&self.endpoint).await?;
        let mut config =
            ringback_client::Config::new(self.endpoint.clone(), self.credentials.clone());
        config.connect_timeout = CONNECT_TIMEOUT;
        Client::connect(config).await.map_err(|error| self.explain(error))
    }

    /// Connects, runs `work`, and disconnects. Ctrl-C drops `work`, which cancels its call at the
    /// daemon before the connection ends.
    pub(crate) async fn run(
        &self,
        work: impl AsyncFnOnce(&Client) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let client = self.connect().await?;
        let result = interruptible(work(&client)).await;
        let leave = async {
            if result.is_err() {
                // The answer shows that the daemon has read everything before it, including a
                // cancel; it may notice the end of a connection before it reads its last messages.
                drop(client.call::<Ping>(PingRequest {}).await);
            }
            client.close().await;
        };
        drop(tokio::time::timeout(CLOSE_TIMEOUT, leave).await);
        result
    }

    /// Subscribes to the daemon's events.
    pub(crate) async fn subscribe(
        &self,
        iopub: Option<&str>,
        prefixes: Vec<String>,
    ) -> Result<Subscriber, Failure> {
        let endpoint = iopub.or(self.iopub.as_deref()).ok_or_else(|| {
            let text = format!(
                "unknown event endpoint of `{}`; give it with `--iopub ENDPOINT`",
                self.endpoint
            );
            Failure::Usage(text)
        })?;
        self.check_token()?;
        probe(endpoint).await?;
        Subscriber::connect(endpoint, &self.credentials, prefixes)
            .await
            .map_err(|error| self.explain(error))
    }

    fn explain(&self, error: ConnectError) -> Failure {
        match error {
            ConnectError::Refused { reason, .. } => self.refused(reason),
            ConnectError::Token => self.refused(ConnectError::Token.to_string()),
            other @ (ConnectError::Open { .. }
            | ConnectError::ServerKey
            | ConnectError::Unreachable { .. }) => other.into(),
        }
    }

    fn refused(&self, reason: String) -> Failure {
        Failure::Refused { endpoint: self.endpoint.clone(), reason, origin: self.origin.clone() }
    }

    /// Refuses a malformed token before it is sent.
    fn check_token(&self) -> Result<(), Failure> {
        match &self.credentials {
            Credentials::Token(token) | Credentials::Curve { token, .. } if !is_token(token) => {
                Err(self.refused(ConnectError::Token.to_string()))
            }
            Credentials::None | Credentials::Token(_) | Credentials::Curve { .. } => Ok(()),
        }
    }
}

/// The signals that end a command early: SIGINT, SIGHUP and SIGTERM.
#[derive(Debug)]
pub(crate) struct Interrupts {
    pressed: Signal,
    terminated: Signal,
    hung_up: Signal,
}

impl Interrupts {
    /// Starts to catch these signals; one that arrives is kept for [`Self::during`].
    pub(crate) fn listen() -> Result<Self, Failure> {
        let failed = |source| Failure::System { action: "listen for signals", source };
        Ok(Self {
            pressed: signal(SignalKind::interrupt()).map_err(failed)?,
            terminated: signal(SignalKind::terminate()).map_err(failed)?,
            hung_up: signal(SignalKind::hangup()).map_err(failed)?,
        })
    }

    /// Runs `work` until it is done or interrupted.
    pub(crate) async fn during<T>(
        mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            result = work => result,
            _ = self.pressed.recv() => Err(Failure::Interrupted),
            _ = self.terminated.recv() => Err(Failure::Interrupted),
            _ = self.hung_up.recv() => Err(Failure::Interrupted),
        }
    }
}

/// Runs `work` until it is done or interrupted.
pub(crate) async fn interruptible<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    Interrupts::listen()?.during(work).await
}

/// Checks that the endpoint accepts connections: ZeroMQ itself would retry until the timeout.
async fn probe(endpoint: &str) -> Result<(), Failure> {
    let looked = async {
        if let Some(path) = endpoint.strip_prefix("ipc://") {
            tokio::net::UnixStream::connect(path).await.map(drop)
        } else if let Some(address) = endpoint.strip_prefix("tcp://") {
            tokio::net::TcpStream::connect(address).await.map(drop)
        } else {
            Ok(())
        }
    };
    match tokio::time::timeout(CONNECT_TIMEOUT, looked).await {
        Ok(Ok(())) | Err(_) => Ok(()),
        Ok(Err(source)) => Err(Failure::NoDaemon { endpoint: endpoint.to_owned(), source }),
    }
}

/// Returns the address of the running daemon's HTTP listener; the configured one if none is found.
pub(crate) fn http_address(config: &Config) -> String {
    let running = RunningDaemon::find(config);
    let address = running.as_ref().and_then(RunningDaemon::http_address).map(str::to_owned);
    address.unwrap_or_else(|| config.http.listen.to_string())
}

/// Whether an address with a port is a loopback address.
fn is_here(address: &str) -> bool {
    match address.parse::<SocketAddr>() {
        Ok(address) => address.ip().is_loopback(),
        Err(_) => {
            address.strip_prefix("localhost:").is_some_and(|port| port.parse::<u16>().is_ok())
        }
    }
}

fn is_token(token: &Secret) -> bool {
    let digits = token.expose().strip_prefix("oub_").unwrap_or_default();
    digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns a variable as text.
fn text_of(environment: &Environment, name: &str) -> Option<String> {
    environment.get(name).and_then(|value| value.to_str()).map(str::to_owned)
}

/// Returns the token that the daemon wrote at its first start, if this user can read it.
fn token_in(config: &Config) -> Option<FoundToken> {
    read_token(&config.root.data_dir.join(crate::daemon::TOKEN_FILE)).ok()
}

fn read_token(path: &Path) -> std::io::Result<FoundToken> {
    let text = std::fs::read_to_string(path)?;
    let token = Secret::new(text.trim().to_owned());
    Ok(FoundToken { token, origin: format!("`{}`", path.display()) })
}

/// Returns the conventional event endpoint: one port above the call endpoint, or the socket beside
/// it.
fn sibling(endpoint: &str) -> Option<String> {
    if let Some(path) = endpoint.strip_prefix("ipc://") {
        return path.strip_suffix("hoot.sock").map(|dir| format!("ipc://{dir}iopub.sock"));
    }
    let (host, port) = endpoint.rsplit_once(':')?;
    let port = port.parse::<u16>().ok()?.checked_add(1)?;
    Some(format!("{host}:{port}"))
}

#[cfg(test)]
mod tests {
    use ringback_client::Credentials;

    use super::{ConnectArgs, sibling};
    use crate::config::Environment;

    fn environment(dir: &std::path::Path, more: &[(&str, &str)]) -> Environment {
        let home = dir.to_str().unwrap();
        [("HOME", home)].into_iter().chain(more.iter().copied()).collect()
    }

    #[test]
    fn events_are_one_port_above_the_calls_or_beside_them() {
        assert_eq!(sibling("tcp://127.0.0.1:5580").as_deref(), Some("tcp://127.0.0.1:5581"));
        assert_eq!(sibling("ipc:///run/x/hoot.sock").as_deref(), Some("ipc:///run/x/iopub.sock"));
        assert_eq!(sibling("ipc:///run/x/other"), None);
        assert_eq!(sibling("tcp://host:65535"), None);
    }

    #[test]
    fn the_flag_wins_over_the_environment_and_that_over_the_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let endpoint = |args: &ConnectArgs, more: &[(&str, &str)]| {
            args.target(&environment(dir.path(), more)).unwrap().endpoint
        };
        let none = ConnectArgs::default();
        assert_eq!(endpoint(&none, &[]), "tcp://127.0.0.1:5580");
        let variable = [("RINGBACK_DAEMON", "tcp://a:1")];
        assert_eq!(endpoint(&none, &variable), "tcp://a:1");
        let flag = ConnectArgs { daemon: Some("tcp://b:2".to_owned()), ..none };
        assert_eq!(endpoint(&flag, &variable), "tcp://b:2");
    }

    /// Rule: a token never crosses a network in the clear.
    #[test]
    fn http_is_spoken_on_this_machine_alone() {
        let dir = tempfile::tempdir().unwrap();
        let args = ConnectArgs::default();
        let address = |named| {
            let target = args.http(&environment(dir.path(), &[]), named);
            target.map(|target| target.address).map_err(|failure| failure.to_string())
        };
        assert_eq!(address(None).as_deref(), Ok("127.0.0.1:7180"));
        assert_eq!(address(Some("http://localhost:80/")).as_deref(), Ok("localhost:80"));
        assert_eq!(address(Some("[::1]:80")).as_deref(), Ok("[::1]:80"));
        for other in ["192.0.2.1:80", "example.org:80", "localhost.example.org:80", "127.0.0.1"] {
            assert!(address(Some(other)).unwrap_err().contains("tunnel"), "{other}");
        }
    }

    #[test]
    fn a_token_comes_from_the_flag_the_environment_or_the_data_directory() {
        let dir = tempfile::tempdir().unwrap();
        let data_dir = dir.path().join(".local/share/ringback");
        std::fs::create_dir_all(&data_dir).unwrap();
        let token = |args: &ConnectArgs, more: &[(&str, &str)]| match args
            .target(&environment(dir.path(), more))
            .unwrap()
            .credentials
        {
            Credentials::Token(token) => Some(token.expose().to_owned()),
            Credentials::None | Credentials::Curve { .. } => None,
        };
        let none = ConnectArgs::default();
        assert_eq!(token(&none, &[]), None);
        std::fs::write(data_dir.join("token"), "first\n").unwrap();
        assert_eq!(token(&none, &[]).as_deref(), Some("first"));
        let variable = [("RINGBACK_TOKEN", "second")];
        assert_eq!(token(&none, &variable).as_deref(), Some("second"));
        let path = dir.path().join("third");
        std::fs::write(&path, "third").unwrap();
        let flag = ConnectArgs { token_file: Some(path), ..none };
        assert_eq!(token(&flag, &variable).as_deref(), Some("third"));
    }
}
