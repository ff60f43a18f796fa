//! The network proxies of sessions.

mod door;
mod passage;
mod proxy;
mod reach;
mod refusal;

use std::any::Any;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use ringback_broker::{Broker, NetworkConnection, NetworkDoor};
use ringback_proto::ids::SessionId;
use ringback_proto::network::{HostName, NetworkPolicy};
use ringback_service::SessionSockets;
use tokio::sync::watch;

use self::door::Door;

/// The limits of every network proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Connections of one session.
    pub connections_max: usize,
    /// The timeout of a name lookup.
    pub resolve_timeout: Duration,
    /// How long a host may take to accept a connection, with all its addresses.
    pub connect_timeout: Duration,
    /// How long nothing may pass, either way, until a connection is closed; at most twice as long.
    pub idle_timeout: Duration,
    /// How long a connection may go without the head of a request.
    pub head_timeout: Duration,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            // A package manager opens about fifty.
            connections_max: 128,
            resolve_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            // Longer than servers keep a quiet stream without a keepalive.
            idle_timeout: Duration::from_secs(300),
            head_timeout: Duration::from_secs(60),
        }
    }
}

/// Records each connection once, when it has ended or was refused.
pub trait NetworkRecorder: Send + Sync + std::fmt::Debug {
    /// Records a place that a session asked for. Must not block.
    fn record(&self, session: SessionId, asked: &NetworkConnection);
}

impl NetworkRecorder for Broker {
    fn record(&self, session: SessionId, asked: &NetworkConnection) {
        self.network_asked(session, asked);
    }
}

/// A name lookup in progress.
pub type LookupFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Looks up the addresses of names.
pub trait Resolver: Send + Sync + std::fmt::Debug {
    /// Looks up a name.
    fn resolve(&self, name: &HostName) -> LookupFuture;
}

/// Looks up names as the system does.
#[derive(Debug, Clone, Copy)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, name: &HostName) -> LookupFuture {
        let name = name.clone();
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Opens network proxies. The broker owns it, so it must be stopped explicitly: the two hold each
/// other.
#[derive(Debug)]
pub struct NetworkDoors {
    config: NetworkConfig,
    resolver: Arc<dyn Resolver>,
    sockets: SessionSockets,
}

impl NetworkDoors {
    /// Creates it without open proxies.
    #[must_use]
    pub fn new(config: NetworkConfig, resolver: Arc<dyn Resolver>) -> Self {
        Self { config, resolver, sockets: SessionSockets::new("the network proxy") }
    }

    /// Closes every proxy, and waits until all its tasks have ended.
    pub async fn stop(&self) {
        self.sockets.stop().await;
    }

    /// Binds the socket of a session's network proxy and serves it until the guard is dropped. The
    /// recorder hears of its connections.
    ///
    /// # Errors
    /// When the socket cannot be bound.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn serve(
        &self,
        recorder: Arc<dyn NetworkRecorder>,
        session: SessionId,
        dir: &Utf8Path,
        policy: watch::Receiver<Arc<NetworkPolicy>>,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        let scope = self.sockets.scope()?;
        let door = Door {
            session,
            policy,
            config: self.config,
            resolver: Arc::clone(&self.resolver),
            recorder,
            scope,
        };
        Ok(Box::new(door.open(dir)?))
    }
}

impl NetworkDoor for NetworkDoors {
    /// # Panics
    /// Outside of a tokio runtime.
    fn open(
        &self,
        broker: Broker,
        session: SessionId,
        dir: &Utf8Path,
        policy: watch::Receiver<Arc<NetworkPolicy>>,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        self.serve(Arc::new(broker), session, dir, policy)
    }
}
