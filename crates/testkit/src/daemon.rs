//! A daemon inside the test's own process.

use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_broker::studio::{NoStudio, StudioTools};
use ringback_broker::{Broker, Clock, ConfigView, Entropy};
use ringback_client::{Client, Config, ConnectError, Credentials, Subscriber};
use ringback_edge_hoot::{HootEdge, Listen};
use ringback_proto::principal::Level;
use ringback_proto::request::{TokenCreateRequest, TokenCreatedResponse};
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::TokenCreate;
use ringback_proto::value::Value;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::wait::{LIMIT, wait_for, within};

/// The grace of running jobs at a stop: tests do not wait for the long ones they started.
const JOBS_GRACE: Duration = Duration::from_millis(50);

/// More than any test connects.
const PEERS_MAX: usize = 1 << 16;

/// Deviations from the usual daemon.
#[derive(Debug, Clone)]
pub struct Options {
    /// Whether it requires no tokens.
    pub open: bool,
    /// Directories whose files callers may name.
    pub file_roots: Vec<Utf8PathBuf>,
    /// The most concurrent calls of a principal.
    pub calls_per_principal_max: usize,
    /// The most concurrently running jobs.
    pub jobs_running_max: usize,
    /// The most jobs that run or wait.
    pub jobs_live_max: usize,
    /// The number of events kept for readers.
    pub events_kept_max: usize,
    /// The largest message.
    pub message_bytes_max: usize,
    /// The most bytes that may wait for a peer that does not read.
    pub peer_backlog_bytes_max: usize,
    /// How long a silent peer is kept.
    pub peer_idle: Duration,
    /// The music tools; none, unless a test brings them.
    pub studio: Arc<dyn StudioTools>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            open: false,
            file_roots: Vec::new(),
            calls_per_principal_max: 2000,
            jobs_running_max: 2000,
            jobs_live_max: 10_000,
            events_kept_max: 10_000,
            message_bytes_max: 64 << 20,
            peer_backlog_bytes_max: 80 << 20,
            peer_idle: Duration::from_secs(30),
            studio: Arc::new(NoStudio),
        }
    }
}

/// A broker and its HOOT01 edge. Stop it with [`Daemon::stop`], which checks that nothing was left
/// behind.
#[derive(Debug)]
#[must_use = "dropping a daemon ends it"]
pub struct Daemon {
    options: Options,
    data_dir: Utf8PathBuf,
    /// Its address, the same after a restart.
    listen: Listen,
    admin_token: Secret,
    broker: Broker,
    stop: CancellationToken,
    serving: JoinSet<()>,
    /// Removed with the daemon; `None` for a directory of the caller.
    dir: Option<TempDir>,
}

impl Daemon {
    /// Starts the usual daemon, in a new directory.
    pub async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    /// Starts a daemon in a new directory.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_with(options: Options) -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let root = Utf8Path::from_path(dir.path()).expect("a path in UTF-8").join("data");
        let (daemon, token) = Self::start_in(&root, options).await;
        let admin_token = token.expect("a new directory has a first token");
        Self { admin_token, dir: Some(dir), ..daemon }
    }

    /// Starts a daemon on the caller's directory, and returns the first token if the directory is
    /// new.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start_in(data_dir: &Utf8Path, options: Options) -> (Self, Option<Secret>) {
        let broker =
            Broker::start(broker_config(data_dir, &options), Clock::system(), Entropy::system())
                .await
                .expect("the broker starts");
        let token = broker.first_token().await.expect("the first token is stored");
        let any_port = || "tcp://127.0.0.1:0".to_owned();
        let listen = Listen { calls: any_port(), events: any_port() };
        let (listen, stop, serving) = serve(&options, listen, &broker).await;
        let daemon = Self {
            options,
            data_dir: data_dir.to_owned(),
            listen,
            admin_token: Secret::new(String::new()),
            broker,
            stop,
            serving,
            dir: None,
        };
        (daemon, token)
    }

    /// Returns the address for calls.
    #[must_use]
    pub fn calls(&self) -> &str {
        &self.listen.calls
    }

    /// Returns the address for events.
    #[must_use]
    pub fn events(&self) -> &str {
        &self.listen.events
    }

    /// Returns the admin token.
    #[must_use]
    pub const fn admin_token(&self) -> &Secret {
        &self.admin_token
    }

    /// Returns the broker itself, to look behind the edge.
    #[must_use]
    pub const fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Returns a client with a token.
    ///
    /// # Panics
    /// If it cannot connect.
    pub async fn client(&self, token: &Secret) -> Client {
        self.try_client(token).await.expect("the daemon accepts the client")
    }

    /// Returns a client with the admin token.
    pub async fn admin(&self) -> Client {
        self.client(&self.admin_token).await
    }

    /// Returns a client with a token that may be refused.
    ///
    /// # Errors
    /// Why it did not connect.
    pub async fn try_client(&self, token: &Secret) -> Result<Client, ConnectError> {
        Client::connect(self.client_config(token)).await
    }

    /// Returns the configuration of a client, to be changed.
    #[must_use]
    pub fn client_config(&self, token: &Secret) -> Config {
        let credentials =
            if self.options.open { Credentials::None } else { Credentials::Token(token.clone()) };
        Config::new(self.calls(), credentials)
    }

    /// Returns a subscriber to topics that start with one of `prefixes`.
    ///
    /// # Panics
    /// If it cannot connect.
    pub async fn subscriber(&self, token: &Secret, prefixes: &[&str]) -> Subscriber {
        let prefixes = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
        Subscriber::connect(self.events(), &Credentials::Token(token.clone()), prefixes)
            .await
            .expect("the daemon accepts the subscriber")
    }

    /// Makes a new token.
    ///
    /// # Panics
    /// If it cannot be made.
    pub async fn token(&self, scope: Level, expires_in: Option<u64>) -> TokenCreatedResponse {
        let request =
            TokenCreateRequest { name: "test".to_owned(), scope, projects: None, expires_in };
        self.admin().await.call::<TokenCreate>(request).await.expect("a new token")
    }

    /// Stops, checks that nothing was left behind, and starts again on the same directory and
    /// ports.
    pub async fn restart(self) -> Self {
        let Self { options, data_dir, listen, admin_token, broker, stop, serving, dir } = self;
        stop_all(&data_dir, broker, &stop, serving).await;
        let broker =
            Broker::start(broker_config(&data_dir, &options), Clock::system(), Entropy::system())
                .await
                .expect("the broker starts again");
        let (listen, stop, serving) = serve(&options, listen, &broker).await;
        Self { options, data_dir, listen, admin_token, broker, stop, serving, dir }
    }

    /// Stops.
    ///
    /// # Panics
    /// If the edge or the broker hangs, or if anything still uses the data directory afterwards: a
    /// call that did not end, a task that was not joined.
    pub async fn stop(self) {
        stop_all(&self.data_dir, self.broker, &self.stop, self.serving).await;
    }
}

