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
use ringback_service::{Place, SessionSocket, SocketHandler, SocketScope};
use tokio::net::UnixStream;
use tokio::sync::watch;

use super::{NetworkConfig, NetworkRecorder, Resolver};

/// The name of the socket in its directory.
const NAME: &str = "network.sock";
/// Holds the head of a request and bounds the buffered part of a body.
pub(super) const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// What the connections of one session share.
#[derive(Debug)]
pub(super) struct Door {
    pub(super) session: SessionId,
    pub(super) policy: watch::Receiver<Arc<NetworkPolicy>>,
    pub(super) config: NetworkConfig,
    pub(super) resolver: Arc<dyn Resolver>,
    pub(super) recorder: Arc<dyn NetworkRecorder>,
    pub(super) scope: SocketScope,
}

impl Door {
    /// Binds the socket in a directory and serves it until the guard is dropped.
    pub(super) fn open(self, dir: &Utf8Path) -> io::Result<SessionSocket> {
        let (scope, connections_max) = (self.scope.clone(), self.config.connections_max);
        SessionSocket::serve(&scope, dir.as_std_path(), NAME, connections_max, Arc::new(self))
    }
}

impl SocketHandler for Door {
    /// A tunnel outlives its connection, and keeps its place.
    async fn serve(self: Arc<Self>, stream: UnixStream, place: Place) {
        let door = Arc::clone(&self);
        let service = service_fn(move |request: Request<Incoming>| {
            let answering = Arc::clone(&door).answer(request, place.clone());
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
            () = self.scope.stop.cancelled() => {}
            ended = connection => if let Err(error) = ended {
                tracing::debug!(session = %self.session, %error, "an agent's connection broke");
            },
        }
    }
    fn turn_away(&self, _: UnixStream) {
        tracing::debug!(session = %self.session, "too many connections to the network");
    }
}
