//! A world with the HTTP edge, and agents that call it.

use std::net::SocketAddr;
use std::ops::Deref;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Request, Version};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ringback_broker::{Broker, Config};
use ringback_edge_http::{BLOBS, ClientToolSettings};
use ringback_service::http::{BodyLimit, Timeouts};
use ringback_testkit::{IDLER, LIMIT, Setup, shell_agent, wait_for, within};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The largest blob of these worlds, and the largest other body.
pub(crate) const BLOB_BYTES_MAX: u64 = 8 << 20;
pub(crate) const BODY_BYTES_MAX: usize = 1 << 20;

/// How a world differs from the usual one.
pub(crate) struct Options {
    pub(crate) keepalive: Duration,
    pub(crate) call_ms_default: u64,
    pub(crate) body_patience: Duration,
    pub(crate) unread_patience: Duration,
    pub(crate) body_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            keepalive: LIMIT,
            call_ms_default: 10_000,
            body_patience: LIMIT,
            unread_patience: LIMIT,
            body_bytes_max: BODY_BYTES_MAX,
        }
    }
}

pub(crate) struct World {
    pub(crate) admin: Agent,
    kit: ringback_testkit::World,
}

impl Deref for World {
    type Target = ringback_testkit::World;

    fn deref(&self) -> &Self::Target {
        &self.kit
    }
}

/// A client with a token.
#[derive(Clone)]
pub(crate) struct Agent {
    pub(crate) addr: SocketAddr,
    pub(crate) token: String,
    pub(crate) token_id: String,
}

/// An answer whose body may still be arriving.
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    body: Incoming,
    connection: JoinSet<()>,
}

/// A stream of server-sent events.
pub(crate) struct Sse {
    pub(crate) headers: HeaderMap,
    body: Incoming,
    buffer: Vec<u8>,
    _connection: JoinSet<()>,
}

/// One event, with its bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) event: String,
    pub(crate) id: String,
    pub(crate) data: String,
    pub(crate) raw: String,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::start_with(Options::default()).await
    }

    pub(crate) async fn start_with(options: Options) -> Self {
        let client_tools =
            ClientToolSettings { keepalive: options.keepalive, timeout_ms_max: 60_000 };
        let setup = Setup::new().http(client_tools).config(|config| {
            small(config);
            config.lines.client_call_ms_default = options.call_ms_default;
        });
        let setup = setup.listener(|http| {
            http.max_body_bytes = options.body_bytes_max;
            http.larger_bodies = vec![BodyLimit { path: BLOBS, max_bytes: BLOB_BYTES_MAX }];
            let (body, unread) = (options.body_patience, options.unread_patience);
            http.patience = Timeouts { body, unread, ..Timeouts::default() };
        });
        let kit = setup.start().await;
        let token = kit.admin_token().expose().to_owned();
        let admin = Agent { addr: kit.address(), token, token_id: String::new() };
        Self { admin, kit }
    }

    /// Creates a client with a token of this scope.
    pub(crate) async fn agent(&self, scope: &str) -> Agent {
        let body = json!({"name": "test", "scope": scope});
        let (status, made) = self.admin.json("POST /v1/tokens", body).await;
        assert_eq!(status, 201, "{made}");
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        Agent { addr: self.admin.addr, token: text("token"), token_id: text("token_id") }
    }

    /// Waits until the broker's tables are as empty as required.
    pub(crate) async fn settled(&self, is_settled: impl Fn(&Broker) -> bool) {
        wait_for("the tables are empty", async || is_settled(&self.broker)).await;
    }
}

/// Limits that are soon reached, and one agent.
fn small(config: &mut Config) {
    config.calls_per_principal_max = 256;
    (config.jobs_running_max, config.jobs_live_max) = (4, 8);
    config.jobs_per_principal_max = 8;
    config.events_kept_max = 20_000;
    (config.uploads_open_max, config.upload_bytes_max) = (4, BLOB_BYTES_MAX);
    config.sessions.agent_default = "idler".to_owned();
    config.sessions.agents.insert("idler".to_owned(), shell_agent(IDLER));
}

impl Agent {
    /// The same client without a token.
    pub(crate) fn nobody(&self) -> Self {
        Self { token: String::new(), ..self.clone() }
    }

    /// Sends a request: `METHOD PATH`, headers as `name: value`, and a body.
    pub(crate) async fn send(&self, line: &str, headers: &[&str], body: impl Into<Body>) -> Reply {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        for header in headers {
            let (name, value) = header.split_once(": ").unwrap();
            request = request.header(name, value);
        }
        self.exchange(request.body(body.into()).unwrap()).await
    }

