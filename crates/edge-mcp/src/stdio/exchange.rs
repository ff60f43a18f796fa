//! One message to the daemon, and its answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Incoming;
use hyper::{Method, Response, StatusCode};
use ringback_mcp_wire::{
    Code, Fault, Id, Limits, Message, Object, RawValue, compact, keys, outgoing,
};
use tokio::sync::mpsc;

use super::daemon::{Daemon, Session};
use super::events::{self, Pumped};

/// The largest accepted answer.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How often a broken stream is resumed.
const RESUMES_MAX: usize = 5;

/// A message on its way.
#[derive(Debug)]
pub(super) struct Exchange {
    pub(super) line: Bytes,
    /// The id of a request; other messages are not answered.
    pub(super) id: Option<Id>,
    pub(super) kind: Kind,
}

/// How a message must be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// In the MCP session.
    Legacy,
    /// On its own, with headers that match its body.
    Modern {
        /// The version.
        version: Option<String>,
        /// The method.
        method: String,
        /// The target of the request.
        name: Option<String>,
    },
}

impl Exchange {
    /// Sends it and passes on the answer.
    pub(super) async fn run(&self, daemon: &Daemon, lines: &mpsc::Sender<String>) {
        if let Err(fault) = self.exchanged(daemon, lines).await {
            self.say(lines, &fault).await;
        }
    }

    /// Opens an MCP session.
    pub(super) async fn shake_hands(&self, daemon: &Daemon, lines: &mpsc::Sender<String>) {
        match open(daemon, &self.line).await {
            Ok(answer) => drop(lines.send(answer).await),
            Err(fault) => self.say(lines, &fault).await,
        }
    }

    /// Sends it and passes on the answer, or returns why no answer came.
    pub(super) async fn exchanged(
        &self,
        daemon: &Daemon,
        lines: &mpsc::Sender<String>,
    ) -> Result<(), Fault> {
        let response = self.send(daemon).await?;
        let status = response.status();
        if is_stream(&response) {
            return self.pump(daemon, response, lines).await;
        }
        let body = text(response).await?;
        if self.id.is_none() || (status.is_success() && body.is_empty()) {
            return Ok(());
        }
        match Message::decode(body.as_bytes(), Limits::default()) {
            Ok(Message::Reply(_)) => {
                drop(lines.send(on_one_line(body)).await);
                Ok(())
            }
            Ok(_) | Err(_) => Err(refused(status, &body)),
        }
    }

    async fn send(&self, daemon: &Daemon) -> Result<Response<Incoming>, Fault> {
        let Kind::Modern { version, method, name } = &self.kind else {
            return self.send_in_session(daemon).await;
        };
        let name = name.as_deref().map(header_text);
        let mut headers = vec![("mcp-method", method.as_str())];
        headers.extend(version.as_deref().map(|version| ("mcp-protocol-version", version)));
        headers.extend(name.as_deref().map(|name| ("mcp-name", name)));
        let sent = daemon.send(Method::POST, &headers, None, self.line.clone()).await;
        sent.map_err(|error| unreachable(daemon, &error))
    }

    /// Sends it in the MCP session; reopens the MCP session if the daemon was restarted.
    async fn send_in_session(&self, daemon: &Daemon) -> Result<Response<Incoming>, Fault> {
        let session = daemon.session().await;
        let send = |session: Option<Session>| async move {
            let sent = daemon.send(Method::POST, &[], session.as_ref(), self.line.clone()).await;
            sent.map_err(|error| unreachable(daemon, &error))
        };
        let response = send(session.clone()).await?;
        let Some(lost) = session.filter(|_| response.status() == StatusCode::NOT_FOUND) else {
            return Ok(response);
        };
        send(Some(reopen(daemon, &lost).await?)).await
    }

    async fn pump(
        &self,
        daemon: &Daemon,
        mut response: Response<Incoming>,
        lines: &mpsc::Sender<String>,
    ) -> Result<(), Fault> {
        let mut last_event = None;
        for _ in 0..RESUMES_MAX {
            match events::pump(response, self.id.as_ref(), &mut last_event, lines).await {
                Pumped::Answered | Pumped::NobodyReads => return Ok(()),
                Pumped::Ended => {}
            }
            let (Kind::Legacy, Some(event), Some(session)) =
                (&self.kind, &last_event, daemon.session().await)
            else {
                break;
            };
            let headers = [("last-event-id", event.as_str())];
            let sent = daemon.send(Method::GET, &headers, Some(&session), Bytes::new()).await;
            response = sent.map_err(|error| unreachable(daemon, &error))?;
            if !is_stream(&response) {
                break;
            }
        }
        Err(Fault::new(Code::Internal, "the daemon's answer broke off; the call may have run"))
    }

