//! The socket of one session: bound with it, closed with it.

use std::io;
use std::sync::Arc;

use camino::Utf8Path;
use ringback_broker::Broker;
use ringback_proto::Error;
use ringback_proto::ids::SessionId;
use ringback_service::{PrivateSocket, SocketFile, accept_until};
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Config;
use crate::connection::{Connection, Ended};
use crate::outbox::Outbox;

/// The name of the socket in its directory.
const NAME: &str = "relay.sock";

/// What the connections of one session share.
#[derive(Debug)]
pub(crate) struct Serving {
    pub(crate) broker: Broker,
    pub(crate) session: SessionId,
    pub(crate) config: Config,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
    room: Arc<Semaphore>,
}

/// The socket of a session, while it exists.
#[derive(Debug)]
pub(crate) struct Socket {
    stop: CancellationToken,
    _file: SocketFile,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl Serving {
    pub(crate) fn new(
        broker: Broker,
        session: SessionId,
        config: Config,
        stop: CancellationToken,
        tasks: TaskTracker,
    ) -> Self {
        let room = Arc::new(Semaphore::new(config.connections_max));
        Self { broker, session, config, stop, tasks, room }
    }

    /// Binds the socket in a directory and accepts on it until the guard is dropped.
    pub(crate) fn open(self, dir: &Utf8Path) -> io::Result<Socket> {
        let PrivateSocket { listener, file } = PrivateSocket::bind(dir.as_std_path(), NAME)?;
        let stop = self.stop.clone();
        let serving = Arc::new(self);
        let tasks = serving.tasks.clone();
        drop(tasks.spawn(async move {
            accept_until(&serving.stop, listener, |stream| Arc::clone(&serving).admit(stream))
                .await;
        }));
        Ok(Socket { stop, _file: file })
    }

    fn admit(self: Arc<Self>, stream: UnixStream) {
        let Ok(permit) = Arc::clone(&self.room).try_acquire_owned() else {
            return self.turn_away(&stream);
        };
        let serving = Arc::clone(&self);
        drop(self.tasks.spawn(async move {
            let session = serving.session;
            match Connection::new(serving, stream).run().await {
                Ended::Slow => {
                    tracing::warn!(%session, "disconnected a peer that does not read");
                }
                ended @ (Ended::Left | Ended::Refused | Ended::Stopped) => {
                    tracing::debug!(%session, ?ended, "a connection ended");
                }
            }
            drop(permit);
        }));
    }

    /// A new socket accepts a short line immediately.
    fn turn_away(&self, stream: &UnixStream) {
        let mut outbox = Outbox::default();
        outbox.refuse(None, &Error::busy("the list of this session's connections").into());
        let written = outbox.write_to(stream);
        tracing::warn!(session = %self.session, ok = written.is_ok(), "too many connections");
    }
}
