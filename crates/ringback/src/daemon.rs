//! The daemon as a value: started from a checked configuration, stopped in stages. `serve` runs it
//! until a signal; `demo` runs it inside its own process.

mod garden;
pub(crate) mod settings;
mod token;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use metrics_exporter_prometheus::PrometheusHandle;
use ringback_broker::{
    Activity, Blocking, Broker, Clock, Entropy, Environment, SessionDoors, StartError,
};
use ringback_edge_hoot::{Endpoints, HootEdge};
use ringback_edge_http::{Door, HttpEdge, ReadyFlag, Router, Status};
use ringback_edge_mcp::McpEdge;
use ringback_edge_relay::RelayEdge;
use ringback_egress::{ModelDoors, NetworkConfig, NetworkDoors, SystemResolver};
use ringback_service::{
    BindError, Graces, HttpListener, Layer, OpenFiles, Shutdown, StageClosed, StageReport, Stop,
};
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use self::garden::GardenSupervisor;
use crate::config::{Config, ConfigError, DirError};

pub use token::{TOKEN_FILE, TokenFileError};

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How soon a missing data directory is noticed while nothing is written.
const DATA_DIR_PERIOD: Duration = Duration::from_millis(500);

/// The addresses and files of a daemon, as printed by `serve --json`.
#[derive(Debug, Clone, Serialize)]
pub struct DaemonAddresses {
    /// The HTTP listener.
    pub http: String,
    /// The endpoint for calls.
    pub hoot: String,
    /// The endpoint for events.
    pub iopub: String,
    /// The socket beside `hoot`, for the daemon's own user.
    pub hoot_ipc: Option<String>,
    /// The socket beside `iopub`.
    pub iopub_ipc: Option<String>,
    /// The public key that clients need, if the daemon uses CURVE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_key: Option<String>,
    /// The data directory.
    pub data_dir: PathBuf,
    /// The file with the first token, unless the daemon is open.
    pub token_file: Option<PathBuf>,
    /// The process id.
    pub pid: u32,
    /// The version.
    pub version: &'static str,
}

