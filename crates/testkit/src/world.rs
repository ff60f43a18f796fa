//! A broker in a temporary directory, with the edges that a test asks for.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_broker::{Broker, Clock, Config, Entropy};
use ringback_proto::secret::Secret;
use tempfile::TempDir;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::config::broker_config;
use crate::wait::{wait_for, within};

/// The usual grace of running jobs at a stop: tests do not wait for the long ones they started.
pub const GRACE: Duration = Duration::from_millis(50);

/// Where a simulated wall clock starts.
const UNIX_BASE_MS: u64 = 1_700_000_000_000;

/// The directory of a world.
#[derive(Debug)]
pub enum Root {
    /// Removed with the world.
    Own(TempDir),
    /// One of the caller's.
    Given(Utf8PathBuf),
}

impl Root {
    /// Returns its path.
    ///
    /// # Panics
    /// If it is not UTF-8.
    #[must_use]
    pub fn path(&self) -> &Utf8Path {
        match self {
            Self::Own(dir) => Utf8Path::from_path(dir.path()).expect("a path in UTF-8"),
            Self::Given(path) => path,
        }
    }
}

/// A world before it starts: the configuration of its broker, and its edges.
#[derive(Debug)]
#[must_use = "it does nothing until it is started"]
pub struct Setup {
    pub(crate) config: Config,
    root: Root,
    has_simulated_clock: bool,
    #[cfg(feature = "hoot")]
    pub(crate) hoot: Option<ringback_edge_hoot::Config>,
    #[cfg(feature = "web")]
    pub(crate) web: crate::web::Web,
    #[cfg(feature = "relay")]
    pub(crate) relay: Option<std::sync::Arc<crate::relay::RelayProbe>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self::new()
    }
}

impl Setup {
    /// A broker without edges, in a new directory.
    ///
    /// # Panics
    /// If there is no room for a directory.
    pub fn new() -> Self {
        Self::of(Root::Own(tempfile::tempdir().expect("a temporary directory")))
    }

    /// The same in the caller's directory.
    pub fn in_dir(root: &Utf8Path) -> Self {
        Self::of(Root::Given(root.to_owned()))
    }

    /// The same in the directory of a world that was stopped.
    pub fn of(root: Root) -> Self {
        Self {
            config: broker_config(root.path()),
            root,
            has_simulated_clock: false,
            #[cfg(feature = "hoot")]
            hoot: None,
            #[cfg(feature = "web")]
            web: crate::web::Web::default(),
            #[cfg(feature = "relay")]
            relay: None,
        }
    }

    /// Changes the broker's configuration.
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    /// Lets the wall clock move with tokio's clock, which tests can move.
    pub const fn simulated_clock(mut self) -> Self {
        self.has_simulated_clock = true;
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(self) -> World {
        World::start_of(self, None).await
    }

    fn clock(&self) -> Clock {
        if self.has_simulated_clock { Clock::simulated(UNIX_BASE_MS) } else { Clock::system() }
    }

    /// Whether strangers can connect, so that tests need a token.
    const fn has_network(&self) -> bool {
        #[cfg(feature = "hoot")]
        if self.hoot.is_some() {
            return true;
        }
        #[cfg(feature = "web")]
        if self.web.is_wanted() {
            return true;
        }
        false
    }
}

/// What serves the edges of a world.
#[derive(Debug, Default)]
pub(crate) struct EdgeTasks {
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: JoinSet<()>,
}

/// A broker and its edges.
#[derive(Debug)]
#[must_use = "dropping it ends it"]
pub struct World {
    /// The broker itself.
    pub broker: Broker,
    pub(crate) setup: Setup,
    token: Option<Secret>,
    serving: EdgeTasks,
    #[cfg(feature = "web")]
    pub(crate) web: crate::web::WebEdges,
}

impl World {
    /// Starts a broker without edges.
    pub async fn start() -> Self {
        Setup::new().start().await
    }

