//! A session at a URL: the test plays the daemon's HTTP.

use std::process::Stdio;

use ringback_testkit::soon;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::program;

const LIST: &str = r#"{"resultType":"complete","tools":[{"name":"ant_send","inputSchema":{"type":"object"}}],"ttlMs":1,"cacheScope":"private"}"#;

struct Agent {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
}

/// A request that waits for its answer.
struct PendingRequest {
    stream: BufReader<TcpStream>,
    head: String,
    body: String,
}

impl Agent {
    fn start(listener: &TcpListener) -> Self {
        let url = format!("http://{}/mcp/s/gogol_x", listener.local_addr().unwrap());
        let mut child = Command::new(program())
            .env_clear()
            .args(["--url", &url])
            .env("OUBLIETTE_SESSION_TOKEN", "oub_secret")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let stdin = child.stdin.take().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, stdin, stdout }
    }

    async fn say(&mut self, rest: &str) {
        let line = format!("{{\"jsonrpc\":\"2.0\",{rest}}}\n");
        soon(self.stdin.write_all(line.as_bytes())).await.unwrap();
    }

    async fn call(&mut self, id: u32) {
        let params = r#"{"name":"ant_send","arguments":{"n":12345678901234567890},"_meta":{"progressToken":"t"}}"#;
        self.say(&format!(r#""id":{id},"method":"tools/call","params":{params}"#)).await;
    }

    async fn hear(&mut self) -> String {
        soon(self.stdout.next_line()).await.unwrap().expect("a line of the program")
    }
}

impl PendingRequest {
    async fn accept(listener: &TcpListener, method: &str) -> Self {
        let (stream, _) = soon(listener.accept()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            soon(stream.read_line(&mut head)).await.unwrap();
        }
        let length = head.to_lowercase().split_once("content-length: ").unwrap().1.to_owned();
        let mut body = vec![0; length.split_once("\r\n").unwrap().0.parse().unwrap()];
        soon(stream.read_exact(&mut body)).await.unwrap();
        assert!(head.contains(&format!("mcp-method: {method}\r\n")), "{head}");
        assert!(head.contains("authorization: Bearer oub_secret\r\n"), "{head}");
        assert!(head.starts_with("POST /mcp/s/gogol_x HTTP/1.1"), "{head}");
        Self { stream, head, body: String::from_utf8(body).unwrap() }
    }

    async fn write(&mut self, text: &str) {
        soon(self.stream.write_all(text.as_bytes())).await.unwrap();
    }

    /// Answers with JSON.
    async fn answer(mut self, id: u64, result: &str) {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
        let length = body.len();
        self.write(&format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")).await;
    }

    /// Answers with a stream.
    async fn stream(mut self) -> Self {
        self.write(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n",
        )
        .await;
        self
    }

    async fn event(&mut self, message: &str) {
        self.write(&format!("data: {message}\n\n")).await;
    }

    /// Waits until the program has closed the connection.
    async fn closed(mut self) {
        let mut rest = Vec::new();
        drop(soon(self.stream.read_to_end(&mut rest)).await);
    }
}

/// An agent whose session has sent its tools, and the subscription.
async fn ready(listener: &TcpListener) -> (Agent, PendingRequest) {
    let mut agent = Agent::start(listener);
    agent.say(r#""id":1,"method":"tools/list""#).await;
    let mut news = PendingRequest::accept(listener, "subscriptions/listen").await.stream().await;
    let acknowledged = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":{"toolsListChanged":true}}}"#;
    news.event(acknowledged).await;
    PendingRequest::accept(listener, "tools/list").await.answer(1, LIST).await;
    let listed = agent.hear().await;
    assert!(listed.contains(r#""tools":[{"name":"ant_send","#), "{listed}");
    assert!(!listed.contains("resultType"), "the agent is of the legacy era: {listed}");
    (agent, news)
}

/// REQ: design "the session as a URL": every rule of the socket holds there too.
#[tokio::test]
async fn tools_calls_and_progress_pass_through_a_url() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (mut agent, mut news) = ready(&listener).await;
    agent.say(r#""method":"notifications/initialized""#).await;
    agent.call(2).await;
    let call = PendingRequest::accept(&listener, "tools/call").await;
    assert!(call.head.contains("mcp-name: ant_send\r\n"), "{}", call.head);
    assert!(call.body.contains(r#""arguments":{"n":12345678901234567890}"#), "{}", call.body);
    let mut call = call.stream().await;
    call.event(r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":50,"total":100,"message":"half"}}"#).await;
    assert!(agent.hear().await.contains(r#""progressToken":"t","progress":50"#));
    call.event(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}}"#).await;
    let answer = agent.hear().await;
    assert!(
        answer.ends_with(r#""result":{"content":[{"type":"text","text":"[1]"}]}}"#),
        "{answer}"
    );

    news.event(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#).await;
    PendingRequest::accept(&listener, "tools/list")
        .await
        .answer(1, &LIST.replace("send", "other"))
        .await;
    assert!(agent.hear().await.contains("notifications/tools/list_changed"));
}

/// Rule: cancelling closes the stream of the call, and broken streams are reported truthfully.
#[tokio::test]
async fn a_call_that_is_cancelled_or_broken_off_is_told_truthfully() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (mut agent, _news) = ready(&listener).await;
    agent.call(2).await;
    let call = PendingRequest::accept(&listener, "tools/call").await;
    agent.say(r#""method":"notifications/cancelled","params":{"requestId":2}"#).await;
    call.closed().await;
    agent.call(3).await;
    drop(PendingRequest::accept(&listener, "tools/call").await.stream().await);
    let broken = agent.hear().await;
    assert!(broken.contains(r#""id":3"#) && broken.contains("may_have_run"), "{broken}");
    drop(listener);
    agent.call(4).await;
    let away = agent.hear().await;
    assert!(away.contains(r#""id":4"#) && away.contains("not_started"), "{away}");
}

/// Rule: an invalid token is reported, and is in no log.
#[tokio::test]
async fn a_token_that_is_refused_is_said_without_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut agent = Agent::start(&listener);
    let mut refused = PendingRequest::accept(&listener, "subscriptions/listen").await;
    refused
        .write("HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        .await;
    agent.say(r#""id":1,"method":"tools/list""#).await;
    assert!(agent.hear().await.contains(r#""tools":[]"#));
    drop(agent.stdin);
    let mut log = String::new();
    soon(agent.child.stderr.take().unwrap().read_to_string(&mut log)).await.unwrap();
    assert!(
        log.contains("token is invalid or no longer valid") && !log.contains("oub_secret"),
        "{log}"
    );
}