/// The configuration for tools: empty.
#[derive(Debug)]
struct NoConfig;

impl ConfigView for NoConfig {
    fn get(&self, section: Option<&str>, _: Option<&str>) -> Option<Value> {
        section.is_none().then(|| Value::Map(Vec::new()))
    }
}

fn broker_config(data_dir: &Utf8Path, options: &Options) -> ringback_broker::Config {
    ringback_broker::Config {
        data_dir: data_dir.to_owned(),
        file_roots: options.file_roots.clone(),
        version: "test".to_owned(),
        view: Arc::new(NoConfig),
        calls_per_principal_max: options.calls_per_principal_max,
        jobs_running_max: options.jobs_running_max,
        jobs_live_max: options.jobs_live_max,
        jobs_per_principal_max: options.jobs_live_max,
        events_kept_max: options.events_kept_max,
        uploads_open_max: 64,
        upload_bytes_max: 4 << 30,
        call_ms_max: 3_600_000,
        lines: ringback_broker::LineSettings::default(),
        studio: Arc::clone(&options.studio),
        sessions: ringback_broker::SessionSettings::in_dir(data_dir.join("run")),
        containers: ringback_broker::ContainerSettings::default(),
    }
}

async fn serve(
    options: &Options,
    listen: Listen,
    broker: &Broker,
) -> (Listen, CancellationToken, JoinSet<()>) {
    let config = ringback_edge_hoot::Config {
        tcp: Some(listen),
        ipc: None,
        curve_secret_key: None,
        open: options.open,
        message_bytes_max: options.message_bytes_max,
        peer_backlog_bytes_max: options.peer_backlog_bytes_max,
        peers_max: PEERS_MAX,
        peer_idle: options.peer_idle,
        set_trace_parent: |_, _| {},
    };
    let edge = HootEdge::bind(config, broker.clone()).await.expect("the edge binds");
    let endpoints = edge.endpoints().clone();
    let listen = Listen {
        calls: endpoints.calls.expect("a TCP endpoint"),
        events: endpoints.events.expect("a TCP endpoint"),
    };
    let stop = CancellationToken::new();
    let mut serving = JoinSet::new();
    serving.spawn(edge.serve(stop.clone()));
    (listen, stop, serving)
}

async fn stop_all(
    data_dir: &Utf8Path,
    broker: Broker,
    stop: &CancellationToken,
    mut serving: JoinSet<()>,
) {
    stop.cancel();
    let ended = within("the end of the edge", serving.join_next()).await;
    ended.expect("the edge was served").expect("the edge did not panic");
    within("the end of the broker", broker.stop(JOBS_GRACE)).await;
    drop(broker);
    let lock = data_dir.join("lock");
    wait_for("nothing uses the data directory any more", LIMIT, async || {
        File::open(&lock).is_ok_and(|file| file.try_lock().is_ok())
    })
    .await;
}