    async fn start_of(setup: Setup, token: Option<Secret>) -> Self {
        // The edges note where they listen.
        #[cfg(any(feature = "hoot", feature = "web"))]
        let mut setup = setup;
        #[cfg(feature = "web")]
        let listener = crate::web::bind(&mut setup).await;
        let config = setup.config.clone();
        let broker = Broker::start(config, setup.clock(), Entropy::system()).await;
        let broker = broker.expect("the broker starts");
        let token = if setup.has_network() {
            token.or(broker.first_token().await.expect("the first token is stored"))
        } else {
            None
        };
        #[cfg_attr(
            not(any(feature = "hoot", feature = "web")),
            expect(unused_mut, reason = "no edges")
        )]
        let mut serving = EdgeTasks::default();
        #[cfg(feature = "hoot")]
        crate::hoot::serve(&mut setup, &broker, &mut serving).await;
        #[cfg(feature = "web")]
        let web = crate::web::serve(&setup, listener, &broker, &mut serving);
        Self {
            broker,
            setup,
            token,
            serving,
            #[cfg(feature = "web")]
            web,
        }
    }

    /// Returns its directory.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.setup.root.path().as_std_path()
    }

    /// Returns the admin token.
    ///
    /// # Panics
    /// If no edge needs one, or if the directory is not new.
    #[must_use]
    pub fn admin_token(&self) -> &Secret {
        self.token.as_ref().expect("an edge with tokens, in a new directory")
    }

    /// Returns the first token of a new directory.
    #[must_use]
    pub const fn first_token(&self) -> Option<&Secret> {
        self.token.as_ref()
    }

    /// Returns what stops the edges.
    #[must_use]
    pub const fn stopping(&self) -> &CancellationToken {
        &self.serving.stop
    }

    /// Waits until the edges have stopped.
    ///
    /// # Panics
    /// If one hangs or panics.
    pub async fn edges_ended(&mut self) {
        self.serving.ended().await;
    }

    /// Stops, checks that nothing was left behind, and starts again on the same directory, with the
    /// same configuration. A world with the relay edge cannot: that edge has stopped for good.
    pub async fn restart(self, grace: Duration) -> Self {
        self.restart_with(grace, |_| ()).await
    }

    /// Does the same with another configuration.
    pub async fn restart_with(self, grace: Duration, change: impl FnOnce(&mut Config)) -> Self {
        let token = self.token.clone();
        let setup = self.halt(grace).await.config(change);
        Self::start_of(setup, token).await
    }

    /// Stops. Its files are left until the returned directory is dropped.
    ///
    /// # Panics
    /// If an edge or the broker hangs, or if anything still uses the data directory afterwards: a
    /// call that did not end, a task that was not joined. With the relay edge that is not checked.
    pub async fn stop(self) -> Root {
        self.halt(GRACE).await.root
    }

    async fn halt(self, grace: Duration) -> Setup {
        let Self {
            broker,
            setup,
            mut serving,
            token: _,
            #[cfg(feature = "mcp")]
            web,
            #[cfg(all(feature = "web", not(feature = "mcp")))]
                web: _,
        } = self;
        serving.stop.cancel();
        serving.ended().await;
        #[cfg(feature = "relay")]
        if let Some(relay) = &setup.relay {
            within("the end of the relay", relay.edge.stop()).await;
        }
        within("the end of the broker", broker.stop(grace)).await;
        drop(broker);
        // The MCP edge holds the broker.
        #[cfg(feature = "mcp")]
        drop(web);
        #[cfg(feature = "relay")]
        if setup.relay.is_some() {
            // Tests keep the streams of callers, which hold the broker.
            return setup;
        }
        let lock = setup.config.data_dir.join("lock");
        wait_for("nothing uses the data directory any more", async || {
            File::open(&lock).is_ok_and(|file| file.try_lock().is_ok())
        })
        .await;
        setup
    }
}

impl EdgeTasks {
    async fn ended(&mut self) {
        while let Some(ended) = within("the end of the edges", self.tasks.join_next()).await {
            ended.expect("no edge panics");
        }
    }
}
