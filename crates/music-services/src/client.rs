//! Requests to a service, and the state of the services.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderMap, RETRY_AFTER};
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use ringback_sync::lock;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use crate::endpoint::Endpoint;
use crate::error::RequestError;
use crate::service::Service;
use crate::stream::{self, ServicePart, StreamFailure, is_streamed};

/// The largest answer: ten minutes of sound as base64, and as much again.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024 * 1024;
/// The largest error answer.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// How much of an error message is passed on.
const MESSAGE_CHARS_MAX: usize = 300;
/// How long to wait for a connection; a nearby service accepts one in milliseconds.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// How long to wait if a busy service does not say when to retry.
const RETRY_AFTER_DEFAULT: Duration = Duration::from_secs(5);
/// A service may stream its answer.
const ACCEPTED: &str = "application/x-ndjson, application/json";
/// How often the progress of a pending request is reported.
const TELL_EVERY: Duration = Duration::from_secs(1);

/// The configured services, and the limits of requests.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The address of each service; a missing one is not configured.
    pub endpoints: BTreeMap<Service, Endpoint>,
    /// A time limit for all services, instead of their own.
    pub patience: Option<Duration>,
    /// The largest answer.
    pub answer_bytes_max: usize,
}

impl Default for Settings {
    /// Returns settings without services.
    fn default() -> Self {
        Self { endpoints: BTreeMap::new(), patience: None, answer_bytes_max: ANSWER_BYTES_MAX }
    }
}

/// The known state of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// It has not been used yet.
    Untried,
    /// It answered the last request, perhaps with an error.
    Answering,
    /// It was busy at the last request.
    Busy,
    /// It did not answer the last request.
    Silent,
}

impl Health {
    /// Returns its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untried => "untried",
            Self::Answering => "answering",
            Self::Busy => "busy",
            Self::Silent => "silent",
        }
    }
}

/// The progress of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestProgress {
    /// The service has worked for this long.
    Working(Duration),
    /// The service is busy, and is asked again after this long.
    Waiting(Duration),
}

/// A request.
pub struct ServiceRequest<'a> {
    /// The service.
    pub service: Service,
    /// A body from [`crate::predict::encode`].
    pub body: Bytes,
    /// The trace it belongs to, in the format of the header of that name.
    pub traceparent: Option<String>,
    /// Receives progress.
    pub tell: &'a (dyn Fn(RequestProgress) + Send + Sync),
    /// Receives the parts of an answer that the service streams. A full channel slows it down.
    pub parts: mpsc::Sender<ServicePart>,
}

impl std::fmt::Debug for ServiceRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServiceRequest").field("service", &self.service).finish_non_exhaustive()
    }
}

/// The services.
#[derive(Debug)]
pub struct Services {
    settings: Settings,
    health: Mutex<BTreeMap<Service, Health>>,
}

/// The result of one attempt.
enum Attempt {
    Answer(Bytes),
    Busy(Duration),
}

impl Services {
    /// Returns a client for these services.
    #[must_use]
    pub const fn new(settings: Settings) -> Self {
        Self { settings, health: Mutex::new(BTreeMap::new()) }
    }

    /// Returns the address of a service.
    #[must_use]
    pub fn endpoint(&self, service: Service) -> Option<&Endpoint> {
        self.settings.endpoints.get(&service)
    }

    /// Returns the configured services and their known state.
    #[must_use]
    pub fn health(&self) -> Vec<(Service, Health)> {
        let known = lock(&self.health);
        let health = |service: &Service| known.get(service).copied().unwrap_or(Health::Untried);
        self.settings.endpoints.keys().map(|service| (*service, health(service))).collect()
    }

    /// Sends a request to a service. While the service is busy, retries when it asks to, within the
    /// time limit.
    ///
    /// # Errors
    /// See [`RequestError`].
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection; the service may have started.
    pub async fn ask(&self, ask: ServiceRequest<'_>) -> Result<Bytes, RequestError> {
        let service = ask.service;
        let endpoint = self.endpoint(service).ok_or(RequestError::NotConfigured { service })?;
        let limit = self.settings.patience.unwrap_or_else(|| service.patience());
        let until = Instant::now() + limit;
        let asked = timeout_at(until, self.attempts(&ask, endpoint, until)).await;
        let asked = asked.unwrap_or(Err(RequestError::Timeout { service, limit }));
        self.note(service, &asked);
        asked
    }

    async fn attempts(
        &self,
        ask: &ServiceRequest<'_>,
        endpoint: &Endpoint,
        until: Instant,
    ) -> Result<Bytes, RequestError> {
        loop {
            match self.attempt(ask, endpoint).await? {
                Attempt::Answer(answer) => return Ok(answer),
                Attempt::Busy(retry_after) => {
                    let again = Instant::now() + retry_after;
                    if again >= until {
                        return Err(RequestError::Busy { service: ask.service, retry_after });
                    }
                    (ask.tell)(RequestProgress::Waiting(retry_after));
                    sleep_until(again).await;
                }
            }
        }
    }

