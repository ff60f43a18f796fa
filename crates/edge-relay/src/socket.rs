//! The socket of one session: bound, accepted on, closed with the session.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::sync::Arc;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_broker::Broker;
use ringback_proto::Error;
use ringback_proto::ids::SessionId;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Config;
use crate::connection::{Connection, Ended};
use crate::outbox::Outbox;

/// The name of the socket in its directory.
const NAME: &str = "relay.sock";
/// A pause when the machine has no room for another connection.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

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

/// The socket of a session, as long as it lives.
#[derive(Debug)]
pub(crate) struct Socket {
    path: Utf8PathBuf,
    stop: CancellationToken,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.stop.cancel();
        if let Err(error) = std::fs::remove_file(&self.path)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %self.path, %error, "the socket of a session is left");
        }
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
        let path = dir.join(NAME);
        let listener = bind(dir, &path)
            .map_err(|error| io::Error::new(error.kind(), format!("`{path}`: {error}")))?;
        let stop = self.stop.clone();
        let serving = Arc::new(self);
        let accepting = Arc::clone(&serving).accept(listener);
        drop(serving.tasks.spawn(accepting));
        Ok(Socket { path, stop })
    }

    async fn accept(self: Arc<Self>, listener: UnixListener) {
        loop {
            let accepted = tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => Arc::clone(&self).admit(stream),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(error) => {
                    tracing::warn!(session = %self.session, %error, "cannot accept a connection");
                    tokio::time::sleep(EXHAUSTED_PAUSE).await;
                }
            }
        }
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
                    tracing::warn!(%session, "a peer that does not read was disconnected");
                }
                ended @ (Ended::Left | Ended::Refused | Ended::Stopped) => {
                    tracing::debug!(%session, ?ended, "a connection ended");
                }
            }
            drop(permit);
        }));
    }

    /// A new socket takes a short line at once.
    fn turn_away(&self, stream: &UnixStream) {
        let mut outbox = Outbox::default();
        outbox.refuse(None, &Error::busy("the list of this session's connections").into());
        let written = outbox.write_to(stream);
        tracing::warn!(session = %self.session, ok = written.is_ok(), "a connection too many");
    }
}

/// The directory is the daemon's user's alone, so nobody else gets to the socket before its mode is
/// set.
fn bind(dir: &Utf8Path, path: &Utf8Path) -> io::Result<UnixListener> {
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))?;
    match std::fs::symlink_metadata(path) {
        // Of a daemon that was killed.
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(path)?,
        Ok(_) => return Err(io::Error::new(io::ErrorKind::AlreadyExists, "it is no socket")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    Ok(listener)
}
