//! Calls as HTTP and JSON, against a real broker.
#![expect(clippy::unwrap_used, reason = "a test names what it expects and fails on the rest")]

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use ringback_broker::{Broker, Clock, Config, ConfigView, Entropy};
use ringback_edge_http::{Door, v1};
use ringback_proto::value::Value as AnyValue;
use serde_json::{Value, json};
use tower::ServiceExt as _;

#[derive(Debug)]
struct NoConfig;

impl ConfigView for NoConfig {
    fn get(&self, _: Option<&str>, _: Option<&str>) -> Option<AnyValue> {
        None
    }
}

struct World {
    routes: Router,
    token: String,
    _dir: tempfile::TempDir,
}

impl World {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = Config {
            data_dir: camino::Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap(),
            file_roots: Vec::new(),
            version: "test".to_owned(),
            view: Arc::new(NoConfig),
            calls_per_principal_max: 64,
            jobs_running_max: 4,
            jobs_live_max: 8,
            jobs_per_principal_max: 8,
            events_kept_max: 100,
            uploads_open_max: 4,
            upload_bytes_max: 1 << 20,
            call_ms_max: 3_600_000,
        };
        let broker = Broker::start(config, Clock::system(), Entropy::system()).await.unwrap();
        let token = broker.first_token().await.unwrap().unwrap().expose().to_owned();
        Self { routes: v1(broker, Door::Token), token, _dir: dir }
    }

    async fn send(&self, request: Request<Body>) -> Response<Body> {
        self.routes.clone().oneshot(request).await.unwrap()
    }

    /// A request with the first token; each of `headers` is `name: value`.
    async fn ask(&self, line: &str, headers: &[&str], body: &str) -> (StatusCode, Value) {
        let response = self.response(line, headers, body).await;
        let status = response.status();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice(&bytes).unwrap())
    }

    async fn response(&self, line: &str, headers: &[&str], body: &str) -> Response<Body> {
        let (method, path) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path);
        request = request.header("authorization", format!("Bearer {}", self.token));
        for header in headers {
            let (name, value) = header.split_once(": ").unwrap();
            request = request.header(name, value);
        }
        self.send(request.body(Body::from(body.to_owned())).unwrap()).await
    }
}

