//! One connection: HTTP/1.1, bounded in every direction, closed in order.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::{IntoResponse, Response};
use http_body_util::Limited;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::net::sockopt::set_tcp_user_timeout;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::Timeouts;
use super::body::TimedBody;
use super::cors;
use super::guard::Guard;
use super::refusal::Refusal;

/// A refused connection needs no patience.
const REFUSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Two round trips around the world and a slow computer, several times over.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Holds the head of a request and bounds what is buffered of a body; hyper's own default is six
/// times as much, for each connection.
const MAX_BUFFER_BYTES: usize = 64 * 1024;

/// What all connections of a listener share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) router: Router,
    pub(super) guard: Guard,
    pub(super) patience: Timeouts,
}

impl Shared {
    async fn respond(&self, peer: SocketAddr, request: Request<Incoming>) -> Response {
        let origin = match self.guard.admit(&request) {
            Ok(origin) => origin,
            Err(refusal) => return refused(peer, refusal),
        };
        let mut response = match self.guard.admit_body(&request) {
            Err(refusal) => refused(peer, refusal),
            Ok(_) if cors::is_preflight(&request) => cors::preflight(),
            // Boxed, so that the connection does not keep room for it: a stream may stay for hours.
            Ok(max_bytes) => Box::pin(self.route(request, max_bytes)).await,
        };
        if let Some(origin) = origin {
            cors::share(response.headers_mut(), origin);
        }
        response
    }

    async fn route(&self, request: Request<Incoming>, max_bytes: u64) -> Response {
        let max_bytes = usize::try_from(max_bytes).unwrap_or(usize::MAX);
        let bounded =
            |body| Body::new(Limited::new(TimedBody::new(body, self.patience.body), max_bytes));
        match self.router.clone().oneshot(request.map(bounded)).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}

/// Serves a connection until the peer or `drain` ends it; a request in flight is answered first.
pub(super) async fn serve(
    shared: &Shared,
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    drain: CancellationToken,
) {
    let Some(peer) = prepare(&stream, shared.patience) else { return };
    let Some(tls) = tls else { return converse(shared, peer, stream, drain).await };
    let handshake = Box::pin(timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)));
    if let Some(Some(stream)) =
        drain.run_until_cancelled(handshake).await.map(|shaken| shaken_hands(peer, shaken))
    {
        Box::pin(converse(shared, peer, stream, drain)).await;
    }
}

async fn converse(
    shared: &Shared,
    peer: SocketAddr,
    stream: impl AsyncRead + AsyncWrite + Unpin,
    drain: CancellationToken,
) {
    let service =
        service_fn(
            |request| async move { Ok::<_, Infallible>(shared.respond(peer, request).await) },
        );
    let mut connection =
        pin!(builder(shared.patience.head).serve_connection(TokioIo::new(stream), service));
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
pub(super) async fn refuse(stream: TcpStream, tls: Option<TlsAcceptor>) {
    let Some(peer) = prepare(&stream, Timeouts::default()) else { return };
    let refusing = async {
        match tls {
            None => refuse_on(stream).await,
            Some(tls) => match tls.accept(stream).await {
                Ok(stream) => Box::pin(refuse_on(stream)).await,
                Err(error) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
            },
        }
    };
    if timeout(REFUSE_TIMEOUT, refusing).await.is_err() {
        tracing::debug!(%peer, "a connection beyond the limit sent no request");
    }
}

async fn refuse_on(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let service = service_fn(|_: Request<Incoming>| async {
        Ok::<_, Infallible>(Refusal::Busy.into_response())
    });
    let connection = builder(REFUSE_TIMEOUT).serve_connection(TokioIo::new(stream), service);
    match connection.await {
        Ok(()) => tracing::debug!("answered a connection with 503: too many are open"),
        Err(error) => tracing::debug!(%error, "a connection broke"),
    }
}

fn refused(peer: SocketAddr, refusal: Refusal) -> Response {
    tracing::debug!(%peer, reason = refusal.reason(), "refused a request");
    refusal.into_response()
}

fn shaken_hands(
    peer: SocketAddr,
    shaken: Result<std::io::Result<TlsStream<TcpStream>>, tokio::time::error::Elapsed>,
) -> Option<TlsStream<TcpStream>> {
    match shaken {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => tracing::debug!(%peer, %error, "a TLS handshake failed"),
        Err(_elapsed) => tracing::debug!(%peer, "a TLS handshake took too long"),
    }
    None
}

/// Sets the socket options of every connection; `None` if the peer is already gone.
fn prepare(stream: &TcpStream, patience: Timeouts) -> Option<SocketAddr> {
    // Answers and events are small and must not wait for Nagle.
    stream.set_nodelay(true).ok()?;
    // A peer that vanished silently would otherwise hold its place for a quarter of an hour.
    let unread_ms = u32::try_from(patience.unread.as_millis()).unwrap_or(u32::MAX);
    set_tcp_user_timeout(stream, unread_ms).ok()?;
    stream.peer_addr().ok()
}

fn builder(header_read_timeout: Duration) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(header_read_timeout)
        .max_buf_size(MAX_BUFFER_BYTES);
    builder
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpStream};

    use super::{Timeouts, prepare};

    /// Rule: no answer takes 44 ms because two small writes met Nagle and a delayed
    /// acknowledgement.
    #[tokio::test]
    async fn answers_do_not_wait_for_nagle() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        assert_eq!(prepare(&stream, Timeouts::default()), Some(peer.local_addr().unwrap()));
        assert!(stream.nodelay().unwrap());
    }
}
