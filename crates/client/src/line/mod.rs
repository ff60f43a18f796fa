//! Holds a line over HTTP: registers tools, keeps a stream open, and receives the calls on it.
//!
//! A lost stream is opened again, with increasing pauses; the daemon sends unanswered calls again,
//! under the same ids, for as long as the line's grace period lasts.

mod audit;
mod caller;
mod error;
mod http;
mod party;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use ringback_proto::secret::Secret;
use ringback_sse::{Event, Parser};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;

pub use self::audit::{AuditCall, AuditEntry, AuditPage};
pub use self::caller::{ClientAnswer, LineCaller};
pub use self::error::LineError;
use self::http::{Http, HttpRequest, StreamingBody};
use self::party::json;
pub use self::party::{LineParty, LineResult};

/// The first pause before a lost stream is opened again; each further one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
/// Short enough that a restarted daemon is found while people watch.
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// The configuration of a line: the daemon, the credentials and the tools.
#[derive(Debug, Clone)]
pub struct LineConfig {
    /// The daemon's HTTP listener, such as `127.0.0.1:7180`. Plain HTTP sends the token in clear
    /// text: only for loopback.
    pub address: String,
    /// The token; not needed for a daemon that runs open.
    pub token: Option<Secret>,
    /// The line's name.
    pub client_id: String,
    /// How long calls wait after the stream is lost.
    pub grace: Duration,
    /// The offered tools.
    pub tools: Vec<LineTool>,
    /// The maximum size of a call.
    pub call_bytes_max: usize,
    /// A stream without any data for this long, not even a ping, is dead.
    pub silence_max: Duration,
}

/// A tool to offer.
#[derive(Debug, Clone, Serialize)]
pub struct LineTool {
    /// Its name on the line.
    pub id: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its input; any object if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Box<RawValue>>,
    /// How long a call may take.
    #[serde(rename = "timeoutMs", skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

/// A call to run.
#[derive(Debug, Clone, Deserialize)]
pub struct LineCall {
    /// The id to answer with. The same id again means the same call.
    #[serde(rename = "requestID")]
    pub request_id: String,
    /// The tool's full name.
    pub tool: String,
    /// The input, as the caller wrote it.
    pub input: Box<RawValue>,
}

/// An event on a line.
#[derive(Debug)]
pub enum LineEvent {
    /// A new call, or an unanswered one again.
    Call(LineCall),
    /// The answer to this call is no longer wanted.
    Cancel {
        /// The id of the call.
        request_id: String,
        /// The reason.
        reason: String,
    },
    /// The stream is lost and will be opened again.
    Lost {
        /// The reason.
        reason: String,
    },
    /// The stream is open again.
    Back {
        /// Whether the daemon had forgotten the line: then no earlier call is waiting for an
        /// answer.
        registered_again: bool,
    },
}

/// An open line. Dropping it closes its stream; [`Line::close`] also withdraws the tools.
#[derive(Debug)]
#[must_use = "a line that is dropped gets no calls"]
pub struct Line {
    config: LineConfig,
    http: Arc<Http>,
    full_names: Vec<String>,
    state: State,
}

#[derive(Debug)]
enum State {
    Up(Box<Stream>),
    Down { retry_at: Instant, pause: Duration },
}

#[derive(Debug)]
struct Stream {
    coming: StreamingBody,
    events: Parser,
    heard_at: Instant,
}

#[derive(Serialize)]
struct Register<'a> {
    #[serde(rename = "clientID")]
    client_id: &'a str,
    tools: &'a [LineTool],
    #[serde(rename = "graceMs")]
    grace_ms: u64,
}

#[derive(Deserialize)]
struct RegisterAnswer {
    registered: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Unregister<'a> {
    #[serde(rename = "clientID")]
    client_id: &'a str,
    #[serde(rename = "toolIDs")]
    tool_ids: Vec<&'a str>,
}

/// A tool as the daemon lists it.
#[derive(Deserialize)]
struct ListedTool {
    id: String,
}

#[derive(Deserialize)]
struct Cancel {
    #[serde(rename = "requestID")]
    request_id: String,
    #[serde(default)]
    reason: String,
}

impl LineConfig {
    /// Twice the default limit of a request body.
    pub const CALL_BYTES_MAX: usize = 32 << 20;
    /// A little more than three of the daemon's usual ping intervals.
    pub const SILENCE_MAX: Duration = Duration::from_secs(100);

    /// Makes the configuration of a line without tools, with the default limits and no grace
    /// period.
    #[must_use]
    pub fn new(address: impl Into<String>, client_id: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            token: None,
            client_id: client_id.into(),
            grace: Duration::ZERO,
            tools: Vec::new(),
            call_bytes_max: Self::CALL_BYTES_MAX,
            silence_max: Self::SILENCE_MAX,
        }
    }
}

impl Line {
    /// Registers the tools and opens the stream.
    ///
    /// # Errors
    /// If the daemon cannot be reached, or refuses the token or a tool.
    pub async fn open(config: LineConfig) -> Result<Self, LineError> {
        let http = Arc::new(Http::new(config.address.clone(), config.token.as_ref())?);
        let state = State::Down { retry_at: Instant::now(), pause: PAUSE_FIRST };
        let mut line = Self { config, http, full_names: Vec::new(), state };
        line.full_names = line.register().await?;
        line.state = State::Up(Box::new(line.stream().await?));
        Ok(line)
    }

    /// Returns the names under which the tools are called.
    #[must_use]
    pub fn full_names(&self) -> &[String] {
        &self.full_names
    }

    /// Returns a handle for answering calls.
    #[must_use]
    pub fn party(&self) -> LineParty {
        LineParty::new(Arc::clone(&self.http))
    }

