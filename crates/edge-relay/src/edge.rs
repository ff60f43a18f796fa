//! The edge: opens the sockets of sessions, and closes them all when it stops.

use std::any::Any;
use std::io;
use std::sync::{Mutex, PoisonError};

use camino::Utf8Path;
use ringback_broker::{Broker, RelayDoor};
use ringback_proto::ids::SessionId;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Config;
use crate::socket::Serving;

/// Opens the sockets of sessions. The broker owns it and opens a socket with each session, so it
/// must be stopped explicitly: the two hold each other.
#[derive(Debug)]
pub struct RelayEdge {
    config: Config,
    /// `None` once the edge has stopped.
    broker: Mutex<Option<Broker>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl RelayEdge {
    /// Creates an edge without sockets.
    #[must_use]
    pub fn new(config: Config, broker: Broker) -> Self {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        Self { config, broker: Mutex::new(Some(broker)), stop, tasks }
    }

    /// Closes every socket and connection, and waits until their tasks have ended.
    pub async fn stop(&self) {
        self.broker.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl RelayDoor for RelayEdge {
    /// # Panics
    /// Outside of a tokio runtime.
    fn open(&self, session: SessionId, dir: &Utf8Path) -> io::Result<Box<dyn Any + Send + Sync>> {
        let broker = self.broker.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let broker = broker.ok_or_else(|| io::Error::other("the relay edge has stopped"))?;
        let (stop, tasks) = (self.stop.child_token(), self.tasks.clone());
        let serving = Serving::new(broker, session, self.config, stop, tasks);
        Ok(Box::new(serving.open(dir)?))
    }
}
