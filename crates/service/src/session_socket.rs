//! Sockets of sessions: each is bound with its session, serves a limited number of connections, and
//! is closed with its session or with its owner.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::unix::{PrivateSocket, SocketFile, accept_until};

/// The sockets of one kind, of all sessions.
#[derive(Debug)]
pub struct SessionSockets {
    owner: &'static str,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// What belongs to one socket: the token that ends it, and its tasks.
#[derive(Debug, Clone)]
pub struct SocketScope {
    /// Fires when the session or the owner of the sockets ends.
    pub stop: CancellationToken,
    /// The tasks, which the owner of the sockets waits for.
    pub tasks: TaskTracker,
}

/// A socket that is being served; dropping it ends it, with its connections.
#[derive(Debug)]
pub struct SessionSocket {
    _stop: DropGuard,
    _file: SocketFile,
}

/// Serves the connections of one socket.
pub trait SocketHandler: Send + Sync + 'static {
    /// Serves a connection; ends it when the scope of the socket stops.
    fn serve(self: Arc<Self>, stream: UnixStream, place: Place) -> impl Future<Output = ()> + Send;

    /// Turns a connection away, because there are too many.
    fn turn_away(&self, stream: UnixStream);
}

/// The place of a connection among those of its socket: free when everything that belongs to the
/// connection has dropped it.
#[derive(Debug, Clone)]
pub struct Place {
    _permit: Arc<OwnedSemaphorePermit>,
}

impl SessionSockets {
    /// No socket yet. The owner is named in errors: `the relay edge`.
    #[must_use]
    pub fn new(owner: &'static str) -> Self {
        Self { owner, stop: CancellationToken::new(), tasks: TaskTracker::new() }
    }

    /// The tasks of all sockets.
    #[must_use]
    pub const fn tasks(&self) -> &TaskTracker {
        &self.tasks
    }

    /// The scope of another socket.
    ///
    /// # Errors
    /// When they have stopped.
    pub fn scope(&self) -> io::Result<SocketScope> {
        if self.stop.is_cancelled() {
            return Err(io::Error::other(format!("{} has stopped", self.owner)));
        }
        Ok(SocketScope { stop: self.stop.child_token(), tasks: self.tasks.clone() })
    }

    /// Closes every socket and connection, and waits until all their tasks have ended.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl SessionSocket {
    /// Binds a socket of this name in a directory that becomes private, and serves up to
    /// `connections_max` connections at a time until it is dropped or the scope stops.
    ///
    /// # Errors
    /// When it cannot be bound; the error names the path.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn serve(
        scope: &SocketScope,
        dir: &Path,
        name: &str,
        connections_max: usize,
        handler: Arc<impl SocketHandler>,
    ) -> io::Result<Self> {
        let PrivateSocket { listener, file } = PrivateSocket::bind(dir, name)?;
        let SocketScope { stop, tasks } = scope.clone();
        let places = Arc::new(Semaphore::new(connections_max));
        let accepting = async move {
            accept_until(&stop, listener, |stream| match Arc::clone(&places).try_acquire_owned() {
                Ok(permit) => {
                    let place = Place { _permit: Arc::new(permit) };
                    drop(tasks.spawn(Arc::clone(&handler).serve(stream, place)));
                }
                Err(_) => handler.turn_away(stream),
            })
            .await;
        };
        drop(scope.tasks.spawn(accepting));
        Ok(Self { _stop: scope.stop.clone().drop_guard(), _file: file })
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    /// Echoes bytes, and holds the place of a connection until it ends.
    struct Echo(SocketScope);

    impl SocketHandler for Echo {
        async fn serve(self: Arc<Self>, mut stream: UnixStream, place: Place) {
            let mut byte = [0];
            tokio::select! {
                () = self.0.stop.cancelled() => {}
                () = async {
                    while stream.read_exact(&mut byte).await.is_ok() {
                        stream.write_all(&byte).await.unwrap();
                    }
                } => {}
            }
            drop(place);
        }

        fn turn_away(&self, stream: UnixStream) {
            assert_eq!(stream.try_write(b"!").unwrap(), 1);
        }
    }

    async fn answer(stream: &mut UnixStream) -> Option<u8> {
        let mut byte = [0];
        // One that was turned away may be closed already.
        drop(stream.write_all(b"x").await);
        stream.read_exact(&mut byte).await.is_ok().then_some(byte[0])
    }

    fn serve(sockets: &SessionSockets, dir: &Path) -> io::Result<SessionSocket> {
        let scope = sockets.scope()?;
        SessionSocket::serve(&scope, dir, "a.sock", 1, Arc::new(Echo(scope.clone())))
    }

    /// Rule: the connections of a socket are limited, and end with it.
    #[tokio::test]
    async fn a_socket_serves_up_to_its_limit_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.sock");
        let sockets = SessionSockets::new("the test");
        let socket = serve(&sockets, dir.path()).unwrap();
        let mut first = UnixStream::connect(&path).await.unwrap();
        assert_eq!(answer(&mut first).await, Some(b'x'));
        let mut second = UnixStream::connect(&path).await.unwrap();
        assert_eq!(answer(&mut second).await, Some(b'!'), "one too many");
        drop(socket);
        assert_eq!(answer(&mut first).await, None);
        assert!(!path.exists());
        sockets.stop().await;
    }

    #[tokio::test]
    async fn the_owner_ends_all_sockets_and_opens_no_more() {
        let dir = tempfile::tempdir().unwrap();
        let sockets = SessionSockets::new("the test");
        let _socket = serve(&sockets, dir.path()).unwrap();
        let mut open = UnixStream::connect(dir.path().join("a.sock")).await.unwrap();
        assert_eq!(answer(&mut open).await, Some(b'x'));
        sockets.stop().await;
        assert_eq!(answer(&mut open).await, None);
        let refused = serve(&sockets, dir.path()).unwrap_err();
        assert_eq!(refused.to_string(), "the test has stopped");
    }
}
