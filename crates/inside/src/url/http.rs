//! Requests of the modern era over HTTP.

use std::error::Error as _;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use ringback_mcp_wire::{Id, Limits, Line, Lines, Message, Object, RawValue, Version, compact};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Call;
use crate::lines::LINE_BYTES_MAX;
use crate::options::Key;

const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// A peer that vanished silently is noticed after about half a minute.
const KEEPALIVE: Duration = Duration::from_secs(15);
/// Streams carry comments every few seconds while there is nothing to send.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// A session's URL.
#[derive(Debug)]
pub(super) struct Http {
    client: Client<HttpConnector, Full<Bytes>>,
    uri: Uri,
    bearer: Option<HeaderValue>,
    key: Option<HeaderValue>,
}

/// Why there is no answer.
#[derive(Debug, Serialize)]
pub(super) struct Failed {
    kind: &'static str,
    retryable: bool,
    certainty: &'static str,
    #[serde(skip)]
    pub(super) message: String,
}

/// Messages of a stream, or the one message of a plain answer.
#[derive(Debug)]
pub(super) struct Messages {
    body: Limited<Incoming>,
    lines: Lines,
    is_stream: bool,
    is_over: bool,
}

impl Http {
    pub(super) fn new(uri: Uri, bearer: Option<&Key>, key: Option<&Key>) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT_WAIT));
        connector.set_keepalive(Some(KEEPALIVE));
        let secret = |text: String| {
            let mut value = HeaderValue::try_from(text).ok()?;
            value.set_sensitive(true);
            Some(value)
        };
        let bearer = bearer.and_then(|bearer| secret(format!("Bearer {}", bearer.expose())));
        let key = key.and_then(|key| secret(key.expose().to_owned()));
        Self { client: Client::builder(TokioExecutor::new()).build(connector), uri, bearer, key }
    }

    /// Calls a tool; returns the line with the answer, and reports progress on the way.
    pub(super) async fn call(
        &self,
        call: &Call,
        lines: &mpsc::Sender<String>,
    ) -> Result<String, Failed> {
        let token = call.progress.then(|| format!(r#","progressToken":{}"#, call.asked));
        let name = text(&call.tool);
        let params = format!(r#""name":{name},"arguments":{}"#, call.arguments.get());
        let body = request(call.asked, "tools/call", &params, token.as_deref().unwrap_or(""));
        let mut messages = self.post("tools/call", Some(&call.tool), body).await?;
        while let Some(message) = messages.next().await? {
            match Message::decode(&message, Limits::default()) {
                Ok(Message::Reply(reply)) if reply.id == Id::from(call.asked) => {
                    return Ok(reply_line(call.asked, reply.outcome));
                }
                Ok(Message::Notification(told)) if told.method == "notifications/progress" => {
                    if let Some(line) = progress_line(call.asked, &told.params) {
                        // The other half may be gone, and then no one waits.
                        drop(lines.send(line).await);
                    }
                }
                Ok(Message::Reply(_) | Message::Notification(_) | Message::Request(_)) => {}
                Err(_) => return Err(Failed::broken("the daemon's answer cannot be read")),
            }
        }
        Err(Failed::broken("the daemon's answer broke off"))
    }

    /// Sends a request; returns the messages of the answer.
    pub(super) async fn post(
        &self,
        method: &str,
        name: Option<&str>,
        body: String,
    ) -> Result<Messages, Failed> {
        let mut request = Request::post(&self.uri)
            .header(ACCEPT, "application/json, text/event-stream")
            .header(CONTENT_TYPE, "application/json")
            .header("mcp-protocol-version", Version::V2026_07_28.as_str())
            .header("mcp-method", method);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        if let Some(bearer) = &self.bearer {
            request = request.header(AUTHORIZATION, bearer);
        }
        if let Some(key) = &self.key {
            request = request.header("oubliette-api-key", key);
        }
        let request = request
            .body(Full::new(Bytes::from(body)))
            .map_err(|_| Failed::refused("invalid", "the request cannot be written as HTTP"))?;
        match self.client.request(request).await {
            Ok(response) => Messages::of(response),
            Err(error) if error.is_connect() => {
                let reason = error.source().map(ToString::to_string).unwrap_or_default();
                Err(Failed::away(format!("the daemon cannot be reached: {reason}")))
            }
            Err(_) => Err(Failed::broken("the daemon went away before it answered")),
        }
    }
}

impl Messages {
    fn of(response: Response<Incoming>) -> Result<Self, Failed> {
        let kind = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
        let is_json = kind.is_some_and(|kind| kind.starts_with("application/json"));
        match response.status() {
            StatusCode::UNAUTHORIZED => Err(Failed::refused(
                "unauthenticated",
                "the session's token is invalid or no longer valid",
            )),
            StatusCode::FORBIDDEN => {
                Err(Failed::refused("forbidden", "the session's token may not do this"))
            }
            StatusCode::NOT_FOUND => Err(Failed::refused("gone", "the session has ended")),
            // Other refusals carry a JSON-RPC error.
            _ if is_stream || is_json => {
                let bytes_max = if is_stream { usize::MAX } else { LINE_BYTES_MAX };
                Ok(Self {
                    body: Limited::new(response.into_body(), bytes_max),
                    lines: Lines::new(LINE_BYTES_MAX),
                    is_stream,
                    is_over: false,
                })
            }
            StatusCode::SERVICE_UNAVAILABLE => Err(Failed::away("the daemon is busy".to_owned())),
            status => Err(Failed::broken(&format!("the daemon answered with status {status}"))),
        }
    }

    /// The next message; `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failed> {
        loop {
            if self.is_stream
                && let Some(message) = self.pop()?
            {
                return Ok(Some(message));
            }
            if self.is_over {
                return Ok(self.rest());
            }
            let frame = match self.is_stream {
                true => timeout(SILENCE_MAX, self.body.frame()).await,
                // The daemon decides how long an answer takes.
                false => Ok(self.body.frame().await),
            };
            match frame {
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.lines.room().extend_from_slice(&bytes);
                    }
                }
                Ok(None) => self.is_over = true,
                Ok(Some(Err(_))) | Err(_) => {
                    return Err(Failed::broken("the daemon's answer broke off"));
                }
            }
        }
    }

    /// Returns the next complete event: its data is one line.
    fn pop(&mut self) -> Result<Option<Vec<u8>>, Failed> {
        while let Some(line) = self.lines.pop() {
            let Line::Whole(line) = line else {
                return Err(Failed::broken("the daemon's answer is too large"));
            };
            if let Some(data) = line.strip_prefix(b"data:") {
                let data = data.trim_ascii();
                if !data.is_empty() {
                    return Ok(Some(data.to_owned()));
                }
            }
        }
        Ok(None)
    }

    /// A plain answer, which may have several lines.
    fn rest(&mut self) -> Option<Vec<u8>> {
        if self.is_stream {
            return None;
        }
        let bytes = std::mem::take(self.lines.room());
        self.lines = Lines::new(LINE_BYTES_MAX);
        (!bytes.trim_ascii().is_empty()).then_some(bytes)
    }
}

