//! An agent that speaks MCP, and the ways to its session. Every message is one line of text, so
//! that a scenario need not know the way.

use std::collections::VecDeque;
use std::process::Stdio;

use bytes::Bytes;
use camino::Utf8Path;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, StatusCode, body::Incoming};
use hyper_util::client::legacy::Client as HttpClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use ringback_testkit::within;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::support::OpenedSession;

const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// How an agent reaches its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// Through the program inside, at the session's socket.
    Socket,
    /// Through the program inside, at the session's URL.
    InsideUrl,
    /// Directly at the URL, with independent requests.
    Modern,
    /// Directly at the URL, with a handshake.
    Legacy,
}

impl Door {
    pub(crate) const ALL: [Self; 4] = [Self::Socket, Self::InsideUrl, Self::Modern, Self::Legacy];
    pub(crate) const URLS: [Self; 3] = [Self::InsideUrl, Self::Modern, Self::Legacy];
}

/// An agent.
pub(crate) struct Agent {
    way: Transport,
    inbox: mpsc::Receiver<String>,
    /// Messages read while waiting for something else.
    read: VecDeque<String>,
    tasks: JoinSet<()>,
}

enum Transport {
    Pipes { _child: Child, stdin: ChildStdin },
    Http(Http),
}

/// A client of the session's URL.
#[derive(Clone)]
pub(crate) struct Http {
    client: HttpClient<HttpConnector, Full<Bytes>>,
    url: String,
    token: String,
    key: Option<String>,
    /// The MCP session, if there is one.
    mcp_session: Option<String>,
    is_modern: bool,
    calls: Vec<(u64, AbortHandle)>,
    outbox: mpsc::Sender<String>,
}

impl Agent {
    /// Starts an agent that has completed the handshake and subscribed to changes.
    pub(crate) async fn start(
        door: Door,
        socket: &Utf8Path,
        session: &OpenedSession,
        key: Option<&str>,
    ) -> Self {
        let (outbox, inbox) = mpsc::channel(256);
        let mut tasks = JoinSet::new();
        let way = match door {
            Door::Socket => {
                let at = ["--socket", socket.as_str()];
                pipes(&at, session, key, outbox, &mut tasks)
            }
            Door::InsideUrl => {
                let at = ["--url", session.url.as_str()];
                pipes(&at, session, key, outbox, &mut tasks)
            }
            Door::Modern | Door::Legacy => {
                let is_modern = door == Door::Modern;
                Transport::Http(Http::new(session, key, is_modern, outbox))
            }
        };
        let mut agent = Self { way, inbox, read: VecDeque::new(), tasks };
        agent.greet().await;
        agent
    }

    async fn greet(&mut self) {
        let params = json!({"protocolVersion": LEGACY, "capabilities": {},
                            "clientInfo": {"name": "t", "version": "1"}});
        let Self { way, tasks, .. } = self;
        match way {
            Transport::Pipes { .. } => {
                self.send("initialize", 900_000, params).await;
                self.answer_text(900_000).await;
                self.tell("notifications/initialized", json!({})).await;
            }
            Transport::Http(http) if http.is_modern => {
                let filter = json!({"notifications": {"toolsListChanged": true}});
                let stream = http.send("subscriptions/listen", 900_001, filter).await;
                tasks.spawn(pass_on(stream, http.outbox.clone()));
                let told = within("the subscription is open", self.inbox.recv()).await.unwrap();
                assert!(told.contains("acknowledged"), "{told}");
            }
            Transport::Http(http) => {
                let answer = http.send("initialize", 900_000, params).await;
                assert_eq!(answer.status(), 200);
                let id = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
                http.mcp_session = Some(id);
                let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
                assert_eq!(http.post(&told.to_string(), &[]).await.status(), 202);
                let stream = http.request("GET", String::new(), &[]).await;
                assert_eq!(stream.status(), 200);
                tasks.spawn(pass_on(stream, http.outbox.clone()));
            }
        }
    }

    async fn send(&mut self, method: &str, id: u64, params: Value) {
        let body = request(method, id, &params.to_string());
        self.send_text(method, id, None, &body).await;
    }