    /// Returns the next event.
    ///
    /// # Errors
    /// When the daemon no longer lets this party hold the line; nothing follows.
    ///
    /// # Cancel safety
    /// Dropping the wait loses nothing.
    pub async fn next(&mut self) -> Result<LineEvent, LineError> {
        loop {
            match &mut self.state {
                State::Up(stream) => match stream.next(self.config.silence_max).await {
                    Ok(event) => {
                        if let Some(event) = read(&event) {
                            return Ok(event);
                        }
                    }
                    Err(reason) => {
                        let (retry_at, pause) = (Instant::now() + PAUSE_FIRST, PAUSE_FIRST);
                        self.state = State::Down { retry_at, pause };
                        return Ok(LineEvent::Lost { reason });
                    }
                },
                State::Down { retry_at, pause } => {
                    let (at, pause) = (*retry_at, *pause);
                    tokio::time::sleep_until(at).await;
                    match self.reopen().await {
                        Ok(registered_again) => return Ok(LineEvent::Back { registered_again }),
                        Err(error) if error.is_final() => return Err(error),
                        Err(error) => {
                            tracing::debug!(%error, "cannot reopen the line yet");
                            let pause = pause.saturating_mul(2).min(PAUSE_MAX);
                            self.state = State::Down { retry_at: Instant::now() + pause, pause };
                        }
                    }
                }
            }
        }
    }

    /// Withdraws the tools and closes the stream.
    ///
    /// # Errors
    /// If the daemon cannot be notified; it still notices the end of the stream.
    pub async fn close(self) -> Result<(), LineError> {
        let tool_ids = self.config.tools.iter().map(|tool| &*tool.id).collect();
        let body = json(&Unregister { client_id: &self.config.client_id, tool_ids });
        let ask = HttpRequest {
            action: "withdraw the tools",
            method: Method::DELETE,
            path: "/client-tools/unregister".to_owned(),
            body: Some(body),
        };
        self.http.ask(ask).await.map(drop)
    }

    /// Opens the stream again. Returns whether the tools had to be registered again.
    async fn reopen(&mut self) -> Result<bool, LineError> {
        // The stream first: it ends the grace period, so that the line cannot lapse between the
        // two.
        let stream = self.stream().await?;
        let registered_again = !self.is_registered().await?;
        if registered_again {
            self.full_names = self.register().await?;
        }
        self.state = State::Up(Box::new(stream));
        Ok(registered_again)
    }

    async fn register(&self) -> Result<Vec<String>, LineError> {
        let action = "register the tools";
        let LineConfig { client_id, tools, grace, .. } = &self.config;
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let body = Some(json(&Register { client_id, tools, grace_ms }));
        let path = "/client-tools/register".to_owned();
        let answer =
            self.http.ask(HttpRequest { action, method: Method::POST, path, body }).await?;
        read_json::<RegisterAnswer>(action, &answer).map(|answer| answer.registered)
    }

    async fn is_registered(&self) -> Result<bool, LineError> {
        let action = "list the tools of the line";
        let path = format!("/client-tools/tools/{}", self.id_in_path());
        let answer =
            self.http.ask(HttpRequest { action, method: Method::GET, path, body: None }).await?;
        let listed = read_json::<Vec<ListedTool>>(action, &answer)?;
        Ok(self.full_names.iter().all(|name| listed.iter().any(|tool| tool.id == *name)))
    }

    async fn stream(&self) -> Result<Stream, LineError> {
        let path = format!("/client-tools/pending/{}", self.id_in_path());
        let ask = HttpRequest { action: "open the stream", method: Method::GET, path, body: None };
        let coming = self.http.open(ask).await?;
        let events = Parser::new(self.config.call_bytes_max);
        Ok(Stream { coming, events, heard_at: Instant::now() })
    }

    fn id_in_path(&self) -> impl std::fmt::Display {
        utf8_percent_encode(&self.config.client_id, NON_ALPHANUMERIC)
    }
}

impl Stream {
    /// Returns the next event, or why there will not be one.
    async fn next(&mut self, silence_max: Duration) -> Result<Event, String> {
        loop {
            if let Some(event) = self.events.next_event().map_err(|error| error.to_string())? {
                return Ok(event);
            }
            let frame = self.coming.body.frame();
            let frame = tokio::time::timeout_at(self.heard_at + silence_max, frame)
                .await
                .map_err(|_| format!("no data for {silence_max:?}"))?;
            let frame =
                frame.ok_or("the daemon closed the stream")?.map_err(|error| error.to_string())?;
            self.heard_at = Instant::now();
            if let Some(bytes) = frame.data_ref() {
                self.events.push(bytes);
            }
        }
    }
}

/// Parses an event, if it matters here: pings and unknown events do not.
fn read(event: &Event) -> Option<LineEvent> {
    match &*event.name {
        "tool-request" => match serde_json::from_str(&event.data) {
            Ok(call) => Some(LineEvent::Call(call)),
            Err(error) => {
                tracing::warn!(%error, "ignoring a malformed call");
                None
            }
        },
        "tool-cancel" => match serde_json::from_str(&event.data) {
            Ok(Cancel { request_id, reason }) => Some(LineEvent::Cancel { request_id, reason }),
            Err(error) => {
                tracing::warn!(%error, "ignoring a malformed cancel");
                None
            }
        },
        _ => None,
    }
}

fn read_json<T: for<'a> Deserialize<'a>>(
    action: &'static str,
    answer: &Bytes,
) -> Result<T, LineError> {
    serde_json::from_slice(answer)
        .map_err(|error| LineError::Unreadable { action, reason: error.to_string() })
}
