//! One connection: HTTP/1.1, bounded in every direction, ended in order.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use http_body_util::Limited;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::body::Impatient;
use super::guard::Guard;
use super::refusal::Refusal;

/// From the first byte expected to the last header line, so it also ends idle connections. Browsers
/// and proxies reconnect by themselves.
const HEADER_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection that is only told to go away needs no patience.
const REFUSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Holds the head of a request and bounds what is buffered of a body; hyper's own default is six
/// times as much, for each connection.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

/// What all connections of a listener share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) guard: Guard,
    pub(super) max_body_bytes: usize,
}

impl Shared {
    async fn respond(&self, peer: SocketAddr, request: Request<Incoming>) -> Response {
        if let Err(refusal) = self.guard.admit(&request) {
            tracing::debug!(%peer, reason = refusal.reason(), "refused a request");
            return refusal.into_response();
        }
        let bounded = |body| Body::new(Limited::new(Impatient::new(body), self.max_body_bytes));
        let mut request = request.map(bounded);
        request.extensions_mut().insert(ConnectInfo(peer));
        match self.router.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Serves a connection until the peer or `drain` ends it; a request in flight is answered first.
pub(super) async fn serve(shared: &Shared, stream: TcpStream, drain: CancellationToken) {
    let Some(peer) = prepare(&stream) else { return };
    let service =
        service_fn(
            |request| async move { Ok::<_, Infallible>(shared.respond(peer, request).await) },
        );
    let mut connection =
        pin!(builder(HEADER_READ_TIMEOUT).serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        biased;
        ended = connection.as_mut() => ended,
        () = drain.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%peer, %error, "a connection broke");
    }
}

/// Answers the first request of a connection with 503 and closes it.
pub(super) async fn refuse(stream: TcpStream) {
    let Some(peer) = prepare(&stream) else { return };
    let service = service_fn(|_: Request<Incoming>| async {
        Ok::<_, Infallible>(Refusal::Busy.into_response())
    });
    let connection = builder(REFUSE_TIMEOUT).serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(REFUSE_TIMEOUT, connection).await {
        Ok(Ok(())) => tracing::debug!(%peer, "told a peer that all connections are taken"),
        Ok(Err(error)) => tracing::debug!(%peer, %error, "a connection broke"),
        Err(_elapsed) => tracing::debug!(%peer, "a connection beyond the limit sent no request"),
    }
}

/// Sets what every connection has; `None` if the peer is gone already.
fn prepare(stream: &TcpStream) -> Option<SocketAddr> {
    // Answers and events are small and must not wait for Nagle.
    stream.set_nodelay(true).and_then(|()| stream.peer_addr()).ok()
}

fn builder(header_read_timeout: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(header_read_timeout)
        .max_buf_size(MAX_BUFFER_BYTES);
    builder
}
