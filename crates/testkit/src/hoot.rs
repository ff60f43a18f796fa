//! The HOOT01 edge in a world, and its clients.

use std::time::Duration;

use ringback_broker::Broker;
use ringback_client::{Client, Config as ClientConfig, ConnectError, Credentials, Subscriber};
use ringback_edge_hoot::{Clock, Config, HootEdge, ListenAddresses};
use ringback_proto::principal::Level;
use ringback_proto::request::{TokenCreateRequest, TokenCreatedResponse};
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::TokenCreate;

use crate::world::{EdgeTasks, Setup, World};

/// More than any test connects.
const PEERS_MAX: usize = 1 << 16;

/// The usual silence after which a worker is gone.
pub const PEER_IDLE: Duration = Duration::from_secs(30);

impl Setup {
    /// Adds the HOOT01 edge, on ports of its own. They stay the same after a restart.
    pub fn hoot(self) -> Self {
        self.hoot_with(|_| ())
    }

    /// Adds the HOOT01 edge with another configuration.
    pub fn hoot_with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        let any_port = || "tcp://127.0.0.1:0".to_owned();
        let mut config = Config {
            tcp: Some(ListenAddresses { calls: any_port(), events: any_port() }),
            ipc: None,
            curve_secret_key: None,
            open: false,
            message_bytes_max: 64 << 20,
            peer_backlog_bytes_max: 80 << 20,
            peers_max: PEERS_MAX,
            peer_idle: PEER_IDLE,
            clock: Clock::default(),
            set_trace_parent: |_, _| {},
        };
        change(&mut config);
        self.hoot = Some(config);
        self
    }
}

pub(crate) async fn serve(setup: &mut Setup, broker: &Broker, serving: &mut EdgeTasks) {
    let Some(config) = &mut setup.hoot else { return };
    let edge = HootEdge::bind(config.clone(), broker.clone()).await.expect("the edge binds");
    let endpoints = edge.endpoints().clone();
    config.tcp = Some(ListenAddresses {
        calls: endpoints.calls.expect("a TCP endpoint"),
        events: endpoints.events.expect("a TCP endpoint"),
    });
    serving.tasks.spawn(edge.serve(serving.stop.clone()));
}

impl World {
    /// Starts a broker with the HOOT01 edge.
    pub async fn with_hoot() -> Self {
        Setup::new().hoot().start().await
    }

    /// Moves the clock by which the HOOT01 edge knows silent workers.
    pub fn pass_for_workers(&self, time: Duration) {
        self.hoot().clock.advance(time);
    }

    fn hoot(&self) -> &Config {
        self.setup.hoot.as_ref().expect("the HOOT01 edge")
    }

    fn listen(&self) -> &ListenAddresses {
        self.hoot().tcp.as_ref().expect("a TCP endpoint")
    }

    /// Returns the address for calls.
    #[must_use]
    pub fn calls(&self) -> &str {
        &self.listen().calls
    }

    /// Returns the address for events.
    #[must_use]
    pub fn events(&self) -> &str {
        &self.listen().events
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
        self.client(self.admin_token()).await
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
    pub fn client_config(&self, token: &Secret) -> ClientConfig {
        let credentials =
            if self.hoot().open { Credentials::None } else { Credentials::Token(token.clone()) };
        ClientConfig::new(self.calls(), credentials)
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
    pub async fn new_token(&self, scope: Level, expires_in: Option<u64>) -> TokenCreatedResponse {
        let request =
            TokenCreateRequest { name: "test".to_owned(), scope, projects: None, expires_in };
        self.admin().await.call::<TokenCreate>(request).await.expect("a new token")
    }
}