    async fn send_text(&mut self, method: &str, id: u64, name: Option<&str>, body: &str) {
        match &mut self.way {
            Transport::Pipes { stdin, .. } => {
                stdin.write_all(format!("{body}\n").as_bytes()).await.unwrap();
            }
            Transport::Http(http) => {
                let (own, method) = (http.clone(), method.to_owned());
                let (name, body) = (name.map(str::to_owned), body.to_owned());
                let call = self.tasks.spawn(async move {
                    let headers = own.headers(&method, name.as_deref());
                    let stream = own.post(&own.dressed(&body), &headers).await;
                    pass_on(stream, own.outbox.clone()).await;
                });
                http.calls.push((id, call));
            }
        }
    }

    async fn tell(&mut self, method: &str, params: Value) {
        let body = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        match &mut self.way {
            Transport::Pipes { stdin, .. } => {
                stdin.write_all(format!("{body}\n").as_bytes()).await.unwrap();
            }
            Transport::Http(http) => {
                assert_eq!(http.post(&body, &[]).await.status(), 202);
            }
        }
    }

    /// Returns its tools, from all pages.
    pub(crate) async fn tools(&mut self) -> Vec<Value> {
        let text = self.list_text().await;
        let listed: Value = serde_json::from_str(&text).unwrap();
        listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{text}")).clone()
    }

    /// Returns the first page of its tools as received.
    pub(crate) async fn list_text(&mut self) -> String {
        self.send("tools/list", 900_002, json!({})).await;
        self.answer_text(900_002).await
    }

    /// Returns the names of its tools.
    pub(crate) async fn names(&mut self) -> Vec<String> {
        let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
        self.tools().await.iter().map(name).collect()
    }

    /// Calls a tool with progress.
    pub(crate) async fn ask(&mut self, id: u64, tool: &str, arguments: &str) {
        let params = format!(
            r#"{{"name":"{tool}","arguments":{arguments},"_meta":{{"progressToken":{id}}}}}"#
        );
        let body = request("tools/call", id, &params);
        self.send_text("tools/call", id, Some(tool), &body).await;
    }

    /// Calls a tool and waits for the answer.
    pub(crate) async fn call(&mut self, id: u64, tool: &str, arguments: &str) -> Value {
        self.ask(id, tool, arguments).await;
        self.answer(id).await
    }

    /// Cancels a call.
    pub(crate) async fn cancel(&mut self, id: u64) {
        if let Transport::Http(http) = &self.way
            && http.is_modern
        {
            let call = http.calls.iter().find(|(own, _)| *own == id);
            return call.unwrap().1.abort();
        }
        self.tell("notifications/cancelled", json!({"requestId": id})).await;
    }

    /// Waits until every answer has ended.
    pub(crate) async fn all_streams_end(&mut self) {
        while self.tasks.join_next().await.is_some() {}
    }

    /// Returns the answer to a request as received.
    pub(crate) async fn answer_text(&mut self, id: u64) -> String {
        let is_it = |text: &str| {
            let message: Value = serde_json::from_str(text).unwrap();
            message["id"] == id && message.get("method").is_none()
        };
        self.next_where(is_it).await
    }

    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        serde_json::from_str(&self.answer_text(id).await).unwrap()
    }

    /// Waits for the next notification of a method.
    pub(crate) async fn told(&mut self, method: &str) -> Value {
        let is_it = |text: &str| {
            let message: Value = serde_json::from_str(text).unwrap();
            message["method"] == method
        };
        serde_json::from_str(&self.next_where(is_it).await).unwrap()
    }

    async fn next_where(&mut self, is_it: impl Fn(&str) -> bool) -> String {
        if let Some(at) = self.read.iter().position(|text| is_it(text)) {
            return self.read.remove(at).unwrap();
        }
        loop {
            let text = within("the agent hears", self.inbox.recv()).await.unwrap();
            if is_it(&text) {
                return text;
            }
            self.read.push_back(text);
        }
    }
}

impl Http {
    pub(crate) fn new(
        session: &OpenedSession,
        key: Option<&str>,
        is_modern: bool,
        outbox: mpsc::Sender<String>,
    ) -> Self {
        Self {
            client: HttpClient::builder(TokioExecutor::new()).build(HttpConnector::new()),
            url: session.url.clone(),
            token: session.token.clone(),
            key: key.map(str::to_owned),
            mcp_session: None,
            is_modern,
            calls: Vec::new(),
            outbox,
        }
    }

