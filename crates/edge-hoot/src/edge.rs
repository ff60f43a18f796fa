//! Binding the sockets, and the thread they live on.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use ringback_broker::Broker;
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::iopub::IoPub;
use crate::lobby::Lobby;
use crate::router::RouterLoop;
use crate::transport::{Door, Publisher, Router, SocketLimits, TransportError};
use crate::views::Views;

/// Why the edge did not start.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// A socket cannot be bound.
    #[error("cannot listen on `{endpoint}` for HOOT01; is another daemon running?")]
    Bind {
        /// The address.
        endpoint: String,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The CURVE secret key is invalid.
    #[error("the CURVE secret key is not 40 characters of Z85")]
    CurveKey,
    /// The thread of the sockets cannot be started.
    #[error("cannot start the thread that owns the HOOT01 sockets")]
    Thread(#[source] std::io::Error),
}

/// Where the edge listens.
#[derive(Debug, Clone, Default)]
pub struct Endpoints {
    /// Calls on TCP.
    pub calls: Option<String>,
    /// Events on TCP.
    pub events: Option<String>,
    /// The key that identifies the daemon to CURVE peers (Z85).
    pub server_key: Option<String>,
    /// Calls on a socket file.
    pub calls_ipc: Option<String>,
    /// Events on a socket file.
    pub events_ipc: Option<String>,
}

/// The bound edge. It serves from the moment it is bound.
#[derive(Debug)]
#[must_use]
pub struct HootEdge {
    endpoints: Endpoints,
    stop: CancellationToken,
    abort: CancellationToken,
    ended: oneshot::Receiver<()>,
}

impl HootEdge {
    /// Binds all sockets or none. Calls run on the current runtime; the sockets have their own
    /// thread.
    ///
    /// # Errors
    /// The socket that cannot be bound.
    pub async fn bind(config: Config, broker: Broker) -> Result<Self, BindError> {
        let (stop, abort) = (CancellationToken::new(), CancellationToken::new());
        let (bound, endpoints) = oneshot::channel();
        let (end, ended) = oneshot::channel();
        let workers = Handle::current();
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .thread_name("hoot-blocking")
            .build()
            .map_err(BindError::Thread)?;
        let (served_stop, served_abort) = (stop.clone(), abort.clone());
        thread::Builder::new()
            .name("hoot-io".to_owned())
            .spawn(move || {
                runtime.block_on(async move {
                    match Sockets::bind(&config, &broker).await {
                        Err(error) => drop(bound.send(Err(error))),
                        Ok((sockets, endpoints)) => {
                            drop(bound.send(Ok(endpoints)));
                            sockets.serve(config, broker, workers, served_stop, served_abort).await;
                        }
                    }
                });
                if end.send(()).is_err() {
                    tracing::debug!("the HOOT01 edge ended with no one waiting for it");
                }
            })
            .map_err(BindError::Thread)?;
        let lost = |_| {
            BindError::Thread(std::io::Error::other("the thread ended before it bound the sockets"))
        };
        let endpoints = endpoints.await.map_err(lost)??;
        Ok(Self { endpoints, stop, abort, ended })
    }

    /// Where it listens.
    #[must_use]
    pub const fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Serves until `stop`. Then it accepts no new request, answers the running calls, and returns.
    /// Dropping it ends them immediately.
    pub async fn serve(mut self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => self.stop.cancel(),
            ended = &mut self.ended => return drop(ended),
        }
        drop((&mut self.ended).await);
    }
}

impl Drop for HootEdge {
    fn drop(&mut self) {
        self.abort.cancel();
    }
}

struct Sockets {
    routers: Vec<(Router, Lobby)>,
    publishers: Vec<(Publisher, Lobby, Views)>,
}

/// The calls socket gets half of the connections, and each other socket has its own share: a crowd
/// on one socket does not keep peers out of another.
struct Shares {
    calls: usize,
    events: usize,
}

