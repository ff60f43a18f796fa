//! A small MCP client over the pipes of a server that it starts. The scripted agent gets its tools
//! from one, and so does a session whose caller is a tool server.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::process::Stdio;
use std::time::Duration;

pub use ringback_mcp_wire::Era;
use ringback_mcp_wire::{Id, Limits, Line, Lines, Message, Object, RawValue, Version};
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::process::Command;
use tokio::time::{Instant, timeout, timeout_at};

use crate::child::Plain;
use crate::spec::{AgentProcess, LaunchedProcess};

/// The longest output line of the server.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most bytes that may wait for the server to read them.
const OUTGOING_BYTES_MAX: usize = 32 * 1024 * 1024;
/// How long a server may take to answer its first requests. Some are downloaded first.
const START_WAIT: Duration = Duration::from_secs(30);
/// The most pages of a tool list.
const PAGES_MAX: usize = 1000;
/// How much error output is read, and dropped, in one go.
const DROPPED_BYTES: usize = 4096;

/// A server that is a child of this process, and ends with its process group.
#[derive(Clone)]
pub struct ServerSpec {
    /// The program.
    pub command: OsString,
    /// Its arguments. Every user can see them.
    pub args: Vec<OsString>,
    /// The protocol era to use.
    pub era: Era,
    /// Environment variables in addition to those of this process.
    pub more_env: Vec<(String, String)>,
}

/// Shows the names of environment variables, not their values.
impl fmt::Debug for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.more_env.iter().map(|(name, _)| name).collect();
        f.debug_struct("ServerSpec")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("era", &self.era)
            .field("more_env", &names)
            .finish()
    }
}

/// An error of a server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// It cannot be started.
    #[error("cannot start {command}: {source}", command = .command.display())]
    Spawn {
        /// The program.
        command: OsString,
        /// The cause.
        source: io::Error,
    },
    /// It has ended, or closed its output.
    #[error("the server has ended")]
    Ended,
    /// Its pipes failed.
    #[error("cannot communicate with the server: {0}")]
    Io(#[from] io::Error),
    /// It does not read.
    #[error("the server does not read requests any more")]
    Full,
    /// Its output is not a message.
    #[error("the server sent an invalid message: {0}")]
    Garbage(String),
    /// It refuses the handshake, or to list its tools.
    #[error("the server refuses: {0}")]
    Refused(String),
    /// It takes too long.
    #[error("the server does not answer in time")]
    Late,
}

/// The result of a request.
pub type ServerAnswer = Result<Box<RawValue>, Box<RawValue>>;

/// Returns the message of a refused request.
#[must_use]
pub fn refusal(error: &RawValue) -> String {
    let said = Object::of(error).ok().and_then(|fields| Some(fields.text("message")?.into_owned()));
    said.unwrap_or_else(|| error.get().to_owned())
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerTool {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// The JSON Schema of its input, as the server sent it.
    pub input_schema: Option<String>,
}

impl ServerTool {
    fn of(raw: &RawValue) -> Option<Self> {
        let tool = Object::of(raw).ok()?;
        Some(Self {
            name: tool.text("name")?.into_owned(),
            description: tool.text("description").map(std::borrow::Cow::into_owned),
            input_schema: tool.get("inputSchema").map(|schema| schema.get().to_owned()),
        })
    }
}

/// A message from a server.
#[derive(Debug)]
pub enum ServerMessage {
    /// The answer to a request.
    Answer(u64, ServerAnswer),
    /// Its tool list has changed.
    Changed,
    /// The progress of a request.
    Progress {
        /// The request.
        id: u64,
        /// The progress.
        percent: f32,
        /// A description.
        message: String,
    },
}

/// A tool server. It runs, and is written to, only while its next message is awaited.
///
/// Dropping it ends it with everything it started.
pub struct ToolServer {
    process: Box<dyn AgentProcess>,
    stdin: Box<dyn AsyncWrite + Send + Unpin>,
    stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Its error output: read, so that it never blocks, and dropped, because it may contain
    /// secrets.
    stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
    dropped: Vec<u8>,
    lines: Lines,
    era: Era,
    n_requests: u64,
    outgoing: Vec<u8>,
    heard: VecDeque<ServerMessage>,
}

impl fmt::Debug for ToolServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolServer").field("process", &self.process).finish_non_exhaustive()
    }
}