    async fn send(&self, method: &str, id: u64, params: Value) -> Response<Incoming> {
        let body = self.dressed(&request(method, id, &params.to_string()));
        self.post(&body, &self.headers(method, None)).await
    }

    /// Builds a request for its era.
    fn dressed(&self, body: &str) -> String {
        let version = "io.modelcontextprotocol/protocolVersion";
        let capabilities = "io.modelcontextprotocol/clientCapabilities";
        let meta = format!(r#""{version}":"{MODERN}","{capabilities}":{{}}"#);
        match (self.is_modern, body.contains(r#""_meta":{"#)) {
            (false, _) => body.to_owned(),
            (true, true) => body.replace(r#""_meta":{"#, &format!(r#""_meta":{{{meta},"#)),
            (true, false) => {
                let comma = if body.contains(r#""params":{}"#) { "" } else { "," };
                let start = r#""params":{"#;
                body.replacen(start, &format!(r#"{start}"_meta":{{{meta}}}{comma}"#), 1)
            }
        }
    }

    fn headers(&self, method: &str, name: Option<&str>) -> Vec<(&'static str, String)> {
        if !self.is_modern {
            return Vec::new();
        }
        let mut headers = vec![("mcp-protocol-version", MODERN.to_owned())];
        headers.push(("mcp-method", method.to_owned()));
        headers.extend(name.map(|name| ("mcp-name", name.to_owned())));
        headers
    }

    async fn post(&self, body: &str, headers: &[(&'static str, String)]) -> Response<Incoming> {
        self.request("POST", body.to_owned(), headers).await
    }

    async fn request(
        &self,
        method: &str,
        body: String,
        headers: &[(&'static str, String)],
    ) -> Response<Incoming> {
        let mut request = Request::builder()
            .method(method)
            .uri(&self.url)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        if let Some(session) = &self.mcp_session {
            request = request.header("mcp-session-id", session);
        }
        if let Some(key) = &self.key {
            request = request.header("oubliette-api-key", key);
        }
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::from(body)).unwrap();
        within("an answer", self.client.request(request)).await.unwrap()
    }

    /// Returns the status of a modern request, and its whole answer.
    pub(crate) async fn status(&self, method: &str, params: Value) -> (StatusCode, String) {
        let answer = self.send(method, 1, params).await;
        let status = answer.status();
        let body = within("a body", answer.into_body().collect()).await.unwrap();
        (status, String::from_utf8(body.to_bytes().to_vec()).unwrap())
    }
}

fn request(method: &str, id: u64, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// Reads messages, one event or one body each.
async fn pass_on(answer: Response<Incoming>, outbox: mpsc::Sender<String>) {
    let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    let is_stream = kind.is_some_and(|kind| kind.starts_with("text/event-stream"));
    let mut body = answer.into_body();
    let mut text = String::new();
    while let Some(Ok(frame)) = body.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        text.push_str(std::str::from_utf8(&data).unwrap());
        while let Some((event, rest)) = text.split_once("\n\n").filter(|_| is_stream) {
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data.filter(|data| !data.is_empty()) {
                outbox.send(data.to_owned()).await.ok();
            }
            text = rest.to_owned();
        }
    }
    if !is_stream && !text.is_empty() {
        outbox.send(text).await.ok();
    }
}

/// The program inside.
fn pipes(
    at: &[&str; 2],
    session: &OpenedSession,
    key: Option<&str>,
    outbox: mpsc::Sender<String>,
    tasks: &mut JoinSet<()>,
) -> Transport {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringback"));
    command.arg("inside").args(at).env_clear();
    command.env("OUBLIETTE_SESSION_TOKEN", &session.token);
    command.envs(key.map(|key| ("OUBLIETTE_API_KEY", key)));
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    tasks.spawn(async move {
        while let Ok(Some(line)) = lines.next_line().await {
            outbox.send(line).await.ok();
        }
    });
    Transport::Pipes { _child: child, stdin }
}
