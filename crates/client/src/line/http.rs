//! Requests to the daemon's HTTP listener, each on its own connection.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use ringback_proto::secret::Secret;
use serde::Deserialize;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::error::LineError;

/// Loopback answers in milliseconds; this is for a machine that is very busy.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);
/// For a whole exchange, including a result of many megabytes.
const EXCHANGE_LIMIT: Duration = Duration::from_secs(30);
/// Answers are short: ids and errors.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// How much of an unknown error body is shown.
const MESSAGE_CHARS_MAX: usize = 300;

/// The daemon's HTTP listener.
#[derive(Debug)]
pub(super) struct Http {
    address: String,
    authorization: Option<HeaderValue>,
}

/// A request.
pub(super) struct HttpRequest {
    /// For errors: `register the tools`.
    pub(super) action: &'static str,
    pub(super) method: Method,
    pub(super) path: String,
    /// JSON.
    pub(super) body: Option<Vec<u8>>,
}

/// A body that arrives for as long as this is kept.
#[derive(Debug)]
pub(super) struct StreamingBody {
    pub(super) body: Incoming,
    /// Drives the connection.
    _connection: JoinSet<()>,
}

impl Http {
    pub(super) fn new(address: String, token: Option<&Secret>) -> Result<Self, LineError> {
        let authorization = token.map(|token| {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.expose()))
                .map_err(|_| LineError::Token)?;
            value.set_sensitive(true);
            Ok(value)
        });
        Ok(Self { address, authorization: authorization.transpose()? })
    }

    /// Sends a request, and reads the whole answer.
    pub(super) async fn ask(&self, ask: HttpRequest) -> Result<Bytes, LineError> {
        let action = ask.action;
        let exchange = async {
            let (response, connection) = self.send(ask).await?;
            let (status, body) = (response.status(), response.into_body());
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            drop(connection);
            let body = body.map_err(|source| self.broken(action, source))?.to_bytes();
            if status.is_success() { Ok(body) } else { Err(refused(action, status, &body)) }
        };
        tokio::time::timeout(EXCHANGE_LIMIT, exchange)
            .await
            .unwrap_or_else(|_| Err(self.timeout(action, EXCHANGE_LIMIT)))
    }

    /// Sends a request, and leaves the body of the answer to be streamed.
    pub(super) async fn open(&self, ask: HttpRequest) -> Result<StreamingBody, LineError> {
        let action = ask.action;
        let opening = async {
            let (response, connection) = self.send(ask).await?;
            let (status, body) = (response.status(), response.into_body());
            if status.is_success() {
                return Ok(StreamingBody { body, _connection: connection });
            }
            let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await;
            let body = body.map_err(|source| self.broken(action, source))?.to_bytes();
            Err(refused(action, status, &body))
        };
        tokio::time::timeout(EXCHANGE_LIMIT, opening)
            .await
            .unwrap_or_else(|_| Err(self.timeout(action, EXCHANGE_LIMIT)))
    }

    async fn send(&self, ask: HttpRequest) -> Result<(Response<Incoming>, JoinSet<()>), LineError> {
        let HttpRequest { action, method, path, body } = ask;
        let stream = self.connect(action).await?;
        let broken = |source: hyper::Error| self.broken(action, source.into());
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
        let mut driving = JoinSet::new();
        driving.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the daemon ended");
            }
        });
        let request = self.request(method, path, body).map_err(|source| LineError::Exchange {
            action,
            address: self.address.clone(),
            source: source.into(),
        })?;
        let response = sender.send_request(request).await.map_err(broken)?;
        Ok((response, driving))
    }

    async fn connect(&self, action: &'static str) -> Result<TcpStream, LineError> {
        let connected = tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(&self.address));
        let stream = connected.await.map_err(|_| self.timeout(action, CONNECT_LIMIT))?;
        stream
            .and_then(|stream| stream.set_nodelay(true).map(|()| stream))
            .map_err(|source| LineError::Connect { address: self.address.clone(), source })
    }

    fn request(
        &self,
        method: Method,
        path: String,
        body: Option<Vec<u8>>,
    ) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, &self.address)
            .header(ACCEPT, "application/json, text/event-stream");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization.clone());
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        request.body(Full::new(body.unwrap_or_default().into()))
    }

    fn broken(
        &self,
        action: &'static str,
        source: Box<dyn std::error::Error + Send + Sync>,
    ) -> LineError {
        LineError::Exchange { action, address: self.address.clone(), source }
    }

    fn timeout(&self, action: &'static str, limit: Duration) -> LineError {
        LineError::Timeout { action, address: self.address.clone(), limit }
    }
}

/// The daemon's error, in either of its formats.
#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorText,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorText {
    Named { message: String },
    Bare(String),
}

fn refused(action: &'static str, status: StatusCode, body: &[u8]) -> LineError {
    let message = match serde_json::from_slice(body) {
        Ok(ErrorBody { error: ErrorText::Named { message } | ErrorText::Bare(message) }) => message,
        Err(_) => String::from_utf8_lossy(body).chars().take(MESSAGE_CHARS_MAX).collect(),
    };
    LineError::Refused { action, status: status.as_u16(), message }
}
