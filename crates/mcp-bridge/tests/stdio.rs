//! The bridge between lines and a daemon whose HTTP the test plays.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

use std::time::Duration;

use ringback_mcp_bridge::{Endpoint, serve};
use tokio::io::{
    AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines,
    ReadHalf, WriteHalf,
};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Far beyond what anything here takes.
const LIMIT: Duration = Duration::from_secs(20);
const PIPE_BYTES: usize = 64 * 1024;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
const INITIALIZED: &str =
    r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a"}}"#;
const RESULT: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"n":12345678901234567890}}"#;

struct Client {
    listener: TcpListener,
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    _bridge: JoinSet<()>,
}

/// A request that waits for its answer.
struct PendingRequest {
    stream: BufReader<TcpStream>,
    head: String,
    body: String,
}

impl Client {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = Endpoint::of_daemon(listener.local_addr().unwrap()).with_bearer("oub_x");
        let (near, far) = tokio::io::duplex(PIPE_BYTES);
        let (input, output) = tokio::io::split(far);
        let mut bridge = JoinSet::new();
        bridge.spawn(async { serve(endpoint, BufReader::new(input), output).await.unwrap() });
        let (output, input) = tokio::io::split(near);
        Self { listener, input, output: BufReader::new(output).lines(), _bridge: bridge }
    }

    async fn say(&mut self, line: &str) {
        soon(self.input.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }

    async fn hear(&mut self) -> String {
        soon(self.output.next_line()).await.unwrap().expect("a line of the bridge")
    }

    async fn asked(&self, method: &str) -> PendingRequest {
        let (stream, _) = soon(self.listener.accept()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            soon(stream.read_line(&mut head)).await.unwrap();
        }
        assert!(head.starts_with(&format!("{method} /mcp HTTP/1.1\r\n")), "{head}");
        assert!(head.contains("authorization: Bearer oub_x\r\n"), "{head}");
        let length = head.split_once("content-length: ").map_or("0", |(_, rest)| rest);
        let mut body = vec![0; length.split("\r\n").next().unwrap().parse().unwrap()];
        soon(stream.read_exact(&mut body)).await.unwrap();
        PendingRequest { stream, head, body: String::from_utf8(body).unwrap() }
    }

    /// Opens an MCP session.
    async fn shake_hands(&mut self, session: &str) {
        self.say(INITIALIZE).await;
        let asked = self.asked("POST").await;
        assert_eq!(asked.body, INITIALIZE);
        asked.answer(&format!("200 OK\r\nmcp-session-id: {session}"), INITIALIZED).await;
        assert_eq!(self.hear().await, INITIALIZED);
    }
}

impl PendingRequest {
    async fn write(&mut self, text: &str) {
        soon(self.stream.write_all(text.as_bytes())).await.unwrap();
    }

    /// Answers with JSON.
    async fn answer(mut self, status: &str, body: &str) {
        let length = body.len();
        self.write(&format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\n\
             content-length: {length}\r\n\r\n{body}"
        ))
        .await;
    }

    /// Answers with a stream that starts with these events.
    async fn stream(mut self, events: &str) -> Self {
        self.write(&format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{events}"
        ))
        .await;
        self
    }

    fn has(&self, header: &str) -> bool {
        self.head.contains(&format!("{header}\r\n"))
    }
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    timeout(LIMIT, work).await.expect("it did not happen in time")
}

/// Rule: a stream that breaks off is resumed after its last event.
#[tokio::test]
async fn a_broken_stream_of_the_legacy_era_is_resumed_after_its_last_event() {
    let mut client = Client::start().await;
    client.shake_hands("s1").await;
    client.say(CALL).await;
    let call = client.asked("POST").await;
    assert!(call.has("mcp-session-id: s1") && call.has("mcp-protocol-version: 2025-11-25"));
    assert!(!call.head.contains("mcp-method"), "{}", call.head);
    let progress = r#"{"jsonrpc":"2.0","method":"notifications/progress"}"#;
    let events = format!("id: 3-0\ndata:\n\nid: 3-1\ndata: {progress}\n\nid: 3-2\ndata: {{");
    drop(call.stream(&events).await);
    assert_eq!(client.hear().await, progress);
    let resumed = client.asked("GET").await;
    assert!(resumed.has("last-event-id: 3-1") && resumed.has("mcp-session-id: s1"));
    let _open = resumed.stream(&format!("id: 3-2\ndata: {RESULT}\n\n")).await;
    assert_eq!(client.hear().await, RESULT);
}

/// Rule: a restart of the daemon does not end the MCP session of a client.
#[tokio::test]
async fn an_mcp_session_that_the_daemon_lost_is_reopened() {
    let mut client = Client::start().await;
    client.shake_hands("s1").await;
    client.say(CALL).await;
    client.asked("POST").await.answer("404 Not Found", "{}").await;
    let again = client.asked("POST").await;
    assert_eq!(again.body, INITIALIZE);
    again.answer("200 OK\r\nmcp-session-id: s2", INITIALIZED).await;
    let ready = client.asked("POST").await;
    assert!(ready.body.contains("notifications/initialized") && ready.has("mcp-session-id: s2"));
    ready.answer("202 Accepted", "").await;
    let call = client.asked("POST").await;
    assert!(call.has("mcp-session-id: s2"), "{}", call.head);
    assert_eq!(call.body, CALL);
    call.answer("200 OK", &RESULT.replace(',', ",\n")).await;
    assert_eq!(client.hear().await, RESULT, "on one line");
}

/// Rule: a modern request stands alone, and is cancelled by closing its connection.
#[tokio::test]
async fn a_modern_request_carries_its_headers_and_is_cancelled_by_its_id() {
    let mut client = Client::start().await;
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
    let call = CALL.replace(r#""a"}"#, &format!(r#""\u00e9","_meta":{meta}}}"#));
    client.say(&call).await;
    let mut asked = client.asked("POST").await;
    assert!(asked.has("mcp-protocol-version: 2026-07-28") && asked.has("mcp-method: tools/call"));
    assert!(asked.has("mcp-name: =?base64?w6k=?="), "{}", asked.head);
    assert_eq!(asked.body, call);
    client
        .say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#)
        .await;
    let mut rest = Vec::new();
    drop(soon(asked.stream.read_to_end(&mut rest)).await);
    assert!(rest.is_empty(), "the connection is closed");
}

/// Rule: an error says what to do.
#[tokio::test]
async fn refusals_and_an_absent_daemon_are_answers() {
    let mut client = Client::start().await;
    client.say("no JSON").await;
    assert!(client.hear().await.contains("-32700"));
    client.say(CALL).await;
    let body = r#"{"error":{"message":"the token is unknown"}}"#;
    client.asked("POST").await.answer("401 Unauthorized", body).await;
    let refused = client.hear().await;
    assert!(refused.contains("the token is unknown; set RINGBACK_API_KEY"), "{refused}");
    client.listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    client.say(CALL).await;
    let absent = client.hear().await;
    assert!(absent.contains(r#""id":7"#) && absent.contains("ringback serve"), "{absent}");
}
