//! The edge: opens the sockets of sessions, and closes them all when it stops.

use std::any::Any;
use std::io;

use camino::Utf8Path;
use ringback_broker::{Broker, RelayDoor};
use ringback_proto::ids::SessionId;
use ringback_service::SessionSockets;

use crate::Config;
use crate::socket::SocketContext;

/// Opens the sockets of sessions: the broker opens one with each session.
#[derive(Debug)]
pub struct RelayEdge {
    config: Config,
    sockets: SessionSockets,
}

impl RelayEdge {
    /// An edge without any socket yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, sockets: SessionSockets::new("the relay edge") }
    }

    /// Closes every socket and connection, and waits until all that belongs to them has ended.
    pub async fn stop(&self) {
        self.sockets.stop().await;
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
        let scope = self.sockets.scope()?;
        let socket_context = SocketContext { broker, session, config: self.config, scope };
        Ok(Box::new(socket_context.open(dir)?))
    }
}
