//! Requests of the modern era over HTTP.

use ringback_mcp_bridge::{
    Answer, AnswerError, Endpoint, HeaderName, ModernHeaders, SendError, StatusCode, Uri,
};
use ringback_mcp_wire::{Id, Limits, Message, Object, RawValue, Version, on_one_line};
use serde::Serialize;
use tokio::sync::mpsc;

use super::Call;
use crate::lines::LINE_BYTES_MAX;
use crate::options::Key;

/// The key for the daemon's own tools.
const KEY: HeaderName = HeaderName::from_static("oubliette-api-key");

/// A session's URL.
#[derive(Debug)]
pub(super) struct Http(Endpoint);

/// Why there is no answer.
#[derive(Debug, Serialize)]
pub(super) struct RequestFailure {
    kind: &'static str,
    retryable: bool,
    certainty: &'static str,
    #[serde(skip)]
    pub(super) message: String,
}

impl Http {
    pub(super) fn new(uri: Uri, bearer: Option<&Key>, key: Option<&Key>) -> Self {
        let mut endpoint = Endpoint::new(uri, LINE_BYTES_MAX);
        if let Some(bearer) = bearer {
            endpoint = endpoint.with_bearer(bearer.expose());
        }
        if let Some(key) = key {
            endpoint = endpoint.with_secret(KEY, key.expose());
        }
        Self(endpoint)
    }

    /// Calls a tool; returns the line with the answer, and reports progress on the way.
    pub(super) async fn call(
        &self,
        call: &Call,
        lines: &mpsc::Sender<String>,
    ) -> Result<String, RequestFailure> {
        let token = call.progress.then(|| format!(r#","progressToken":{}"#, call.asked));
        let name = text(&call.tool);
        let params = format!(r#""name":{name},"arguments":{}"#, call.arguments.get());
        let body = request(call.asked, "tools/call", &params, token.as_deref().unwrap_or(""));
        let mut answer = self.post("tools/call", Some(&call.tool), body).await?;
        while let Some(message) = answer.next().await? {
            match Message::decode(message.as_bytes(), Limits::default()) {
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
                Err(_) => return Err(RequestFailure::broken("the daemon's answer cannot be read")),
            }
        }
        Err(RequestFailure::broken("the daemon's answer broke off"))
    }

    /// Sends a request; returns the messages of the answer.
    pub(super) async fn post(
        &self,
        method: &str,
        name: Option<&str>,
        body: String,
    ) -> Result<Answer, RequestFailure> {
        let version = Some(Version::V2026_07_28.as_str());
        let headers = ModernHeaders { version, method, name };
        let answer = self.0.post(&headers, body).await?;
        match answer.status() {
            StatusCode::UNAUTHORIZED => Err(RequestFailure::refused(
                "unauthenticated",
                "the session's token is invalid or no longer valid",
            )),
            StatusCode::FORBIDDEN => {
                Err(RequestFailure::refused("forbidden", "the session's token may not do this"))
            }
            StatusCode::NOT_FOUND => Err(RequestFailure::refused("gone", "the session has ended")),
            // Other refusals carry a JSON-RPC error.
            _ if answer.is_stream() || answer.is_json() => Ok(answer),
            StatusCode::SERVICE_UNAVAILABLE => {
                Err(RequestFailure::away("the daemon is busy".to_owned()))
            }
            status => {
                Err(RequestFailure::broken(&format!("the daemon answered with status {status}")))
            }
        }
    }
}

impl From<SendError> for RequestFailure {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Away { reason } => {
                Self::away(format!("the daemon cannot be reached: {reason}"))
            }
            SendError::Lost { .. } => Self::broken("the daemon went away before it answered"),
        }
    }
}

impl From<AnswerError> for RequestFailure {
    fn from(error: AnswerError) -> Self {
        Self::broken(&format!("the daemon's answer {error}"))
    }
}

impl RequestFailure {
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
    let raw = on_one_line(raw);
    let raw = raw.get();
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
