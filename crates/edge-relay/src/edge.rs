//! The edge: opens the sockets of sessions, and closes them all when it stops.

use std::any::Any;
use std::io;

use camino::Utf8Path;
use ringback_broker::{Broker, RelayDoor};
use ringback_proto::ids::SessionId;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Config;
use crate::socket::Serving;

/// Opens the sockets of sessions: the broker opens one with each session.
#[derive(Debug, Default)]
pub struct RelayEdge {
    config: Config,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl RelayEdge {
    /// An edge without any socket yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, stop: CancellationToken::new(), tasks: TaskTracker::new() }
    }

    /// Closes every socket and connection, and waits until all that belongs to them has ended.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl RelayDoor for RelayEdge {
    /// # Panics
    /// Outside of a tokio runtime.
    fn open(
        &self,
        broker: Broker,
        session: SessionId,
        dir: &Utf8Path,
    ) -> io::Result<Box<dyn Any + Send + Sync>> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other("the relay edge has stopped"));
        }
        let (stop, tasks) = (self.stop.child_token(), self.tasks.clone());
        let serving = Serving::new(broker, session, self.config, stop, tasks);
        Ok(Box::new(serving.open(dir)?))
    }
}