#[tokio::test]
async fn a_tool_is_listed_described_and_called() {
    let world = World::start().await;
    let (status, listed) = world.ask("GET /v1/tools?prefix=job_", &[], "").await;
    assert_eq!(status, StatusCode::OK);
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert!(names.contains(&&json!("job_sleep")) && !names.contains(&&json!("ping")), "{names:?}");
    let (_, tool) = world.ask("GET /v1/tools/job_sleep", &[], "").await;
    assert_eq!(tool["input_schema"]["required"], json!(["milliseconds"]));

    let (status, pong) = world.ask("POST /v1/tools/ping/call", &[], "").await;
    assert_eq!((status, &pong["result"]["type"]), (StatusCode::OK, &json!("pong")));
    let (status, slept) =
        world.ask("POST /v1/tools/job_sleep/call", &[], r#"{"milliseconds": 1}"#).await;
    assert_eq!(status, StatusCode::OK, "the edge waits as the class says: {slept}");
    assert_eq!(slept["result"], json!({"type": "slept", "milliseconds": 1}));
}

#[tokio::test]
async fn a_caller_that_does_not_wait_gets_the_job_and_follows_it() {
    let world = World::start().await;
    let prefer = ["prefer: respond-async"];
    let body = r#"{"milliseconds": 60000}"#;
    let response = world.response("POST /v1/tools/job_sleep/call", &prefer, body).await;
    assert_eq!(response.status(), StatusCode::ACCEPTED);
    let location = response.headers()["location"].to_str().unwrap().to_owned();
    let (_, job) = world.ask(&format!("GET {location}"), &[], "").await;
    assert_eq!(job["status"], "running");
    let (status, cancelled) = world.ask(&format!("DELETE {location}"), &[], "").await;
    assert_eq!((status, &cancelled["status"]), (StatusCode::OK, &json!("cancelled")));
    let (_, listed) = world.ask("GET /v1/jobs?status=cancelled", &[], "").await;
    assert_eq!(listed["by_status"]["cancelled"], 1);
}

/// Rule: the same `Idempotency-Key` from the same caller is the same call.
#[tokio::test]
async fn an_idempotency_key_makes_a_repeat_the_same_call() {
    let world = World::start().await;
    let headers = ["prefer: respond-async", "idempotency-key: once"];
    let call = "POST /v1/tools/job_sleep/call";
    let (_, first) = world.ask(call, &headers, r#"{"milliseconds": 0}"#).await;
    let (_, again) = world.ask(call, &headers, r#"{"milliseconds": 0}"#).await;
    assert_eq!(first, again);
    let (status, other) = world.ask(call, &headers, r#"{"milliseconds": 1}"#).await;
    assert_eq!((status, &other["error"]["code"]), (StatusCode::CONFLICT, &json!("CONFLICT")));
}

#[tokio::test]
async fn a_stream_is_server_sent_events() {
    let world = World::start().await;
    let accept = ["accept: text/event-stream"];
    for (tool, body, expected) in [
        (
            "job_sleep",
            r#"{"milliseconds": 120}"#,
            ["event: start", "event: chunk", "event: result"],
        ),
        ("ping", "", ["event: result", "pong", "uptime_ms"]),
        ("job_sleep", r#"{"milliseconds": 99999999}"#, ["event: start", "event: error", "INVALID"]),
    ] {
        let line = format!("POST /v1/tools/{tool}/call");
        let response = world.response(&line, &accept, body).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        let collected = response.into_body().collect();
        let bytes = tokio::time::timeout(Duration::from_secs(20), collected).await.unwrap();
        let text = String::from_utf8(bytes.unwrap().to_bytes().to_vec()).unwrap();
        let places: Vec<_> = expected.iter().map(|part| text.find(part)).collect();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{text}");
    }
}

#[tokio::test]
async fn bad_input_gets_a_typed_error_and_starts_nothing() {
    let world = World::start().await;
    let call = "POST /v1/tools/job_sleep/call";
    for (line, headers, body, status, code) in [
        (call, vec![], "{", 400, "INVALID_REQUEST"),
        (call, vec![], "[5]", 400, "INVALID_REQUEST"),
        (call, vec![], r#"{"milliseconds": "x"}"#, 400, "INVALID_REQUEST"),
        (call, vec![], r#"{"milliseconds": 1} x"#, 400, "INVALID_REQUEST"),
        (call, vec!["prefer: wait=soon"], "{}", 400, "INVALID_REQUEST"),
        (call, vec!["content-type: text/plain"], "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("POST /v1/tools/nothing/call", vec![], "{}", 404, "NOT_FOUND"),
        ("GET /v1/tools/nothing", vec![], "", 404, "NOT_FOUND"),
        ("GET /v1/jobs/nothing", vec![], "", 400, "INVALID_REQUEST"),
        ("GET /v1/nothing", vec![], "", 404, "NOT_FOUND"),
    ] {
        let (found, answer) = world.ask(line, &headers, body).await;
        assert_eq!(
            (found.as_u16(), &answer["error"]["code"]),
            (status, &json!(code)),
            "{line} {body}"
        );
        assert_eq!(answer["error"]["certainty"], "not_started", "{answer}");
    }
    let (_, listed) = world.ask("GET /v1/jobs", &[], "").await;
    assert_eq!(listed["total"], 0);
}

#[tokio::test]
async fn every_request_needs_a_valid_token_of_its_own() {
    let world = World::start().await;
    let request = |authorization: Option<&str>| {
        let mut request = Request::builder().uri("/v1/tools");
        if let Some(value) = authorization {
            request = request.header("authorization", value);
        }
        request.body(Body::empty()).unwrap()
    };
    let stranger = format!("Bearer oub_{}", "0".repeat(64));
    for authorization in [None, Some("Basic eA=="), Some("Bearer"), Some(stranger.as_str())] {
        let response = world.send(request(authorization)).await;
        assert_eq!(response.status(), StatusCode::UNAUTHORIZED, "{authorization:?}");
        assert_eq!(response.headers()["www-authenticate"], "Bearer");
    }
    let body = r#"{"name": "reader", "scope": "read"}"#;
    let (_, made) = world.ask("POST /v1/tools/token_create/call", &[], body).await;
    let reader = format!("bearer {}", made["result"]["token"].as_str().unwrap());
    let mut call = Request::builder().method("POST").uri("/v1/tools/job_sleep/call");
    call = call.header("authorization", reader);
    let denied = world.send(call.body(Body::from(r#"{"milliseconds": 1}"#)).unwrap()).await;
    assert_eq!(denied.status(), StatusCode::FORBIDDEN);
}
