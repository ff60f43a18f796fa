//! The model proxy of one session: bound with it, closed with it.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use camino::Utf8Path;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use ringback_broker::{ModelRequest, SessionKey};
use ringback_proto::ids::SessionId;
use ringback_service::{Place, SessionSocket, SocketHandler, SocketScope};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::client::ProviderClient;
use crate::tokens::Scanner;
use crate::usage::{Counters, EndedRequest};
use crate::{Config, Provider, Recorder};

/// The name of the socket in its directory.
const NAME: &str = "model.sock";
/// Holds the head of a request and bounds the buffered part of a body.
const BUFFER_BYTES_MAX: usize = 64 * 1024;
/// How much of a path is recorded; no one reads more, and the agent chooses it.
const PATH_BYTES_MAX: usize = 256;

/// A model ready for requests.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) provider: Provider,
    pub(crate) client: ProviderClient,
}

/// What the connections of one session share.
#[derive(Debug)]
pub(crate) struct ProxyContext {
    pub(crate) session: SessionId,
    pub(crate) model: Arc<Model>,
    /// Used if the provider's secret does not exist.
    pub(crate) own_key: SessionKey,
    pub(crate) config: Config,
    pub(crate) counters: Counters,
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) recorder: Arc<dyn Recorder>,
    pub(crate) scope: SocketScope,
}

/// One request, from its head to the last byte of its answer: recorded when it is dropped, however
/// it ended.
#[derive(Debug)]
pub(crate) struct Account {
    serving: Arc<ProxyContext>,
    method: Method,
    path: String,
    started: Instant,
    pub(crate) status: Option<StatusCode>,
    pub(crate) n_sent: Arc<AtomicU64>,
    pub(crate) n_received: u64,
    pub(crate) is_whole: bool,
    /// Whether it was sent to the provider.
    pub(crate) is_sent: bool,
    /// Counts the tokens of the answer, once there is one.
    pub(crate) scanner: Option<Scanner>,
    /// Why the proxy answered it.
    pub(crate) refusal: Option<String>,
    /// Where its key came from.
    pub(crate) key: Option<String>,
    /// Its permit among the running requests.
    pub(crate) place: Option<OwnedSemaphorePermit>,
}

impl ProxyContext {
    /// Binds the socket in a directory and serves it until the guard is dropped.
    pub(crate) fn open(self, dir: &Utf8Path) -> io::Result<SessionSocket> {
        let (scope, connections_max) = (self.scope.clone(), self.config.connections_max);
        SessionSocket::serve(&scope, dir.as_std_path(), NAME, connections_max, Arc::new(self))
    }
}

impl SocketHandler for ProxyContext {
    async fn serve(self: Arc<Self>, stream: UnixStream, place: Place) {
        let serving = Arc::clone(&self);
        let service = service_fn(move |request: Request<Incoming>| {
            let answering = Arc::clone(&serving).answer(request);
            async move { Ok::<_, Infallible>(answering.await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.config.head_timeout)
            .max_buf_size(BUFFER_BYTES_MAX)
            .serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            biased;
            () = self.scope.stop.cancelled() => {}
            ended = connection => if let Err(error) = ended {
                tracing::debug!(session = %self.session, %error, "a connection to a model broke");
            },
        }
        drop(place);
    }

    fn turn_away(&self, _: UnixStream) {
        tracing::debug!(session = %self.session, "too many connections to a model");
    }
}

impl Account {
    pub(crate) fn new(serving: Arc<ProxyContext>, request: &Request<Incoming>) -> Self {
        let mut path = request.uri().path().to_owned();
        if path.len() > PATH_BYTES_MAX {
            path.truncate(path.floor_char_boundary(PATH_BYTES_MAX));
        }
        Self {
            serving,
            method: request.method().clone(),
            path,
            started: Instant::now(),
            status: None,
            n_sent: Arc::default(),
            n_received: 0,
            is_whole: false,
            is_sent: false,
            scanner: None,
            refusal: None,
            key: None,
            place: None,
        }
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let measured = EndedRequest {
            method: &self.method,
            path: &self.path,
            status: self.status,
            is_whole: self.is_whole,
            is_sent: self.is_sent,
            bytes_up: self.n_sent.load(Ordering::Relaxed),
            bytes_down: self.n_received,
            said: self.scanner.as_ref().map(Scanner::said).unwrap_or_default(),
        };
        let (usage, answered_by) = measured.usage(&self.serving.model.provider.prices);
        let request = ModelRequest {
            model: self.serving.model.name.clone(),
            method: self.method.to_string(),
            path: std::mem::take(&mut self.path),
            status: self.status.map(|status| status.as_u16()),
            is_whole: self.is_whole,
            duration: self.started.elapsed(),
            answered_by,
            usage,
            refusal: self.refusal.take(),
            key: self.key.take(),
        };
        self.serving.recorder.record(self.serving.session, &request);
    }
}
