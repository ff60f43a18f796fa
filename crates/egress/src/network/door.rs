//! The network proxy of one session: bound with it, closed with it.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use camino::Utf8Path;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use ringback_proto::ids::SessionId;
use ringback_proto::network::NetworkPolicy;
use ringback_service::{PrivateSocket, SocketFile, accept_until};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::{NetworkConfig, NetworkRecorder, Resolver};

/// The name of the socket in its directory.
const NAME: &str = "network.sock";
/// Holds the head of a request and bounds the buffered part of a body.
pub(super) const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// A permit for one connection of a session; held by everything that belongs to it.
pub(super) type Place = Arc<OwnedSemaphorePermit>;

/// What the connections of one session share.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) session: SessionId,
    pub(super) policy: watch::Receiver<Arc<NetworkPolicy>>,
    pub(super) config: NetworkConfig,
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) recorder: Arc<dyn NetworkRecorder>,
    pub(super) connections: Arc<Semaphore>,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// The network proxy of a session, while it is open.
#[derive(Debug)]
pub(super) struct OpenDoor {
    _stop: DropGuard,
    _file: SocketFile,
}

impl Door {
    /// Binds the socket in a directory and accepts on it until the guard is dropped.
    pub(super) fn open(self, dir: &Utf8Path) -> io::Result<OpenDoor> {
        let PrivateSocket { listener, file } = PrivateSocket::bind(dir.as_std_path(), NAME)?;
        let stop = self.stop.clone().drop_guard();
        let door = Arc::new(self);
        let tasks = door.tasks.clone();
        drop(tasks.spawn(async move {
            accept_until(&door.stop, listener, |stream| Arc::clone(&door).admit(stream)).await;
        }));
        Ok(OpenDoor { _stop: stop, _file: file })
    }

    fn admit(self: Arc<Self>, stream: UnixStream) {
        let Ok(place) = Arc::clone(&self.connections).try_acquire_owned() else {
            tracing::debug!(session = %self.session, "too many connections to the network");
            return;
        };
        let tasks = self.tasks.clone();
        drop(tasks.spawn(self.converse(stream, Arc::new(place))));
    }

    async fn converse(self: Arc<Self>, stream: UnixStream, place: Place) {
        let door = Arc::clone(&self);
        let service = service_fn(move |request: Request<Incoming>| {
            let answering = Arc::clone(&door).answer(request, Arc::clone(&place));
            async move { Ok::<_, Infallible>(answering.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.config.head_timeout)
            .max_buf_size(BUFFER_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::select! {
            biased;
            () = self.stop.cancelled() => {}
            ended = connection => if let Err(error) = ended {
                tracing::debug!(session = %self.session, %error, "an agent's connection broke");
            },
        }
    }
}
