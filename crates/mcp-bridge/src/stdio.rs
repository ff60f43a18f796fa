//! MCP on standard input and output, through a daemon's `/mcp`: each input line is one message.
//! Messages pass unchanged; this module adds headers and keeps the MCP session.

mod daemon;
mod events;
mod exchange;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ringback_mcp_wire::{Code, Era, Fault, Id, Limits, Message, Object, Version, keys, outgoing};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::daemon::Daemon;
use self::exchange::{Exchange, Kind};
use crate::{Endpoint, RunningRequests};

/// Concurrent requests; a client has a handful.
const UNDER_WAY_MAX: usize = 256;
/// Lines waiting for standard output: a client that does not read delays only its own answers.
const LINES_MAX: usize = 64;
/// How long answers may still arrive after the end of the input; clients then lose patience.
const END_GRACE: Duration = Duration::from_millis(1500);

/// Passes input lines on until the input ends or `output` is closed.
///
/// # Errors
/// When the input cannot be read.
///
/// # Cancel safety
/// Dropping the future drops the running requests, which cancels them.
pub async fn serve(
    endpoint: Endpoint,
    input: impl AsyncBufRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> std::io::Result<()> {
    let (lines, queue) = mpsc::channel(LINES_MAX);
    let mut bridge = Bridge {
        daemon: Arc::new(Daemon::new(endpoint)),
        lines,
        running: RunningRequests::default(),
        has_news: false,
    };
    let mut writer = JoinSet::new();
    writer.spawn(write(queue, output));
    let read = tokio::select! {
        read = bridge.read(input) => read,
        _ = writer.join_next() => Ok(()),
    };
    bridge.end().await;
    drop(timeout(END_GRACE, writer.join_next()).await);
    read
}

/// Asks a daemon for its version, with a token that it must accept.
///
/// # Errors
/// Why there is no answer, and what to do.
///
/// # Cancel safety
/// Dropping the future leaves nothing behind.
pub async fn version(endpoint: Endpoint) -> Result<String, Fault> {
    let line = Bytes::from_static(
        br#"{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    );
    let kind = Kind::Modern {
        version: Some(Version::V2026_07_28.as_str().to_owned()),
        method: "server/discover".to_owned(),
        name: None,
    };
    let (lines, mut answers) = mpsc::channel(1);
    let exchange = Exchange { line, id: Some(Id::from(1)), kind };
    exchange.exchanged(&Daemon::new(endpoint), &lines).await?;
    answers
        .try_recv()
        .ok()
        .as_deref()
        .and_then(exchange::server_version)
        .ok_or_else(|| Fault::new(Code::Internal, "what answers there is not a Ringback daemon"))
}

struct Bridge {
    daemon: Arc<Daemon>,
    lines: mpsc::Sender<String>,
    /// Modern requests are cancelled by their id.
    running: RunningRequests<Id>,
    has_news: bool,
}

impl Bridge {
    async fn read(&mut self, mut input: impl AsyncBufRead + Unpin) -> std::io::Result<()> {
        let bytes_max = Limits::default().bytes_max as u64;
        let (mut line, mut is_rest) = (Vec::new(), false);
        while (&mut input).take(bytes_max + 1).read_until(b'\n', &mut line).await? > 0 {
            // Only the end of the input and a line that is too long lack it.
            let is_cut = line.len() as u64 > bytes_max && !line.ends_with(b"\n");
            let bytes = Bytes::copy_from_slice(line.trim_ascii());
            line.clear();
            // A line that is too long is refused once, at its first piece.
            if !bytes.is_empty() && !is_rest {
                self.on_line(bytes).await;
            }
            is_rest = is_cut;
            self.running.reap();
        }
        Ok(())
    }

    async fn on_line(&mut self, line: Bytes) {
        let message = match Message::decode(&line, Limits::default()) {
            Ok(message) => message,
            Err(malformed) => {
                return self.say(outgoing::error(malformed.id.as_ref(), &malformed.fault)).await;
            }
        };
        let kind = kind(&message);
        match message {
            Message::Request(request) => {
                let is_handshake = request.method == "initialize";
                self.on_request(
                    Exchange { line: line.clone(), id: Some(request.id), kind },
                    is_handshake,
                )
                .await;
            }
            Message::Notification(told) => {
                let cancelled = (told.method == "notifications/cancelled")
                    .then(|| told.params.get("requestId").and_then(Id::from_raw))
                    .flatten();
                if cancelled.is_some_and(|id| self.running.cancel(&id)) {
                    return;
                }
                let is_ready = told.method == "notifications/initialized";
                // In order: later messages may depend on it.
                Exchange { line: line.clone(), id: None, kind }
                    .run(&self.daemon, &self.lines)
                    .await;
                if is_ready && !self.has_news {
                    self.has_news = true;
                    let news = events::news(Arc::clone(&self.daemon), self.lines.clone());
                    self.running.start(None, news);
                }
            }
            Message::Reply(_) => {
                Exchange { line: line.clone(), id: None, kind }
                    .run(&self.daemon, &self.lines)
                    .await;
            }
        }
    }

    async fn on_request(&mut self, exchange: Exchange, is_handshake: bool) {
        if is_handshake && exchange.kind == Kind::Legacy {
            return exchange.shake_hands(&self.daemon, &self.lines).await;
        }
        if self.running.len() >= UNDER_WAY_MAX {
            let fault = Fault::new(Code::Internal, "too many requests are running");
            return self.say(outgoing::error(exchange.id.as_ref(), &fault)).await;
        }
        let modern_id = exchange.id.clone().filter(|_| exchange.kind != Kind::Legacy);
        let (daemon, lines) = (Arc::clone(&self.daemon), self.lines.clone());
        self.running.start(modern_id, async move { exchange.run(&daemon, &lines).await });
    }

    async fn say(&self, line: String) {
        // A closed output ends the whole program soon.
        drop(self.lines.send(line).await);
    }

    /// Waits for answers that are about to arrive, then ends the MCP session.
    async fn end(mut self) {
        let n_endless = usize::from(self.has_news);
        let last_answers = async {
            while self.running.len() > n_endless {
                if self.running.ended().await.is_none() {
                    return;
                }
            }
        };
        drop(timeout(END_GRACE, last_answers).await);
        self.running.shutdown().await;
        drop(timeout(END_GRACE, self.daemon.leave()).await);
    }
}

/// How a message must be sent.
fn kind(message: &Message<'_>) -> Kind {
    let (method, params) = match message {
        Message::Request(request) => (&request.method, &request.params),
        Message::Notification(told) => (&told.method, &told.params),
        Message::Reply(_) => return Kind::Legacy,
    };
    let meta = params.get("_meta").and_then(|raw| Object::of(raw).ok()).unwrap_or_default();
    match (meta.text(keys::PROTOCOL_VERSION), method.as_ref()) {
        (None, method) if method != "server/discover" => Kind::Legacy,
        (version, method) => {
            let name = match method {
                "resources/read" => params.text("uri"),
                _ => params.text("name"),
            };
            Kind::Modern {
                version: version.map(|version| version.into_owned()),
                method: method.to_owned(),
                name: name.map(|name| name.into_owned()),
            }
        }
    }
}

async fn write(
    mut lines: mpsc::Receiver<String>,
    mut output: impl AsyncWrite + Unpin,
) -> std::io::Result<()> {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        if lines.is_empty() {
            output.flush().await?;
        }
    }
    output.flush().await
}

/// The era whose rules an answer to a message follows.
impl Kind {
    const fn era(&self) -> Era {
        match self {
            Self::Legacy => Era::Legacy,
            Self::Modern { .. } => Era::Modern,
        }
    }
}