/// Why a daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartDaemonError {
    /// A value that turns out to be bad only at startup.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A directory cannot be used.
    #[error(transparent)]
    Dir(#[from] DirError),
    /// The data directory cannot be opened, most often because another daemon has it.
    #[error(transparent)]
    Broker(#[from] StartError),
    /// The first token cannot be created.
    #[error("cannot create the first token")]
    FirstToken(#[source] ringback_proto::Error),
    /// The first token cannot be written.
    #[error(transparent)]
    TokenFile(#[from] TokenFileError),
    /// The HTTP listener cannot be bound.
    #[error(transparent)]
    Http(#[from] BindError),
    /// The HOOT01 sockets cannot be bound.
    #[error(transparent)]
    Hoot(#[from] ringback_edge_hoot::BindError),
    /// The daemon is already being stopped.
    #[error(transparent)]
    Closed(#[from] StageClosed),
}

/// A running daemon. Dropping it aborts everything; [`Daemon::stop`] ends it in order.
#[must_use = "dropping a daemon aborts it"]
#[derive(Debug)]
pub struct Daemon {
    shutdown: Shutdown,
    ready: ReadyFlag,
    listening: DaemonAddresses,
    /// Fires when an edge ends without being stopped.
    broken: CancellationToken,
    /// Fires when the data directory is gone.
    lost: CancellationToken,
    broker: Broker,
}

impl StartDaemonError {
    /// Whether the configuration is the cause.
    #[must_use]
    pub const fn is_bad_config(&self) -> bool {
        matches!(self, Self::Config(_))
    }
}

impl Daemon {
    /// Checks whether a daemon would start with these settings; opens and binds nothing.
    ///
    /// # Errors
    /// The reason it would not start.
    pub fn check(config: &Config) -> Result<(), StartDaemonError> {
        settings::broker(config)?;
        let files = OpenFiles::current();
        settings::hoot(config, false, files)?;
        settings::http(config, files)?;
        settings::model_doors(config)?;
        Ok(())
    }

    /// Opens the data directory, binds every listener, and accepts calls.
    ///
    /// # Errors
    /// What could not be opened or bound; nothing is left running then.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing running.
    pub async fn start(
        config: &Config,
        open: bool,
        metrics: PrometheusHandle,
    ) -> Result<Self, StartDaemonError> {
        let started = Instant::now();
        let files = OpenFiles::raise();
        let (mut broker_config, hoot_config) =
            (settings::broker(config)?, settings::hoot(config, open, files)?);
        let http_config = settings::http(config, files)?;
        let doors = Doors::new(config)?;
        config.create_dirs()?;
        // First: a second daemon reports that the data directory is taken, not that a port is.
        let store = Broker::open(&broker_config)?;
        let http = HttpListener::bind(http_config).await?;
        broker_config.sessions.doors = doors.of_sessions(settings::public_url(config, &http));
        let garden = GardenSupervisor::new(config).map(Arc::new);
        if let Some(garden) = &garden {
            broker_config.garden = Arc::<GardenSupervisor>::clone(garden);
        }
        let (clock, entropy) = (Clock::system(), Entropy::system());
        let outside = Environment { store, clock, entropy, blocking: Blocking::Threads };
        let broker = Broker::start_in(broker_config, outside).await?;
        let graces = Graces::default();
        let shutdown = Shutdown::new(graces);
        own_broker(&shutdown, &broker, doors, graces.jobs)?;

        let token_file = if open { None } else { token::first(&broker, config).await? };
        let mcp = McpEdge::new(settings::mcp(config, open), broker.clone());
        let hoot = HootEdge::bind(hoot_config, broker.clone()).await?;
        let listening = listening(config, &http, &hoot, token_file);

        let (ready, broken) = (ReadyFlag::new(), CancellationToken::new());
        let readiness = Arc::new(ready.clone());
        let status = Status { version: VERSION, started, readiness, metrics };
        let door = if open { Door::Open } else { Door::Token };
        let (client_tools, stopping) =
            (settings::client_tools(config), shutdown.token(Layer::Edges));
        let lost = watch_data_dir(&shutdown, &broker)?;
        let edge = HttpEdge { broker: broker.clone(), door, status, client_tools, stopping };
        serve_http(&shutdown, http, edge.router().merge(mcp.router()))?;
        serve_mcp(&shutdown, mcp)?;
        serve_hoot(&shutdown, hoot, &broken)?;
        if let Some(garden) = garden {
            let stop = shutdown.token(Layer::Accepting);
            shutdown.stage(Layer::Edges).spawn("garden", garden.run(stop))?;
        }
        ready.set_ready();
        Ok(Self { shutdown, ready, listening, broken, lost, broker })
    }

    /// Returns its addresses.
    #[must_use]
    pub const fn listening(&self) -> &DaemonAddresses {
        &self.listening
    }

    /// Returns a token that fires when a layer has to stop.
    #[must_use]
    pub fn token(&self, layer: Layer) -> CancellationToken {
        self.shutdown.token(layer)
    }

    /// Returns whether it has anything to do, and a sign of what it did.
    #[must_use]
    pub fn activity(&self) -> Activity {
        Activity::of(&self.broker)
    }

    /// Starts a task that ends with a layer.
    ///
    /// # Errors
    /// When the daemon is already being stopped.
    pub fn spawn(
        &self,
        layer: Layer,
        name: &'static str,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Result<(), StartDaemonError> {
        Ok(self.shutdown.stage(layer).spawn(name, task)?)
    }

    /// Resolves when an edge has panicked or ended without being stopped, which is not recoverable.
    pub async fn broken(&self) -> String {
        let mut panics = self.shutdown.stage(Layer::Edges).panics();
        let panicked = tokio::select! {
            panicked = panics.wait_for(|panics| panics.n_total > 0) => panicked,
            () = self.broken.cancelled() => return "the HOOT01 sockets are lost".to_owned(),
            () = self.lost.cancelled() => {
                return format!(
                    "the data directory `{}` was deleted, moved or replaced; restore it and start again",
                    self.listening.data_dir.display()
                );
            }
        };
        match panicked.as_deref().map(|panics| panics.first.clone()) {
            Ok(Some(first)) => format!("the task `{}` panicked: {}", first.task, first.message),
            Ok(None) | Err(_) => "a task panicked".to_owned(),
        }
    }

    /// Stops in order: new connections, running calls, jobs, the store.
    ///
    /// # Cancel safety
    /// Dropping the future aborts what is left.
    pub async fn stop(self) -> Vec<StageReport> {
        self.ready.set_draining();
        self.shutdown.run().await
    }
}

fn listening(
    config: &Config,
    http: &HttpListener,
    hoot: &HootEdge,
    token_file: Option<PathBuf>,
) -> DaemonAddresses {
    let Endpoints { calls, events, calls_ipc, events_ipc, server_key } = hoot.endpoints().clone();
    DaemonAddresses {
        http: format!("{}://{}", if http.is_tls() { "https" } else { "http" }, http.local_addr()),
        hoot: calls.unwrap_or_default(),
        iopub: events.unwrap_or_default(),
        hoot_ipc: calls_ipc,
        iopub_ipc: events_ipc,
        server_key,
        data_dir: config.root.data_dir.clone(),
        token_file,
        pid: std::process::id(),
        version: VERSION,
    }
}

fn serve_http(
    shutdown: &Shutdown,
    listener: HttpListener,
    routes: Router,
) -> Result<(), StageClosed> {
    let stop = Stop {
        accepting: shutdown.token(Layer::Accepting),
        draining: shutdown.token(Layer::Edges),
    };
    shutdown.stage(Layer::Edges).spawn("http", listener.serve(routes, stop))
}

/// Ends its streams when the daemon stops accepting, and has the edges' grace for its calls.
fn serve_mcp(shutdown: &Shutdown, edge: McpEdge) -> Result<(), StageClosed> {
    let stop = shutdown.token(Layer::Accepting);
    shutdown.stage(Layer::Edges).spawn("mcp", edge.serve(stop))
}

/// Takes no new requests when the daemon stops accepting, and has the edges' grace for the rest.
fn serve_hoot(
    shutdown: &Shutdown,
    edge: HootEdge,
    broken: &CancellationToken,
) -> Result<(), StageClosed> {
    let (stop, broken) = (shutdown.token(Layer::Accepting), broken.clone());
    shutdown.stage(Layer::Edges).spawn("hoot", async move {
        edge.serve(stop.clone()).await;
        if !stop.is_cancelled() {
            broken.cancel();
        }
    })
}

/// Watches the data directory: without it, acknowledged data would be lost.
fn watch_data_dir(shutdown: &Shutdown, broker: &Broker) -> Result<CancellationToken, StageClosed> {
    let (lost, stop) = (CancellationToken::new(), shutdown.token(Layer::Accepting));
    let (broker, told) = (broker.clone(), lost.clone());
    shutdown.stage(Layer::Edges).spawn("data directory", async move {
        while stop.run_until_cancelled(tokio::time::sleep(DATA_DIR_PERIOD)).await.is_some() {
            if !broker.is_data_dir_in_place() {
                return told.cancel();
            }
        }
    })?;
    Ok(lost)
}

/// The model and network proxies of sessions.
struct Doors {
    relay: Arc<RelayEdge>,
    models: Arc<ModelDoors>,
    network: Arc<NetworkDoors>,
}

impl Doors {
    fn new(config: &Config) -> Result<Self, StartDaemonError> {
        let relay = RelayEdge::new(ringback_edge_relay::Config::default());
        let models = settings::model_doors(config)?;
        let network = NetworkDoors::new(NetworkConfig::default(), Arc::new(SystemResolver));
        let (relay, models, network) = (Arc::new(relay), Arc::new(models), Arc::new(network));
        Ok(Self { relay, models, network })
    }

    fn of_sessions(&self, url: String) -> SessionDoors {
        SessionDoors {
            relay: Some(Arc::<RelayEdge>::clone(&self.relay)),
            models: Some(Arc::<ModelDoors>::clone(&self.models)),
            network: Some(Arc::<NetworkDoors>::clone(&self.network)),
            url: Some(url),
        }
    }
}

/// Stops the broker's jobs in the jobs stage; the store stage waits until the broker has ended.
fn own_broker(
    shutdown: &Shutdown,
    broker: &Broker,
    doors: Doors,
    grace: Duration,
) -> Result<(), StageClosed> {
    let (broker, jobs_stop) = (broker.clone(), shutdown.token(Layer::Jobs));
    shutdown.stage(Layer::Store).spawn("broker", async move {
        jobs_stop.cancelled().await;
        // First: each connection is recorded in the audit, which ends with the broker.
        doors.network.stop().await;
        broker.stop(grace).await;
        doors.relay.stop().await;
        doors.models.stop().await;
    })
}