    /// Makes one attempt, and reports progress every second.
    async fn attempt(
        &self,
        ask: &ServiceRequest<'_>,
        endpoint: &Endpoint,
    ) -> Result<Attempt, RequestError> {
        let began = Instant::now();
        let mut every = tokio::time::interval(TELL_EVERY);
        let exchange = self.exchange(ask, endpoint);
        tokio::pin!(exchange);
        loop {
            tokio::select! {
                biased;
                exchanged = &mut exchange => return exchanged,
                _ = every.tick() => (ask.tell)(RequestProgress::Working(began.elapsed())),
            }
        }
    }

    async fn exchange(
        &self,
        ask: &ServiceRequest<'_>,
        endpoint: &Endpoint,
    ) -> Result<Attempt, RequestError> {
        let service = ask.service;
        let broken = |source: hyper::Error| RequestError::Broken {
            service,
            endpoint: endpoint.clone(),
            source: source.into(),
        };
        let stream = connect(service, endpoint).await?;
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        // Ends with this call, and the connection with it.
        let mut driving = JoinSet::new();
        driving.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to a music service ended");
            }
        });
        let response = sender.send_request(request(ask, endpoint)?).await.map_err(broken)?;
        let (head, body) = response.into_parts();
        let is_busy =
            matches!(head.status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE);
        if is_busy {
            return Ok(Attempt::Busy(retry_after(&head.headers)));
        }
        let is_fine = head.status.is_success();
        if is_fine && is_streamed(&head.headers) {
            let bytes_max = self.settings.answer_bytes_max;
            let answer = stream::read(body, bytes_max, &ask.parts).await.map_err(|why| match why {
                StreamFailure::Broken(source) => broken(source),
                StreamFailure::TooLarge => RequestError::TooLarge { service, bytes_max },
                StreamFailure::Malformed(reason) => RequestError::Malformed { service, reason },
            });
            return answer.map(Attempt::Answer);
        }
        let bytes_max = if is_fine { self.settings.answer_bytes_max } else { ERROR_BYTES_MAX };
        let body = match Limited::new(body, bytes_max).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                return Err(RequestError::TooLarge { service, bytes_max });
            }
            Err(source) => {
                return Err(RequestError::Broken { service, endpoint: endpoint.clone(), source });
            }
        };
        if is_fine { Ok(Attempt::Answer(body)) } else { Err(refusal(service, head.status, &body)) }
    }

    fn note(&self, service: Service, asked: &Result<Bytes, RequestError>) {
        let health = match asked {
            Ok(_)
            | Err(
                RequestError::Refused { .. }
                | RequestError::Failed { .. }
                | RequestError::TooLarge { .. }
                | RequestError::Malformed { .. },
            ) => Health::Answering,
            Err(RequestError::Busy { .. }) => Health::Busy,
            Err(
                RequestError::NotConfigured { .. }
                | RequestError::Unreachable { .. }
                | RequestError::Broken { .. }
                | RequestError::Timeout { .. },
            ) => Health::Silent,
        };
        lock(&self.health).insert(service, health);
    }
}

async fn connect(service: Service, endpoint: &Endpoint) -> Result<TcpStream, RequestError> {
    let unreachable =
        |source| RequestError::Unreachable { service, endpoint: endpoint.clone(), source };
    let connected = timeout(CONNECT_LIMIT, TcpStream::connect(endpoint.address())).await;
    let stream = connected.map_err(|late| unreachable(late.into()))?;
    stream
        .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
        .map_err(|source| unreachable(source.into()))
}

fn request(
    ask: &ServiceRequest<'_>,
    endpoint: &Endpoint,
) -> Result<Request<Full<Bytes>>, RequestError> {
    let mut request = Request::post(endpoint.path())
        .header(HOST, endpoint.address())
        .header(ACCEPT, ACCEPTED)
        .header(CONTENT_TYPE, "application/json");
    if let Some(traceparent) = &ask.traceparent {
        request = request.header("traceparent", traceparent);
    }
    request.body(Full::new(ask.body.clone())).map_err(|source| RequestError::Unreachable {
        service: ask.service,
        endpoint: endpoint.clone(),
        source: source.into(),
    })
}

/// Returns when to retry, in seconds; a date is ignored.
fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds =
        headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
    seconds.map_or(RETRY_AFTER_DEFAULT, Duration::from_secs)
}

/// Reads the message of a refusal: `{"detail": ..}` or `{"error": ..}`, or plain text.
fn refusal(service: Service, status: StatusCode, body: &[u8]) -> RequestError {
    let json: Option<serde_json::Value> = serde_json::from_slice(body).ok();
    let said = json
        .as_ref()
        .and_then(|json| ["detail", "error", "message"].iter().find_map(|name| json.get(name)));
    let text = match said {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::from_utf8_lossy(body).into_owned(),
    };
    let message: String = text.chars().take(MESSAGE_CHARS_MAX).collect();
    let message = if message.trim().is_empty() { "no message".to_owned() } else { message };
    let status_code = status.as_u16();
    if status.is_client_error() {
        RequestError::Refused { service, status: status_code, message }
    } else {
        RequestError::Failed { service, status: status_code, message }
    }
}