impl Failed {
    fn away(message: String) -> Self {
        Self { kind: "gone", retryable: true, certainty: "not_started", message }
    }

    pub(super) fn broken(message: &str) -> Self {
        let message = message.to_owned();
        Self { kind: "gone", retryable: true, certainty: "may_have_run", message }
    }

    fn refused(kind: &'static str, message: &str) -> Self {
        Self { kind, retryable: false, certainty: "not_started", message: message.to_owned() }
    }
}

/// A request with its protocol version.
pub(super) fn request(id: u64, method: &str, params: &str, meta: &str) -> String {
    let comma = if params.is_empty() { "" } else { "," };
    let version = Version::V2026_07_28.as_str();
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{params}{comma}"_meta":{{"io.modelcontextprotocol/protocolVersion":"{version}","io.modelcontextprotocol/clientCapabilities":{{}}{meta}}}}}}}"#
    )
}

/// A string as JSON.
pub(super) fn text(text: &str) -> String {
    serde_json::to_string(text).expect("a text can be written")
}

fn reply_line(asked: u64, outcome: Result<&RawValue, &RawValue>) -> String {
    let (name, raw) = match outcome {
        Ok(result) => ("result", result),
        Err(error) => ("error", error),
    };
    let packed = raw.get().contains(['\n', '\r']).then(|| compact(raw));
    let raw = packed.as_deref().unwrap_or(raw).get();
    format!(r#"{{"jsonrpc":"2.0","id":{asked},"{name}":{raw}}}"#)
}

fn progress_line(asked: u64, params: &Object<'_>) -> Option<String> {
    let number = |name: &str| params.get(name)?.get().parse::<f64>().ok();
    let (progress, total) = (number("progress")?, number("total").unwrap_or(100.0));
    let percent = (progress / total * 100.0).clamp(0.0, 100.0);
    let message = text(&params.text("message").unwrap_or_default());
    percent.is_finite().then(|| {
        format!(
            r#"{{"method":"progress","params":{{"id":{asked},"percent":{percent},"message":{message}}}}}"#
        )
    })
}
