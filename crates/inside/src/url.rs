//! A session at a URL: the second half of the program, which talks MCP over HTTP to the daemon and,
//! over a pipe in memory, the protocol of a session's socket to the half that serves the agent. So
//! every rule of the socket holds here too.

mod http;
mod news;

use std::collections::HashMap;
use std::sync::Arc;

use hyper::Uri;
use ringback_mcp_wire::{Line, Object, RawValue};
use serde::Serialize;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use self::http::{Failed, Http};
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

/// The running requests.
#[derive(Debug, Default)]
struct UnderWay {
    tasks: JoinSet<Option<u64>>,
    /// Dropping a call's stream cancels it.
    calls: HashMap<u64, AbortHandle>,
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
        let mut under_way = UnderWay::default();
        under_way.tasks.spawn(news::follow(Arc::clone(&http), lines.clone()));
        loop {
            tokio::select! {
                filled = reader.fill() => {
                    while let Some(line) = reader.pop() {
                        under_way.on_line(&line, &http, &lines);
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
                Some(ended) = under_way.tasks.join_next() => under_way.on_ended(ended.ok().flatten()),
            }
        }
    }
}

impl UnderWay {
    fn on_line(&mut self, line: &Line<'_>, http: &Arc<Http>, lines: &mpsc::Sender<String>) {
        let Line::Whole(line) = line else { return };
        match Call::decode(line) {
            Some(call) => {
                let asked = call.asked;
                let handle = self.tasks.spawn(call.run(Arc::clone(http), lines.clone()));
                self.calls.insert(asked, handle);
            }
            None => {
                if let Some(call) = cancelled(line).and_then(|asked| self.calls.remove(&asked)) {
                    call.abort();
                }
            }
        }
    }

    fn on_ended(&mut self, asked: Option<u64>) {
        if let Some(asked) = asked {
            self.calls.remove(&asked);
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

    async fn run(self, http: Arc<Http>, lines: mpsc::Sender<String>) -> Option<u64> {
        let line = match http.call(&self, &lines).await {
            Ok(line) => line,
            Err(failed) => failed.line(Some(self.asked)),
        };
        // The other half may be gone, and then no one waits.
        drop(lines.send(line).await);
        Some(self.asked)
    }
}

impl Failed {
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
            data: &'a Failed,
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
