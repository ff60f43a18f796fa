//! A line over HTTP against a daemon that the test simulates.

use std::time::Duration;

use ringback_client::line::{
    Line, LineCaller, LineConfig, LineError, LineEvent, LineResult, LineTool,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::support::token;

/// Reached only when something is wrong.
const LIMIT: Duration = Duration::from_secs(20);

/// A listener whose requests the test answers one by one.
struct Http(TcpListener);

/// A request that waits for its answer.
struct PendingRequest {
    line: String,
    head: String,
    body: Value,
    stream: TcpStream,
}

impl Http {
    async fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        (Self(listener), address)
    }

    /// Returns the next request, which must be this one.
    async fn asked(&self, line: &str) -> PendingRequest {
        let asked = tokio::time::timeout(LIMIT, read(&self.0)).await.expect("a request in time");
        assert_eq!(asked.line, format!("{line} HTTP/1.1"), "{}", asked.body);
        asked
    }

    /// Accepts a registration and opens a stream.
    async fn open(&self) -> TcpStream {
        let asked = self.asked("POST /client-tools/register").await;
        asked.answer(200, &json!({"registered": ["client_c_t"]})).await;
        self.asked("GET /client-tools/pending/c").await.events().await
    }
}

async fn read(listener: &TcpListener) -> PendingRequest {
    let (mut stream, _) = listener.accept().await.unwrap();
    let (mut text, mut buffer) = (Vec::new(), [0; 4096]);
    let (head, start) = loop {
        let n_bytes = stream.read(&mut buffer).await.unwrap();
        assert!(n_bytes > 0, "the request ends in its head");
        text.extend_from_slice(&buffer[..n_bytes]);
        if let Some(end) = text.windows(4).position(|window| window == b"\r\n\r\n") {
            break (String::from_utf8(text[..end].to_vec()).unwrap(), end + 4);
        }
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.parse().unwrap());
    while text.len() < start + length {
        let n_bytes = stream.read(&mut buffer).await.unwrap();
        text.extend_from_slice(&buffer[..n_bytes]);
    }
    let body = serde_json::from_slice(&text[start..]).unwrap_or_default();
    let line = head.lines().next().unwrap().to_owned();
    PendingRequest { line, head, body, stream }
}

impl PendingRequest {
    async fn answer(mut self, status: u16, body: &Value) {
        let body = body.to_string();
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
        self.stream.write_all((head + &body).as_bytes()).await.unwrap();
    }

    async fn events(mut self) -> TcpStream {
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        self.stream.write_all(head.as_bytes()).await.unwrap();
        self.stream
    }
}

fn config(address: String) -> LineConfig {
    let mut config = LineConfig::new(address, "c");
    config.token = Some(token());
    config.grace = Duration::from_secs(5);
    let (id, description) = ("t".to_owned(), "a tool".to_owned());
    config.tools = vec![LineTool { id, description, parameters: None, timeout_ms: Some(70) }];
    config
}

async fn opened(http: &Http, config: LineConfig) -> (Line, TcpStream) {
    let (line, stream) = tokio::join!(Line::open(config), http.open());
    (line.unwrap(), stream)
}

async fn event(line: &mut Line) -> Result<LineEvent, LineError> {
    tokio::time::timeout(LIMIT, line.next()).await.expect("an event in time")
}

/// Rule: calls arrive as their caller wrote them, whatever else is on the stream and however it is
/// split.
#[tokio::test]
async fn a_line_registers_and_gets_its_calls_as_they_were_written() {
    let (http, address) = Http::start().await;
    let registering = async {
        let asked = http.asked("POST /client-tools/register").await;
        assert!(asked.head.contains(&format!("authorization: Bearer {}", token().expose())));
        let tool = json!({"id": "t", "description": "a tool", "timeoutMs": 70});
        assert_eq!(asked.body, json!({"clientID": "c", "tools": [tool], "graceMs": 5000}));
        asked.answer(200, &json!({"registered": ["client_c_t"]})).await;
        http.asked("GET /client-tools/pending/c").await.events().await
    };
    let (line, mut stream) = tokio::join!(Line::open(config(address)), registering);
    let mut line = line.unwrap();
    assert_eq!(line.full_names(), ["client_c_t"]);
    let input = r#"{"z":1e2, "a":18446744073709551616}"#;
    let sent = format!(
        ": a comment\n\nevent: ping\ndata: \n\nevent: new\ndata: {{}}\n\nevent: tool-request\ndata: \
         {{\"requestID\":\"r1\",\"tool\":\"client_c_t\",\"input\":{input}}}\n\nevent: tool-cancel\ndata: \
         {{\"requestID\":\"r1\",\"reason\":\"timeout\"}}\n\n"
    );
    let (first, rest) = sent.split_at(sent.len() / 2);
    for piece in [first, rest] {
        stream.write_all(piece.as_bytes()).await.unwrap();
        stream.flush().await.unwrap();
    }
    let LineEvent::Call(call) = event(&mut line).await.unwrap() else { panic!("a call") };
    assert_eq!((call.request_id.as_str(), call.input.get()), ("r1", input));
    let LineEvent::Cancel { request_id, reason } = event(&mut line).await.unwrap() else {
        panic!("a cancel")
    };
    assert_eq!((request_id.as_str(), reason.as_str()), ("r1", "timeout"));
}

