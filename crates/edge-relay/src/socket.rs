//! The socket of one session: bound with it, closed with it.

use std::io;
use std::sync::Arc;

use camino::Utf8Path;
use ringback_broker::Broker;
use ringback_proto::Error;
use ringback_proto::ids::SessionId;
use ringback_service::{Place, SessionSocket, SocketHandler, SocketScope};
use tokio::net::UnixStream;

use crate::Config;
use crate::connection::{Connection, EndReason};
use crate::outbox::Outbox;

/// The name of the socket in its directory.
const NAME: &str = "relay.sock";

/// What the connections of one session share.
#[derive(Debug)]
pub(crate) struct SocketContext {
    pub(crate) broker: Broker,
    pub(crate) session: SessionId,
    pub(crate) config: Config,
    pub(crate) scope: SocketScope,
}

impl SocketContext {
    /// Binds the socket in a directory and serves it until the guard is dropped.
    pub(crate) fn open(self, dir: &Utf8Path) -> io::Result<SessionSocket> {
        let (scope, connections_max) = (self.scope.clone(), self.config.connections_max);
        SessionSocket::serve(&scope, dir.as_std_path(), NAME, connections_max, Arc::new(self))
    }
}

impl SocketHandler for SocketContext {
    async fn serve(self: Arc<Self>, stream: UnixStream, place: Place) {
        let session = self.session;
        match Connection::new(self, stream).run().await {
            EndReason::Slow => {
                tracing::warn!(%session, "disconnected a peer that does not read");
            }
            ended @ (EndReason::Left | EndReason::Refused | EndReason::Stopped) => {
                tracing::debug!(%session, ?ended, "a connection ended");
            }
        }
        drop(place);
    }

    /// A new socket accepts a short line immediately.
    fn turn_away(&self, stream: UnixStream) {
        let mut outbox = Outbox::default();
        outbox.refuse(None, &Error::busy("the list of this session's connections").into());
        let written = outbox.write_to(&stream);
        tracing::warn!(session = %self.session, ok = written.is_ok(), "too many connections");
    }
}
