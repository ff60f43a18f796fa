//! One message to the daemon, and its answer.

use bytes::Bytes;
use hyper::StatusCode;
use hyper::header::HeaderValue;
use ringback_mcp_wire::{
    Code, Fault, Id, Limits, Message, Object, RawValue, compact, keys, outgoing,
};
use tokio::sync::mpsc;

use super::daemon::{Daemon, SESSION_ID, Session};
use super::events::{self, StreamEnd};
use crate::{Answer, Endpoint, ModernHeaders, SendError};

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
        let mut answer = self.send(daemon).await?;
        if answer.is_stream() {
            return self.pump(daemon, answer, lines).await;
        }
        let (status, body) = (answer.status(), text(&mut answer).await?);
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

    async fn send(&self, daemon: &Daemon) -> Result<Answer, Fault> {
        let Kind::Modern { version, method, name } = &self.kind else {
            return self.send_in_session(daemon).await;
        };
        let headers = ModernHeaders { version: version.as_deref(), method, name: name.as_deref() };
        let sent = daemon.endpoint.post(&headers, self.line.clone()).await;
        sent.map_err(|error| unreachable(&daemon.endpoint, &error))
    }

    /// Sends it in the MCP session; reopens the MCP session if the daemon was restarted.
    async fn send_in_session(&self, daemon: &Daemon) -> Result<Answer, Fault> {
        let session = daemon.session().await;
        let send = |session: Option<Session>| async move {
            let sent = daemon.post(session.as_ref(), self.line.clone()).await;
            sent.map_err(|error| unreachable(&daemon.endpoint, &error))
        };
        let answer = send(session.clone()).await?;
        let Some(lost) = session.filter(|_| answer.status() == StatusCode::NOT_FOUND) else {
            return Ok(answer);
        };
        send(Some(reopen(daemon, &lost).await?)).await
    }

    /// Passes on a stream; one that breaks off is resumed after its last event.
    async fn pump(
        &self,
        daemon: &Daemon,
        mut stream: Answer,
        lines: &mpsc::Sender<String>,
    ) -> Result<(), Fault> {
        let mut last_event = None;
        for _ in 0..RESUMES_MAX {
            match events::pump(&mut stream, self.id.as_ref(), lines).await {
                StreamEnd::Answered | StreamEnd::NobodyReads => return Ok(()),
                StreamEnd::Ended => {}
            }
            let event = stream.last_event_id().and_then(|id| HeaderValue::from_str(id).ok());
            last_event = event.or(last_event);
            let (Kind::Legacy, Some(event), Some(session)) =
                (&self.kind, &last_event, daemon.session().await)
            else {
                break;
            };
            let resumed = daemon.listen(&session, Some(event.clone())).await;
            stream = resumed.map_err(|error| unreachable(&daemon.endpoint, &error))?;
            if !stream.is_stream() {
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
    let sent = daemon.post(None, initialize.clone()).await;
    let mut answer = sent.map_err(|error| unreachable(&daemon.endpoint, &error))?;
    let id = answer.head().headers.get(SESSION_ID).cloned();
    let (status, body) = (answer.status(), text(&mut answer).await?);
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
    let sent = daemon.post(Some(&session), ready).await;
    sent.map_err(|error| unreachable(&daemon.endpoint, &error))?;
    Ok(session)
}

fn version_of(body: &str) -> Option<HeaderValue> {
    let object = Object::parse(body.as_bytes()).ok()?;
    let result = Object::of(object.get("result")?).ok()?;
    HeaderValue::from_str(&result.text("protocolVersion")?).ok()
}

/// The server's version, from the stamp of a modern result.
pub(super) fn server_version(body: &str) -> Option<String> {
    let object = Object::parse(body.as_bytes()).ok()?;
    let result = Object::of(object.get("result")?).ok()?;
    let meta = Object::of(result.get("_meta")?).ok()?;
    let server = Object::of(meta.get(keys::SERVER_INFO)?).ok()?;
    server.text("version").map(|version| version.into_owned())
}

/// The whole text of an answer that is not a stream.
async fn text(answer: &mut Answer) -> Result<String, Fault> {
    let whole = answer.next().await;
    let whole =
        whole.map_err(|error| Fault::new(Code::Internal, format!("the daemon's answer {error}")));
    whole.map(Option::unwrap_or_default)
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

fn unreachable(endpoint: &Endpoint, error: &SendError) -> Fault {
    let address = endpoint.address();
    tracing::warn!(%error, address, "cannot reach the daemon");
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
