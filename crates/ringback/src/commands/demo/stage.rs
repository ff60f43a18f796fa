//! The daemon of the demonstration, a client of it and a listener to its events.

use std::time::Duration;

use ringback_client::{Client, Config as ClientConfig, Credentials, Notice, Subscriber};
use ringback_proto::Event;
use ringback_proto::event::SequencedEvent;
use ringback_proto::request::JobSleepRequest;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::JobSleep;
use tokio::sync::Mutex;

use crate::commands::passing::PassingDaemon;
use crate::daemon::Listening;
use crate::failure::Failure;

/// Far more than any step takes; reached only when something is wrong.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a new subscription may take to reach the daemon before it is tried again.
const WARM_UP: Duration = Duration::from_millis(100);
const WARM_UPS_MAX: usize = 50;

/// Everything the steps use.
pub(super) struct Stage {
    daemon: PassingDaemon,
    pub(super) client: Client,
    heard: Mutex<Heard>,
}

/// What was heard, and what is still to come.
struct Heard {
    subscriber: Subscriber,
    events: Vec<SequencedEvent>,
}

impl Stage {
    pub(super) async fn open() -> Result<Self, Failure> {
        let daemon = PassingDaemon::start("demo", |_| ()).await?;
        let listening = daemon.listening();
        let credentials = Credentials::Token(daemon.token()?);
        let client =
            Client::connect(ClientConfig::new(listening.hoot.clone(), credentials.clone())).await?;
        let topics = Event::TOPICS.map(str::to_owned).to_vec();
        let subscriber = Subscriber::connect(&listening.iopub, &credentials, topics).await?;
        let heard = Mutex::new(Heard { subscriber, events: Vec::new() });
        let stage = Self { daemon, client, heard };
        stage.warm_up().await?;
        Ok(stage)
    }

    pub(super) const fn listening(&self) -> &Listening {
        self.daemon.listening()
    }

    /// Another client of the same daemon, with another token.
    pub(super) async fn client_with(&self, token: Secret) -> Result<Client, Failure> {
        let endpoint = self.listening().hoot.clone();
        Ok(Client::connect(ClientConfig::new(endpoint, Credentials::Token(token))).await?)
    }

    /// Listens until an event is there that `wanted` recognises, and returns all heard so far.
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
        tokio::time::timeout(PATIENCE, listening).await.unwrap_or_else(|_| {
            Err(Failure::Wrong("an event that should have come did not".to_owned()))
        })
    }

    /// Stops the daemon and removes its directory.
    pub(super) async fn close(self) -> Result<(), Failure> {
        self.client.close().await;
        self.daemon.close().await
    }

    /// A subscription takes a moment to reach the daemon; something small happens until it is heard.
    async fn warm_up(&self) -> Result<(), Failure> {
        let mut heard = self.heard.lock().await;
        for _ in 0..WARM_UPS_MAX {
            self.client.call::<JobSleep>(JobSleepRequest { milliseconds: 0 }).await?;
            if let Ok(event) = tokio::time::timeout(WARM_UP, heard.next()).await {
                return event;
            }
        }
        Err(Failure::Wrong("no event arrives from the daemon".to_owned()))
    }
}

impl Heard {
    async fn next(&mut self) -> Result<(), Failure> {
        match self.subscriber.next().await? {
            Notice::Event(event) => self.events.push(event),
            Notice::Missed(gap) => {
                let text = format!("events {:?} of {} did not arrive", gap.missed, gap.topic);
                return Err(Failure::Wrong(text));
            }
            Notice::Other { .. } => {}
        }
        Ok(())
    }
}