    pub(crate) async fn exchange(&self, request: Request<Body>) -> Reply {
        let stream = TcpStream::connect(self.addr).await.unwrap();
        let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await.unwrap();
        let mut connection = JoinSet::new();
        connection.spawn(async move { drop(driver.await) });
        let response = within("an answer", sender.send_request(request)).await.unwrap();
        let (parts, body) = response.into_parts();
        assert_eq!(parts.version, Version::HTTP_11);
        Reply { status: parts.status.as_u16(), headers: parts.headers, body, connection }
    }

    /// The status and the JSON of the answer.
    pub(crate) async fn ask(&self, line: &str, headers: &[&str], body: &str) -> (u16, Value) {
        self.send(line, headers, body.to_owned()).await.json().await
    }

    /// The same, with JSON in the request.
    pub(crate) async fn json(&self, line: &str, body: Value) -> (u16, Value) {
        self.ask(line, &["content-type: application/json"], &body.to_string()).await
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(&format!("GET {path}"), &[], "").await
    }

    /// Opens a stream.
    pub(crate) async fn stream(&self, path: &str) -> Sse {
        self.send(&format!("GET {path}"), &[], "").await.events()
    }
}

impl Reply {
    pub(crate) async fn bytes(self) -> Bytes {
        let Self { body, connection, .. } = self;
        let bytes = within("a body", body.collect()).await.unwrap().to_bytes();
        drop(connection);
        bytes
    }

    pub(crate) async fn text(self) -> String {
        String::from_utf8(self.bytes().await.to_vec()).unwrap()
    }

    pub(crate) async fn json(self) -> (u16, Value) {
        let status = self.status;
        let bytes = self.bytes().await;
        let value = serde_json::from_slice(&bytes);
        (status, value.unwrap_or_else(|_| panic!("not JSON: {status} {bytes:?}")))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn events(self) -> Sse {
        assert_eq!((self.status, self.header("content-type")), (200, "text/event-stream"));
        let Self { headers, body, connection, .. } = self;
        Sse { headers, body, buffer: Vec::new(), _connection: connection }
    }
}

impl Sse {
    /// The next event that is not a comment; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Frame> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|pair| pair == b"\n\n") {
                let raw: Vec<u8> = self.buffer.drain(..end + 2).collect();
                let frame = parse(String::from_utf8(raw).unwrap());
                if frame != (Frame { raw: frame.raw.clone(), ..Frame::default() })
                    || frame.raw.contains("data:")
                {
                    return Some(frame);
                }
                continue;
            }
            let piece = within("an event", self.body.frame()).await?;
            let Ok(piece) = piece else { return None };
            self.buffer.extend_from_slice(&piece.into_data().unwrap_or_default());
        }
    }

    /// The next event of this name, which must come.
    pub(crate) async fn named(&mut self, name: &str) -> Frame {
        loop {
            let frame = self.next().await.expect("the stream goes on");
            if frame.event == name {
                return frame;
            }
        }
    }

    /// The next event of this `type`, as `/event` sends it.
    pub(crate) async fn typed(&mut self, kind: &str) -> (Frame, Value) {
        loop {
            let frame = self.next().await.expect("the stream goes on");
            if !frame.event.is_empty() {
                continue;
            }
            let data: Value = serde_json::from_str(&frame.data).unwrap();
            if data["type"] == kind {
                return (frame, data);
            }
        }
    }

    /// Reads on to the end of the stream.
    pub(crate) async fn ended(&mut self) {
        while self.next().await.is_some() {}
    }
}

impl Frame {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.data).unwrap()
    }
}

fn parse(raw: String) -> Frame {
    let mut frame = Frame::default();
    for line in raw.lines() {
        match line.split_once(": ").or_else(|| line.split_once(':')) {
            Some(("event", value)) => value.clone_into(&mut frame.event),
            Some(("id", value)) => value.clone_into(&mut frame.id),
            Some(("data", value)) => frame.data.push_str(value),
            Some(_) | None => {}
        }
    }
    Frame { raw, ..frame }
}

/// The code of an error, after a check of its form.
pub(crate) fn code(answer: &Value) -> &str {
    let error = answer["error"].as_object().unwrap_or_else(|| panic!("no error: {answer}"));
    for name in error.keys() {
        assert!(["code", "message", "certainty", "details"].contains(&name.as_str()), "{answer}");
    }
    assert!(error["message"].is_string() && error["certainty"].is_string(), "{answer}");
    error["code"].as_str().unwrap()
}
