//! Bind, accept, drain.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::accept::{accept, turn_away};
use super::admission::{Admission, AdmissionDecision};
use super::connection::{Shared, refuse, serve};
use super::guard::Guard;
use super::tls::Tls;
use super::{BindError, HttpConfig};
use crate::open_files::SpareDescriptor;
use crate::stage::panic_message;

/// A bound listener that does not accept yet.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    local_addr: SocketAddr,
    config: HttpConfig,
}

/// When a listener ends: first it stops accepting, later its connections finish.
///
/// One token does both at the same time.
#[derive(Clone, Debug)]
pub struct Stop {
    /// Fires when no new connection should be accepted.
    pub accepting: CancellationToken,
    /// Fires when connections should finish their request and close.
    pub draining: CancellationToken,
}

struct Acceptor {
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    admission: Admission,
    draining: CancellationToken,
    connections: JoinSet<()>,
}

impl From<CancellationToken> for Stop {
    fn from(token: CancellationToken) -> Self {
        Self { accepting: token.clone(), draining: token }
    }
}

impl HttpListener {
    /// Binds the address. Connections queue from here on and are served by [`HttpListener::serve`].
    ///
    /// # Errors
    /// When the address is not loopback and has neither TLS nor a stated proxy, or the system
    /// refuses it.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing bound.
    pub async fn bind(config: HttpConfig) -> Result<Self, BindError> {
        config.check()?;
        let failed = |source| BindError::Listen { listen: config.listen, source };
        let listener = TcpListener::bind(config.listen).await.map_err(failed)?;
        let local_addr = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, local_addr, config })
    }

    /// Whether it uses TLS.
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        self.config.tls.is_some()
    }

    /// The actual address, with the port that the system chose for port 0.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Serves until `stop`: then the socket closes, requests in flight are answered, and the future
    /// resolves when the last connection is gone.
    ///
    /// It bounds every body. Routes should not read one with the extractors of axum, which have a
    /// smaller limit of their own; a layer that lifts it would cost every request a boxed future.
    ///
    /// # Cancel safety
    /// Dropping the future closes the socket and aborts every connection.
    pub async fn serve(self, router: Router, stop: impl Into<Stop>) {
        let Stop { accepting, draining } = stop.into();
        let shared = Shared {
            router,
            guard: Guard::new(&self.config, self.local_addr.port()),
            patience: self.config.patience,
        };
        let mut acceptor = Acceptor {
            shared: Arc::new(shared),
            tls: self.config.tls.as_ref().map(Tls::acceptor),
            admission: Admission::new(self.config.max_connections),
            draining,
            connections: JoinSet::new(),
        };
        acceptor.accept_until(&self.listener, accepting).await;
        drop(self.listener);
        tracing::debug!(
            n_open = acceptor.connections.len(),
            "the HTTP listener stops accepting connections"
        );
        while let Some(ended) = acceptor.connections.join_next().await {
            on_ended(ended);
        }
    }
}

impl Acceptor {
    async fn accept_until(&mut self, listener: &TcpListener, accepting: CancellationToken) {
        let (mut spare, is_tls) = (SpareDescriptor::new(), self.tls.is_some());
        loop {
            tokio::select! {
                biased;
                () = accepting.cancelled() => return,
                Some(ended) = self.connections.join_next() => on_ended(ended),
                stream = accept(listener, &mut spare, is_tls) => self.on_stream(stream),
            }
        }
    }

    fn on_stream(&mut self, stream: TcpStream) {
        let tls = self.tls.clone();
        match self.admission.admit() {
            AdmissionDecision::Serve(permit) => {
                let (shared, draining) = (Arc::clone(&self.shared), self.draining.clone());
                self.connections.spawn(async move {
                    serve(&shared, stream, tls, draining).await;
                    drop(permit);
                });
            }
            AdmissionDecision::Refuse(permit) => {
                self.connections.spawn(async move {
                    refuse(stream, tls).await;
                    drop(permit);
                });
            }
            AdmissionDecision::Close => turn_away(&stream, tls.is_some()),
        }
    }
}

fn on_ended(ended: Result<(), JoinError>) {
    let Err(error) = ended else { return };
    if let Ok(payload) = error.try_into_panic() {
        let message = panic_message(payload.as_ref());
        tracing::error!(message, "a connection's handler panicked");
        metrics::counter!("ringback_task_panics_total", "stage" => "http").increment(1);
    }
}
