//! A session at a URL: the second half of the program, which talks MCP over HTTP to the daemon and,
//! over a pipe in memory, the protocol of a session's socket to the half that serves the agent. So
//! every rule of the socket holds here too.

mod http;
mod tool_updates;

use std::sync::Arc;

use ringback_mcp_bridge::{RunningRequests, Uri};
use ringback_mcp_wire::{Line, Object, RawValue};
use serde::Serialize;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use self::http::{Http, RequestFailure};
use crate::lines::LineReader;
use crate::options::Key;
use crate::outbox::Outbox;
use crate::relay::REMOTE_CALL;

/// Lines from calls waiting to be passed on.
const LINES_MAX: usize = 16;
/// While this much waits to be passed on, no more is taken from calls.
const OUTBOX_BYTES_MAX: usize = 1024 * 1024;

/// The half that talks HTTP.
#[derive(Debug)]
pub(crate) struct Remote {
    http: Arc<Http>,
    far: DuplexStream,
}

/// A call of a tool of the session.
#[derive(Debug)]
struct Call {
    asked: u64,
    tool: String,
    arguments: Box<RawValue>,
    progress: bool,
}

impl Remote {
    pub(crate) fn new(
        uri: Uri,
        bearer: Option<&Key>,
        key: Option<&Key>,
        far: DuplexStream,
    ) -> Self {
        Self { http: Arc::new(Http::new(uri, bearer, key)), far }
    }

    /// Serves the other half until it closes its end.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the running requests.
    pub(crate) async fn run(self) {
        let Self { http, far } = self;
        let (reader, mut writer) = tokio::io::split(far);
        let mut reader = LineReader::new(reader);
        let mut outbox = Outbox::default();
        let (lines, mut queue) = mpsc::channel(LINES_MAX);
        let mut running = RunningRequests::default();
        running.start(None, tool_updates::follow(Arc::clone(&http), lines.clone()));
        loop {
            tokio::select! {
                filled = reader.fill() => {
                    while let Some(line) = reader.pop() {
                        on_line(&line, &mut running, &http, &lines);
                    }
                    if !filled.is_ok_and(|is_more| is_more) {
                        return;
                    }
                }
                Some(line) = queue.recv(), if outbox.len() < OUTBOX_BYTES_MAX => outbox.push(&line),
                flushed = outbox.flush(&mut writer), if !outbox.is_empty() => {
                    if flushed.is_err() {
                        return;
                    }
                }
                Some(()) = running.ended() => {}
            }
        }
    }
}

/// Starts the call of a line, or cancels the one that it names.
fn on_line(
    line: &Line<'_>,
    running: &mut RunningRequests<u64>,
    http: &Arc<Http>,
    lines: &mpsc::Sender<String>,
) {
    let Line::Whole(line) = line else { return };
    match Call::decode(line) {
        Some(call) => running.start(Some(call.asked), call.run(Arc::clone(http), lines.clone())),
        None => {
            // One that has ended meanwhile needs no cancel.
            if let Some(asked) = cancelled(line) {
                running.cancel(&asked);
            }
        }
    }
}

impl Call {
    fn decode(line: &[u8]) -> Option<Self> {
        let object = Object::parse(line).ok()?;
        let params = Object::of(object.get("params")?).ok()?;
        (object.text("method")? == REMOTE_CALL).then_some(())?;
        Some(Self {
            asked: object.get("id")?.get().parse().ok()?,
            tool: params.text("tool")?.into_owned(),
            arguments: params.get("arguments")?.to_owned(),
            progress: params.get("progress").is_some_and(|raw| raw.get() == "true"),
        })
    }

    async fn run(self, http: Arc<Http>, lines: mpsc::Sender<String>) {
        let line = match http.call(&self, &lines).await {
            Ok(line) => line,
            Err(failed) => failed.line(Some(self.asked)),
        };
        // The other half may be gone, and then no one waits.
        drop(lines.send(line).await);
    }
}

impl RequestFailure {
    /// The line that reports it; without a request it is for the log.
    fn line(&self, asked: Option<u64>) -> String {
        #[derive(Serialize)]
        struct Reply<'a> {
            jsonrpc: &'static str,
            id: Option<u64>,
            error: Body<'a>,
        }
        #[derive(Serialize)]
        struct Body<'a> {
            code: i32,
            message: &'a str,
            data: &'a RequestFailure,
        }
        let error = Body { code: -32000, message: &self.message, data: self };
        let line = serde_json::to_string(&Reply { jsonrpc: "2.0", id: asked, error });
        line.expect("plain data can be written")
    }
}

/// The request that a line cancels.
fn cancelled(line: &[u8]) -> Option<u64> {
    let object = Object::parse(line).ok()?;
    (object.text("method")? == "cancel").then_some(())?;
    Object::of(object.get("params")?).ok()?.get("id")?.get().parse().ok()
}