    async fn say(&self, lines: &mpsc::Sender<String>, fault: &Fault) {
        match &self.id {
            Some(id) => drop(lines.send(outgoing::error(Some(id), fault)).await),
            None => {
                tracing::warn!(era = ?self.kind.era(), %fault, "the daemon refused a message")
            }
        }
    }
}

/// Opens an MCP session and returns the daemon's answer.
async fn open(daemon: &Daemon, initialize: &Bytes) -> Result<String, Fault> {
    let sent = daemon.send(Method::POST, &[], None, initialize.clone()).await;
    let response = sent.map_err(|error| unreachable(daemon, &error))?;
    let status = response.status();
    let id = response.headers().get("mcp-session-id").and_then(|value| value.to_str().ok());
    let id = id.map(str::to_owned);
    let body = text(response).await?;
    let Some((id, version)) = id.zip(version_of(&body)) else {
        return Err(refused(status, &body));
    };
    daemon.set_session(Session { id, version, initialize: initialize.clone() }).await;
    Ok(on_one_line(body))
}

/// Reopens an MCP session that the daemon no longer knows.
async fn reopen(daemon: &Daemon, lost: &Session) -> Result<Session, Fault> {
    let _one_at_a_time = daemon.handshake.lock().await;
    let gone = || Fault::new(Code::Internal, "the daemon has lost the MCP session");
    let current = daemon.session().await.ok_or_else(gone)?;
    if current.id != lost.id {
        return Ok(current);
    }
    open(daemon, &lost.initialize).await?;
    let session = daemon.session().await.ok_or_else(gone)?;
    let ready = Bytes::from_static(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let sent = daemon.send(Method::POST, &[], Some(&session), ready).await;
    sent.map_err(|error| unreachable(daemon, &error))?;
    Ok(session)
}

fn version_of(body: &str) -> Option<String> {
    let object = Object::parse(body.as_bytes()).ok()?;
    let result = Object::of(object.get("result")?).ok()?;
    result.text("protocolVersion").map(|version| version.into_owned())
}

/// The server's version, from the stamp of a modern result.
pub(super) fn server_version(body: &str) -> Option<String> {
    let object = Object::parse(body.as_bytes()).ok()?;
    let result = Object::of(object.get("result")?).ok()?;
    let meta = Object::of(result.get("_meta")?).ok()?;
    let server = Object::of(meta.get(keys::SERVER_INFO)?).ok()?;
    server.text("version").map(|version| version.into_owned())
}

pub(super) fn is_stream(response: &Response<Incoming>) -> bool {
    let kind = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    response.status().is_success() && kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
}

async fn text(response: Response<Incoming>) -> Result<String, Fault> {
    let broken = |what: String| Fault::new(Code::Internal, what);
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let bytes = body.map_err(|error| broken(format!("the daemon's answer broke off: {error}")))?;
    String::from_utf8(bytes.to_bytes().into())
        .map_err(|_| broken("the daemon's answer is not UTF-8".to_owned()))
}

/// A name in the form that a header can carry.
fn header_text(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| (0x20..0x7f).contains(&byte))
        && name.trim() == name
        && !name.starts_with("=?base64?");
    if is_plain { name.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(name)) }
}

pub(super) fn on_one_line(body: String) -> String {
    if !body.contains(['\n', '\r']) {
        return body;
    }
    match serde_json::from_str::<&RawValue>(&body) {
        Ok(raw) => compact(raw).get().to_owned(),
        Err(_) => body.replace(['\n', '\r'], " "),
    }
}

fn unreachable(daemon: &Daemon, error: &hyper_util::client::legacy::Error) -> Fault {
    tracing::warn!(%error, address = daemon.address(), "cannot reach the daemon");
    let address = daemon.address();
    let message = format!("no daemon answers at {address}; start one with `ringback serve`");
    Fault::new(Code::Internal, message)
}

/// The daemon's error about a message that it refused.
fn refused(status: StatusCode, body: &str) -> Fault {
    let said = Object::parse(body.as_bytes()).ok().and_then(|object| {
        let error = Object::of(object.get("error")?).ok()?;
        error.text("message").map(|message| message.into_owned())
    });
    let said = said.unwrap_or_else(|| format!("the daemon answered with status {status}"));
    let hint = match status {
        StatusCode::UNAUTHORIZED => "; set RINGBACK_API_KEY to a token it knows",
        _ => "",
    };
    Fault::new(Code::Internal, format!("{said}{hint}"))
}