impl Shares {
    const fn tcp(config: &Config) -> Self {
        Self { calls: config.peers_max / 2, events: config.peers_max / 4 }
    }

    const fn ipc(config: &Config) -> Self {
        Self { calls: config.peers_max / 8, events: config.peers_max / 8 }
    }
}

impl Sockets {
    async fn bind(config: &Config, broker: &Broker) -> Result<(Self, Endpoints), BindError> {
        let mut sockets = Self { routers: Vec::new(), publishers: Vec::new() };
        let mut endpoints = Endpoints::default();
        if let Some(tcp) = &config.tcp {
            let door = tcp_door(config, broker)?;
            endpoints.server_key = door.server_key();
            let (calls, events) = sockets
                .bind_pair(config, broker, &door, &Shares::tcp(config), &tcp.calls, &tcp.events)
                .await?;
            (endpoints.calls, endpoints.events) = (Some(calls), Some(events));
        }
        if let Some(ipc) = &config.ipc {
            let calls = format!("ipc://{}", ipc.calls.display());
            let events = format!("ipc://{}", ipc.events.display());
            let (calls, events) = sockets
                .bind_pair(config, broker, &Door::Local, &Shares::ipc(config), &calls, &events)
                .await?;
            // Their directory is already private, and the daemon's umask makes no difference.
            for path in [&ipc.calls, &ipc.events] {
                std::fs::set_permissions(path, Permissions::from_mode(0o600))
                    .map_err(|error| failed(&path.display().to_string(), error.into()))?;
            }
            (endpoints.calls_ipc, endpoints.events_ipc) = (Some(calls), Some(events));
        }
        Ok((sockets, endpoints))
    }

    async fn bind_pair(
        &mut self,
        config: &Config,
        broker: &Broker,
        door: &Door,
        shares: &Shares,
        calls: &str,
        events: &str,
    ) -> Result<(String, String), BindError> {
        let limits = |peers_max| SocketLimits {
            message_bytes_max: config.message_bytes_max,
            idle: config.peer_idle,
            peers_max,
        };
        let (router, calls) = Router::bind(calls, door.clone(), limits(shares.calls))
            .await
            .map_err(|source| failed(calls, source))?;
        let views = Views::new(broker.clone(), matches!(door, Door::Local));
        let admission = views.admission();
        let (publisher, events) = Publisher::bind(events, door, limits(shares.events), admission)
            .await
            .map_err(|source| failed(events, source))?;
        let lobby = Lobby::new(router.monitor(), shares.calls);
        self.routers.push((router, lobby));
        let lobby = Lobby::new(publisher.monitor(), shares.events);
        self.publishers.push((publisher, lobby, views));
        Ok((calls, events))
    }

    async fn serve(
        self,
        config: Config,
        broker: Broker,
        workers: Handle,
        stop: CancellationToken,
        abort: CancellationToken,
    ) {
        let tasks = TaskTracker::new();
        for (publisher, lobby, views) in self.publishers {
            let iopub = IoPub { publisher, lobby, broker: broker.clone(), views };
            drop(tasks.spawn(iopub.run(stop.clone())));
        }
        for (router, lobby) in self.routers {
            let router = RouterLoop::new(router, lobby, broker.clone(), workers.clone(), &config);
            drop(tasks.spawn(router.run(stop.clone(), abort.clone())));
        }
        drop(broker);
        tasks.close();
        tasks.wait().await;
    }
}

fn tcp_door(config: &Config, broker: &Broker) -> Result<Door, BindError> {
    match &config.curve_secret_key {
        Some(key) => Door::curve(broker.clone(), key).ok_or(BindError::CurveKey),
        None if config.open => Ok(Door::Local),
        None => Ok(Door::Token(broker.clone())),
    }
}

fn failed(endpoint: &str, source: TransportError) -> BindError {
    BindError::Bind { endpoint: endpoint.to_owned(), source }
}
