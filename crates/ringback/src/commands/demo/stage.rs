//! The daemon of the demonstration, a client and a subscriber.

use std::time::Duration;

use ringback_client::{Client, Config as ClientConfig, Credentials, Notice, Subscriber};
use ringback_proto::Event;
use ringback_proto::event::SequencedEvent;
use ringback_proto::request::JobSleepRequest;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::JobSleep;
use tokio::sync::Mutex;

use crate::commands::temporary_daemon::TemporaryDaemon;
use crate::config::{Sandbox, SandboxBackend};
use crate::confinement;
use crate::daemon::DaemonAddresses;
use crate::failure::Failure;

/// Far longer than any step takes; reached only when something is wrong.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a new subscription may take to reach the daemon before it is tried again.
const WARM_UP: Duration = Duration::from_millis(100);
const WARM_UPS_MAX: usize = 50;

/// Everything the steps use.
pub(super) struct Stage {
    daemon: TemporaryDaemon,
    pub(super) client: Client,
    heard: Mutex<EventLog>,
    /// Why agents run unconfined, if they do.
    unconfined: Option<String>,
}

/// The events so far, and the subscriber for more.
struct EventLog {
    subscriber: Subscriber,
    events: Vec<SequencedEvent>,
}

impl Stage {
    pub(super) async fn open() -> Result<Self, Failure> {
        let missing = confinement::probe(&Sandbox::default()).await?.first_missing();
        let unconfined = missing.map(|missing| missing.to_string());
        let daemon = TemporaryDaemon::start("demo", |config| {
            if unconfined.is_some() {
                config.sandbox.backend = SandboxBackend::None;
            }
        });
        let daemon = daemon.await?;
        let listening = daemon.listening();
        let credentials = Credentials::Token(daemon.token()?);
        let client =
            Client::connect(ClientConfig::new(listening.hoot.clone(), credentials.clone())).await?;
        let topics = Event::TOPICS.map(str::to_owned).to_vec();
        let subscriber = Subscriber::connect(&listening.iopub, &credentials, topics).await?;
        let heard = Mutex::new(EventLog { subscriber, events: Vec::new() });
        let stage = Self { daemon, client, heard, unconfined };
        stage.warm_up().await?;
        Ok(stage)
    }

    /// Describes in a sentence how agents are confined.
    pub(super) fn confinement(&self) -> String {
        match &self.unconfined {
            None => {
                "The agent runs in a sandbox: it sees its workspace, its tools, and nothing else of this \
                machine."
                    .to_owned()
            }
            Some(why) => format!(
                "The agent runs UNCONFINED in this demonstration: {why}. A daemon would refuse to start \
                 it, unless `sandbox.backend = \"none\"` is set."
            ),
        }
    }

    pub(super) const fn listening(&self) -> &DaemonAddresses {
        self.daemon.listening()
    }

    /// Connects another client to the same daemon, with another token.
    pub(super) async fn client_with(&self, token: Secret) -> Result<Client, Failure> {
        let endpoint = self.listening().hoot.clone();
        Ok(Client::connect(ClientConfig::new(endpoint, Credentials::Token(token))).await?)
    }

    /// Waits for an event that matches `wanted`, and returns all events so far.
    pub(super) async fn hear(
        &self,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Vec<SequencedEvent>, Failure> {
        let mut heard = self.heard.lock().await;
        let listening = async {
            while !heard.events.iter().any(|heard| wanted(&heard.event)) {
                heard.next().await?;
            }
            Ok(heard.events.clone())
        };
        tokio::time::timeout(PATIENCE, listening)
            .await
            .unwrap_or_else(|_| Err(Failure::Wrong("an expected event did not arrive".to_owned())))
    }

    /// Stops the daemon and removes its directory.
    pub(super) async fn close(self) -> Result<(), Failure> {
        self.client.close().await;
        self.daemon.close().await
    }

    /// Runs small jobs until an event arrives: a subscription takes a moment to reach the daemon.
    async fn warm_up(&self) -> Result<(), Failure> {
        let mut heard = self.heard.lock().await;
        for _ in 0..WARM_UPS_MAX {
            self.client.call::<JobSleep>(JobSleepRequest { milliseconds: 0 }).await?;
            if let Ok(event) = tokio::time::timeout(WARM_UP, heard.next()).await {
                return event;
            }
        }
        Err(Failure::Wrong("no event arrived from the daemon".to_owned()))
    }
}

impl EventLog {
    async fn next(&mut self) -> Result<(), Failure> {
        match self.subscriber.next().await? {
            Notice::Event(event) => self.events.push(event),
            Notice::Missed(gap) => {
                let text = format!("events {:?} of {} did not arrive", gap.missed, gap.topic);
                return Err(Failure::Wrong(text));
            }
            Notice::Data(_) | Notice::Other { .. } => {}
        }
        Ok(())
    }
}