/// Rule: a result that no longer counts is reported as such, and is not an error.
#[tokio::test]
async fn a_party_tells_progress_and_results_and_learns_whether_they_count() {
    let (http, address) = Http::start().await;
    let (line, _stream) = opened(&http, config(address)).await;
    let party = line.party();
    let answering = async {
        let asked = http.asked("POST /client-tools/progress").await;
        assert_eq!(asked.body, json!({"requestID": "r1", "percent": 50.0, "message": "half"}));
        asked.answer(200, &json!({"success": true})).await;
        let asked = http.asked("POST /client-tools/result").await;
        let result = json!({"status": "success", "title": "", "output": "done"});
        assert_eq!(asked.body, json!({"requestID": "r1", "result": result}));
        asked.answer(404, &json!({"error": "Unknown request ID"})).await;
        let asked = http.asked("POST /client-tools/result").await;
        assert_eq!(asked.body["result"], json!({"status": "error", "error": "no"}));
        asked.answer(503, &json!({"error": {"code": "BUSY", "message": "full"}})).await;
        let asked = http.asked("DELETE /client-tools/unregister").await;
        assert_eq!(asked.body, json!({"clientID": "c", "toolIDs": ["t"]}));
        asked.answer(200, &json!({"success": true, "unregistered": []})).await;
    };
    let telling = async {
        assert!(party.progress("r1", 50.0, "half").await.unwrap());
        let done = LineResult::Success { title: String::new(), output: "done".to_owned() };
        assert!(!party.answer("r1", &done).await.unwrap());
        let failed = LineResult::Error { error: "no".to_owned() };
        let error = party.answer("r1", &failed).await.unwrap_err();
        assert_eq!((error.status(), error.is_final()), (Some(503), false));
        assert!(error.to_string().contains("full"), "{error}");
        line.close().await.unwrap();
    };
    tokio::join!(answering, telling);
}

/// Rule: a lost stream is opened again, and tools are registered again with a daemon that has
/// forgotten the line.
#[tokio::test]
async fn a_lost_stream_is_reopened_and_a_forgotten_line_registered_again() {
    let (http, address) = Http::start().await;
    let (mut line, mut stream) = opened(&http, config(address)).await;
    for is_known in [true, false] {
        drop(stream);
        assert!(matches!(event(&mut line).await.unwrap(), LineEvent::Lost { .. }));
        let coming_back = async {
            // The first try finds a daemon at its limit.
            let asked = http.asked("GET /client-tools/pending/c").await;
            asked.answer(503, &json!({"error": {"code": "BUSY", "message": "full"}})).await;
            let stream = http.asked("GET /client-tools/pending/c").await.events().await;
            let listed = if is_known { json!([{"id": "client_c_t"}]) } else { json!([]) };
            http.asked("GET /client-tools/tools/c").await.answer(200, &listed).await;
            if !is_known {
                let asked = http.asked("POST /client-tools/register").await;
                asked.answer(200, &json!({"registered": ["client_c_t"]})).await;
            }
            stream
        };
        let (back, again) = tokio::join!(event(&mut line), coming_back);
        let LineEvent::Back { registered_again } = back.unwrap() else { panic!("it is back") };
        assert_eq!(registered_again, !is_known);
        stream = again;
    }
}

/// Rule: a line that may no longer be held ends with the reason.
#[tokio::test]
async fn a_line_that_may_not_be_held_ends() {
    let (http, address) = Http::start().await;
    let (mut line, stream) = opened(&http, config(address)).await;
    drop(stream);
    assert!(matches!(event(&mut line).await.unwrap(), LineEvent::Lost { .. }));
    let refusing = async {
        let refused = json!({"error": {"code": "UNAUTHENTICATED", "message": "revoked"}});
        http.asked("GET /client-tools/pending/c").await.answer(401, &refused).await;
    };
    let (ended, ()) = tokio::join!(event(&mut line), refusing);
    let error = ended.unwrap_err();
    assert_eq!((error.status(), error.is_final()), (Some(401), true));
    assert!(error.to_string().contains("revoked"), "{error}");
}

/// Rule: a silent stream is a dead one.
#[tokio::test]
async fn a_stream_that_brings_nothing_is_lost() {
    let (http, address) = Http::start().await;
    let config = LineConfig { silence_max: Duration::from_millis(50), ..config(address) };
    let (mut line, _stream) = opened(&http, config).await;
    let LineEvent::Lost { reason } = event(&mut line).await.unwrap() else { panic!("it is lost") };
    assert!(reason.contains("50ms"), "{reason}");
}

/// Rule: a caller passes its input on as text, and reads the daemon's errors.
#[tokio::test]
async fn a_caller_calls_and_is_told_why_not() {
    let (http, address) = Http::start().await;
    let mut answering = JoinSet::new();
    answering.spawn(async move {
        let asked = http.asked("POST /client-tools/execute").await;
        assert_eq!((&asked.body["toolID"], &asked.body["requestID"]), (&json!("t"), &json!("r")));
        asked.answer(200, &json!({"status": "success", "title": "T", "output": "O"})).await;
        let asked = http.asked("POST /client-tools/execute").await;
        asked.answer(502, &json!({"error": {"code": "TOOL_ERROR", "message": "broken"}})).await;
    });
    let caller = LineCaller::new(address, Some(&token())).unwrap();
    let input = RawValue::from_string("{\"a\":1.0}".to_owned()).unwrap();
    let executed = caller.execute("t", "r", &input).await.unwrap();
    assert_eq!((executed.title.as_str(), executed.output.as_str()), ("T", "O"));
    let failed = caller.execute("t", "r", &input).await.unwrap_err();
    assert_eq!(failed.status(), Some(502));
    answering.join_next().await.unwrap().unwrap();
}