impl ToolServer {
    /// Starts a server as a child of this process and shakes hands with it, according to the era.
    ///
    /// # Errors
    /// If it cannot be started, or does not behave like an MCP server.
    ///
    /// # Cancel safety
    /// Dropping the future ends what was started.
    pub async fn start(spec: &ServerSpec) -> Result<Self, ServerError> {
        let mut command = Command::new(&spec.command);
        command.args(&spec.args).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.kill_on_drop(true).envs(spec.more_env.iter().cloned());
        let spawned = command.spawn();
        let spawn = |source| ServerError::Spawn { command: spec.command.clone(), source };
        let mut child = spawned.map_err(spawn)?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(spawn(io::Error::other("the server was started without its pipes")));
        };
        let process = Box::new(Plain { child, group: None });
        Self::greeted(process, Box::new(stdin), Box::new(stdout), None, spec.era).await
    }

    /// Shakes hands with a server that was started elsewhere, such as in a sandbox.
    ///
    /// # Errors
    /// If it does not behave like an MCP server.
    ///
    /// # Cancel safety
    /// Dropping the future ends the server.
    pub async fn over(launched: LaunchedProcess, era: Era) -> Result<Self, ServerError> {
        let LaunchedProcess { stdin, stdout, stderr, process } = launched;
        Self::greeted(process, stdin, stdout, Some(stderr), era).await
    }

    async fn greeted(
        process: Box<dyn AgentProcess>,
        stdin: Box<dyn AsyncWrite + Send + Unpin>,
        stdout: Box<dyn AsyncRead + Send + Unpin>,
        stderr: Option<Box<dyn AsyncRead + Send + Unpin>>,
        era: Era,
    ) -> Result<Self, ServerError> {
        let mut server = Self {
            process,
            stdin,
            stdout,
            stderr,
            dropped: vec![0; DROPPED_BYTES],
            lines: Lines::new(LINE_BYTES_MAX),
            era,
            n_requests: 0,
            outgoing: Vec::new(),
            heard: VecDeque::new(),
        };
        server.greet().await?;
        Ok(server)
    }

    async fn greet(&mut self) -> Result<(), ServerError> {
        let refused = |answer: ServerAnswer| {
            answer.map(drop).map_err(|error| ServerError::Refused(error.get().to_owned()))
        };
        let until = Instant::now() + START_WAIT;
        match self.era {
            Era::Legacy => {
                let params = format!(
                    r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"ringback","version":"{}"}}}}"#,
                    Version::NEWEST_LEGACY.as_str(),
                    env!("CARGO_PKG_VERSION"),
                );
                let id = self.ask("initialize", &raw(params))?;
                refused(self.answer(id, until).await?)?;
                self.tell(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)
            }
            Era::Modern => {
                let id = self.ask("server/discover", &raw("{}".to_owned()))?;
                refused(self.answer(id, until).await?)?;
                let filter = raw(r#"{"notifications":{"toolsListChanged":true}}"#.to_owned());
                self.ask("subscriptions/listen", &filter).map(drop)
            }
        }
    }

    /// Queues a request, and returns its ID.
    ///
    /// # Errors
    /// If too much is waiting to be read.
    pub fn ask(&mut self, method: &str, params: &RawValue) -> Result<u64, ServerError> {
        #[derive(Serialize)]
        struct Request<'a> {
            jsonrpc: &'static str,
            id: u64,
            method: &'a str,
            params: &'a RawValue,
        }
        self.n_requests += 1;
        let id = self.n_requests;
        let params = match self.era {
            Era::Legacy => params.to_owned(),
            Era::Modern => with_meta(params),
        };
        let request = Request { jsonrpc: "2.0", id, method, params: &params };
        let line = to_raw_value(&request).expect("a request can be serialized as JSON");
        self.tell(line.get())?;
        Ok(id)
    }

    /// Cancels a request.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub fn cancel(&mut self, id: u64) -> Result<(), ServerError> {
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        self.tell(&line)
    }

    /// Returns the server's next message.
    ///
    /// # Errors
    /// If the server has failed.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn next(&mut self) -> Result<ServerMessage, ServerError> {
        loop {
            if let Some(heard) = self.heard.pop_front() {
                return Ok(heard);
            }
            self.step().await?;
        }
    }

    /// Waits until everything is written to the server.
    ///
    /// # Errors
    /// If the server has failed.
    ///
    /// # Cancel safety
    /// Nothing is lost.
    pub async fn flush(&mut self) -> Result<(), ServerError> {
        while !self.outgoing.is_empty() {
            self.step().await?;
        }
        Ok(())
    }

    /// Writes or reads, whichever is possible.
    async fn step(&mut self) -> Result<(), ServerError> {
        let is_writing = !self.outgoing.is_empty();
        let is_complaining = self.stderr.is_some();
        let Self { stdin, stdout, stderr, dropped, lines, outgoing, .. } = self;
        tokio::select! {
            n_dropped = complaint(stderr, dropped), if is_complaining => {
                if n_dropped == 0 {
                    self.stderr = None;
                }
                Ok(())
            },
            read = stdout.read_buf(lines.room()) => match read? {
                0 => Err(ServerError::Ended),
                _ => self.on_lines(),
            },
            written = stdin.write(outgoing), if is_writing => match written? {
                0 => Err(ServerError::Ended),
                n => {
                    outgoing.drain(..n);
                    Ok(())
                }
            },
        }
    }

    /// Queues a tool call with JSON input, and returns its ID. Its progress is reported.
    ///
    /// # Errors
    /// If too much is waiting to be read, or the input is not JSON.
    pub fn call(&mut self, tool: &str, input: &[u8]) -> Result<u64, ServerError> {
        let garbage = |error: serde_json::Error| ServerError::Garbage(error.to_string());
        let input: &RawValue = serde_json::from_slice(input).map_err(garbage)?;
        let (tool, token) = (serde_json::to_string(tool).map_err(garbage)?, self.n_requests + 1);
        let meta = format!(r#""_meta":{{"progressToken":{token}}}"#);
        self.ask("tools/call", &raw(format!(r#"{{"name":{tool},"arguments":{input},{meta}}}"#)))
    }

    /// Returns all tools of the server.
    ///
    /// # Errors
    /// If the server does not list them.
    pub async fn tools(&mut self, until: Instant) -> Result<Vec<ServerTool>, ServerError> {
        let (mut tools, mut cursor) = (Vec::new(), None::<String>);
        for _ in 0..PAGES_MAX {
            let params = match &cursor {
                None => raw("{}".to_owned()),
                Some(cursor) => {
                    let text = serde_json::to_string(cursor).expect("a text can be serialized");
                    raw(format!(r#"{{"cursor":{text}}}"#))
                }
            };
            let id = self.ask("tools/list", &params)?;
            let page = self.answer(id, until).await?;
            let page = page.map_err(|error| ServerError::Refused(error.get().to_owned()))?;
            let page =
                Object::of(&page).map_err(|error| ServerError::Garbage(error.to_string()))?;
            let listed: Option<Vec<Box<RawValue>>> =
                page.get("tools").and_then(|raw| serde_json::from_str(raw.get()).ok());
            let listed =
                listed.ok_or_else(|| ServerError::Garbage("the answer has no tools".to_owned()))?;
            tools.extend(listed.iter().filter_map(|tool| ServerTool::of(tool)));
            match page.text("nextCursor") {
                Some(next) => cursor = Some(next.into_owned()),
                None => return Ok(tools),
            }
        }
        Err(ServerError::Garbage("the tool list does not end".to_owned()))
    }

    /// Waits for the answer to a request; other messages are returned afterwards.
    ///
    /// # Errors
    /// If the server has failed, or takes too long.
    pub async fn answer(&mut self, id: u64, until: Instant) -> Result<ServerAnswer, ServerError> {
        let mut others = VecDeque::new();
        let answer = loop {
            match timeout_at(until, self.next()).await {
                Err(_) => break Err(ServerError::Late),
                Ok(Err(error)) => break Err(error),
                Ok(Ok(ServerMessage::Answer(answered, answer))) if answered == id => {
                    break Ok(answer);
                }
                Ok(Ok(other)) => others.push_back(other),
            }
        };
        others.append(&mut self.heard);
        self.heard = others;
        answer
    }

    /// Asks the server and its whole process group to end, and kills them after `grace`.
    pub async fn stop(mut self, grace: Duration) {
        self.process.terminate();
        // Either way, dropping the rest ends everything it started.
        drop(timeout(grace, self.process.wait()).await);
    }

    fn on_lines(&mut self) -> Result<(), ServerError> {
        while let Some(line) = self.lines.pop() {
            let Line::Whole(line) = line else {
                return Err(ServerError::Garbage("a line is too long".to_owned()));
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let message = Message::decode(line, Limits::default());
            let (heard, reply) = match message {
                Ok(Message::Reply(reply)) => (answered(&reply.id, reply.outcome), None),
                Ok(Message::Notification(told)) => match told.method.as_ref() {
                    "notifications/tools/list_changed" => (Some(ServerMessage::Changed), None),
                    "notifications/progress" => (progress(&told.params), None),
                    _ => (None, None),
                },
                Ok(Message::Request(request)) => (None, Some(reply_to(&request))),
                Err(error) => return Err(ServerError::Garbage(error.to_string())),
            };
            self.heard.extend(heard);
            if let Some(reply) = reply {
                add_line(&mut self.outgoing, &reply)?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, line: &str) -> Result<(), ServerError> {
        add_line(&mut self.outgoing, line)
    }
}

impl Drop for ToolServer {
    fn drop(&mut self) {
        self.process.kill();
    }
}

/// Reads a part of a server's error output; nothing after its end.
async fn complaint(
    stderr: &mut Option<Box<dyn AsyncRead + Send + Unpin>>,
    dropped: &mut [u8],
) -> usize {
    match stderr {
        // A failed read is the end as well.
        Some(stderr) => stderr.read(dropped).await.unwrap_or_default(),
        None => 0,
    }
}

fn add_line(outgoing: &mut Vec<u8>, line: &str) -> Result<(), ServerError> {
    if outgoing.len() + line.len() > OUTGOING_BYTES_MAX {
        return Err(ServerError::Full);
    }
    outgoing.extend_from_slice(line.as_bytes());
    outgoing.push(b'\n');
    Ok(())
}

fn answered(id: &Id, outcome: Result<&RawValue, &RawValue>) -> Option<ServerMessage> {
    let Id::Number(digits) = id else { return None };
    let outcome = outcome.map(ToOwned::to_owned).map_err(ToOwned::to_owned);
    Some(ServerMessage::Answer(digits.parse().ok()?, outcome))
}

/// Returns the progress of a request whose token is its own ID.
fn progress(params: &Object<'_>) -> Option<ServerMessage> {
    let number = |name: &str| params.get(name)?.get().parse::<f32>().ok();
    let id = params.get("progressToken")?.get().parse().ok()?;
    let percent = number("progress")? / number("total").unwrap_or(100.0) * 100.0;
    let message = params.text("message").unwrap_or_default().into_owned();
    let percent = percent.is_finite().then(|| percent.clamp(0.0, 100.0))?;
    Some(ServerMessage::Progress { id, percent, message })
}

/// Answers a request from the server. Only `ping` is supported.
fn reply_to(request: &ringback_mcp_wire::Request<'_>) -> String {
    let id = serde_json::to_string(&request.id).expect("an ID can be serialized");
    if request.method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    }
    let error = r#"{"code":-32601,"message":"this client offers nothing"}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}

fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).expect("JSON that is built here is valid")
}

/// Adds the protocol version to parameters.
fn with_meta(params: &RawValue) -> Box<RawValue> {
    let meta = format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#,
        Version::V2026_07_28.as_str()
    );
    let rest = params.get().trim_start().strip_prefix('{').unwrap_or("}");
    let comma = if rest.trim_start() == "}" { "" } else { "," };
    raw(format!("{{{meta}{comma}{rest}"))
}
