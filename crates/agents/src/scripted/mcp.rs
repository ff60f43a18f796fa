//! A small MCP client over the pipes of a server that it starts.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::process::Stdio;
use std::time::Duration;

use ringback_mcp_wire::{Era, Id, Limits, Line, Lines, Message, Object, RawValue, Version};
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::{Instant, timeout_at};

/// The longest line of the server.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// A server that has not answered its first requests by then will not.
const START_WAIT: Duration = Duration::from_secs(10);

/// A server of tools.
#[derive(Debug)]
pub(super) struct Mcp {
    /// Ended when this is dropped.
    _child: Child,
    stdin: ChildStdin,
    stdout: ChildStdout,
    lines: Lines,
    era: Era,
    n_requests: u64,
    /// Answers that were not asked for yet.
    answers: HashMap<u64, Answer>,
    /// Announced changes of the list that were not waited for yet.
    n_changes: u64,
}

/// What a request came to.
pub(super) type Answer = Result<Box<RawValue>, Box<RawValue>>;

impl Mcp {
    /// Starts a server and shakes hands with it, as the era wants it.
    pub(super) async fn start(
        program: &OsStr,
        args: &[OsString],
        env: &[(String, String)],
        era: Era,
    ) -> Result<Self, String> {
        let mut child = Command::new(program)
            .args(args)
            .envs(env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the server was started without its pipes".to_owned());
        };
        let mut mcp = Self {
            _child: child,
            stdin,
            stdout,
            lines: Lines::new(LINE_BYTES_MAX),
            era,
            n_requests: 0,
            answers: HashMap::new(),
            n_changes: 0,
        };
        mcp.greet().await?;
        Ok(mcp)
    }

    async fn greet(&mut self) -> Result<(), String> {
        let refused = |answer: Answer| {
            answer.map(drop).map_err(|error| format!("the server refuses to talk: {error}"))
        };
        let until = Instant::now() + START_WAIT;
        match self.era {
            Era::Legacy => {
                let params = format!(
                    r#"{{"protocolVersion":"{}","capabilities":{{}},"clientInfo":{{"name":"ringback-scripted-agent","version":"{}"}}}}"#,
                    Version::NEWEST_LEGACY.as_str(),
                    env!("CARGO_PKG_VERSION"),
                );
                let id = self.ask("initialize", &raw(params)).await?;
                refused(self.answer(id, until).await?)?;
                self.tell(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await
            }
            Era::Modern => {
                let id = self.ask("server/discover", &raw("{}".to_owned())).await?;
                refused(self.answer(id, until).await?)?;
                let filter = raw(r#"{"notifications":{"toolsListChanged":true}}"#.to_owned());
                self.ask("subscriptions/listen", &filter).await.map(drop)
            }
        }
    }

    /// Sends a request, and gives its id.
    pub(super) async fn ask(&mut self, method: &str, params: &RawValue) -> Result<u64, String> {
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
        let line = to_raw_value(&request).map_err(|error| error.to_string())?;
        self.tell(line.get()).await?;
        Ok(id)
    }

    /// Takes a request back.
    pub(super) async fn cancel(&mut self, id: u64) -> Result<(), String> {
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        );
        self.tell(&line).await
    }

    /// Waits for the answer to a request.
    pub(super) async fn answer(&mut self, id: u64, until: Instant) -> Result<Answer, String> {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Ok(answer);
            }
            self.read(until).await?.ok_or("the server does not answer in time")?;
        }
    }

    /// Waits for an answer until then; `None` if it does not come.
    pub(super) async fn answer_or_not(
        &mut self,
        id: u64,
        until: Instant,
    ) -> Result<Option<Answer>, String> {
        loop {
            if let Some(answer) = self.answers.remove(&id) {
                return Ok(Some(answer));
            }
            if self.read(until).await?.is_none() {
                return Ok(None);
            }
        }
    }

    /// Waits until a change of the list is announced; `false` if none is in time.
    pub(super) async fn change(&mut self, until: Instant) -> Result<bool, String> {
        while self.n_changes == 0 {
            if self.read(until).await?.is_none() {
                return Ok(false);
            }
        }
        self.n_changes = 0;
        Ok(true)
    }

    /// The names of all tools.
    pub(super) async fn tools(&mut self, until: Instant) -> Result<Vec<String>, String> {
        let (mut names, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let params = match &cursor {
                None => raw("{}".to_owned()),
                Some(cursor) => to_raw_value(&HashMap::from([("cursor", cursor)]))
                    .map_err(|error| error.to_string())?,
            };
            let id = self.ask("tools/list", &params).await?;
            let page = self.answer(id, until).await?;
            let page = page.map_err(|error| format!("the tools are not listed: {error}"))?;
            let page = Object::of(&page).map_err(|error| error.to_string())?;
            let tools: Vec<Object<'_>> = page
                .get("tools")
                .and_then(|raw| serde_json::from_str(raw.get()).ok())
                .ok_or("the list of tools cannot be read")?;
            names.extend(tools.iter().filter_map(|tool| Some(tool.text("name")?.into_owned())));
            match page.text("nextCursor") {
                Some(next) => cursor = Some(next.into_owned()),
                None => return Ok(names),
            }
        }
    }

    /// Reads what comes until then; `None` if nothing does.
    async fn read(&mut self, until: Instant) -> Result<Option<()>, String> {
        let read = timeout_at(until, self.stdout.read_buf(self.lines.room())).await;
        match read {
            Err(_) => return Ok(None),
            Ok(Ok(0)) => return Err("the server has ended".to_owned()),
            Ok(Err(error)) => return Err(format!("the server cannot be heard: {error}")),
            Ok(Ok(_)) => {}
        }
        while let Some(line) = self.lines.pop() {
            let Line::Whole(line) = line else {
                return Err("the server sent a line that is too long".to_owned());
            };
            match Message::decode(line, Limits::default()) {
                Ok(Message::Reply(reply)) => {
                    if let Id::Number(digits) = &reply.id
                        && let Ok(id) = digits.parse()
                    {
                        let outcome = reply.outcome.map(ToOwned::to_owned);
                        self.answers.insert(id, outcome.map_err(ToOwned::to_owned));
                    }
                }
                Ok(Message::Notification(told)) => {
                    let is_change = told.method == "notifications/tools/list_changed";
                    self.n_changes += u64::from(is_change);
                }
                // Nothing was offered that a server could ask for.
                Ok(Message::Request(_)) => {}
                Err(error) => return Err(format!("the server sent no message: {error}")),
            }
        }
        Ok(Some(()))
    }

    async fn tell(&mut self, line: &str) -> Result<(), String> {
        let line = format!("{line}\n");
        let written = self.stdin.write_all(line.as_bytes()).await;
        written.map_err(|error| format!("the server does not listen: {error}"))
    }
}

fn raw(json: String) -> Box<RawValue> {
    RawValue::from_string(json).expect("JSON that is written here")
}

/// Parameters that say which version they are of.
fn with_meta(params: &RawValue) -> Box<RawValue> {
    let meta = format!(
        r#""_meta":{{"io.modelcontextprotocol/protocolVersion":"{}","io.modelcontextprotocol/clientCapabilities":{{}}}}"#,
        Version::V2026_07_28.as_str()
    );
    let rest = params.get().trim_start().strip_prefix('{').unwrap_or("}");
    let comma = if rest.trim_start() == "}" { "" } else { "," };
    raw(format!("{{{meta}{comma}{rest}"))
}
