//! The one error body, wherever the error arises.

use std::time::Duration;

use axum::body::Body;
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{BODY_BYTES_MAX, Options, World, code};

#[tokio::test]
async fn what_does_not_exist_or_does_not_fit_is_told_in_one_form() {
    let world = World::start().await;
    for (line, body, status, expected) in [
        ("GET /nowhere", "", 404, "NOT_FOUND"),
        ("GET /v1/nowhere", "", 404, "NOT_FOUND"),
        ("POST /v1/jobs", "", 405, "METHOD_NOT_ALLOWED"),
        ("GET /v1/jobs?limit=many", "", 400, "INVALID_REQUEST"),
        ("GET /v1/jobs?status=asleep", "", 400, "INVALID_REQUEST"),
        ("GET /v1/jobs?cursor=%00", "", 400, "INVALID_REQUEST"),
        ("GET /v1/tools/%ff", "", 400, "INVALID_REQUEST"),
        ("GET /v1/jobs/nothing", "", 400, "INVALID_REQUEST"),
        ("GET /v1/artifacts/nothing", "", 400, "INVALID_REQUEST"),
        ("GET /v1/blobs/nothing", "", 400, "INVALID_REQUEST"),
        ("DELETE /v1/tokens/nothing", "", 400, "INVALID_REQUEST"),
        ("POST /v1/tokens", "{", 400, "INVALID_REQUEST"),
        ("POST /v1/tokens", "", 400, "INVALID_REQUEST"),
        ("POST /v1/tokens", "{\"name\": \"x\"}", 400, "INVALID_REQUEST"),
    ] {
        let (found, answer) = world.admin.ask(line, &[], body).await;
        assert_eq!((found, code(&answer)), (status, expected), "{line} {body}: {answer}");
    }
}

#[tokio::test]
async fn a_wrong_method_is_told_which_there_are() {
    let world = World::start().await;
    let reply = world.admin.send("PATCH /v1/jobs/x", &[], "").await;
    assert_eq!(reply.status, 405);
    let mut allowed: Vec<_> = reply.header("allow").split(',').map(str::trim).collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["DELETE", "GET", "HEAD"]);
    let reply = world.admin.send("GET /client-tools/execute", &[], "").await;
    assert_eq!((reply.status, reply.header("allow")), (405, "POST"));
}

/// Rule: a 30 MB body does not take the daemon down, announced or not.
#[tokio::test]
async fn a_body_over_the_limit_is_413_announced_or_not() {
    let world = World::start().await;
    for line in ["POST /client-tools/register", "POST /v1/tools/ping/call", "POST /v1/tokens"] {
        let whole = vec![b' '; BODY_BYTES_MAX + 1];
        let (status, answer) = world.admin.send(line, &[], whole).await.json().await;
        assert_eq!((status, code(&answer)), (413, "TOO_LARGE"), "{line}");
        let pieces =
            (0..BODY_BYTES_MAX / 1024 + 1).map(|_| Ok::<_, std::io::Error>(vec![b' '; 1024]));
        let streamed = Body::from_stream(stream::iter(pieces));
        let (status, answer) = world.admin.send(line, &[], streamed).await.json().await;
        assert_eq!((status, code(&answer)), (413, "TOO_LARGE"), "{line}");
    }
}

#[tokio::test]
async fn a_body_that_stops_coming_is_408() {
    let body_patience = Duration::from_millis(50);
    let world = World::start_with(Options { body_patience, ..Options::default() }).await;
    let mut stream = TcpStream::connect(world.admin.addr).await.unwrap();
    let head = format!(
        "POST /v1/tools/ping/call HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nContent-Length: 10\r\n\r\n{{",
        world.admin.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("REQUEST_TIMEOUT"), "{answer}");
}

#[tokio::test]
async fn every_request_needs_a_valid_token_of_its_own() {
    let world = World::start().await;
    let nobody = world.admin.nobody();
    let stranger = format!("authorization: Bearer oub_{}", "0".repeat(64));
    for header in ["x: y", "authorization: Basic eA==", "authorization: Bearer", &stranger] {
        for path in ["/v1/tools", "/client-tools/tools", "/client-tools/pending/a", "/event"] {
            let reply = nobody.send(&format!("GET {path}"), &[header], "").await;
            assert_eq!((reply.status, reply.header("www-authenticate")), (401, "Bearer"), "{path}");
        }
    }
    let reader = world.agent("read").await;
    let body = r#"{"milliseconds": 1}"#;
    let (status, denied) = reader.ask("POST /v1/tools/job_sleep/call", &[], body).await;
    assert_eq!((status, code(&denied)), (403, "FORBIDDEN"));
    assert!(denied["error"]["details"]["missing"].as_str().unwrap().contains("write"));
}

/// Rule: the scope is checked first: a caller without it learns nothing about the arguments.
#[tokio::test]
async fn what_a_token_may_not_call_is_refused_before_its_arguments_are_read() {
    let world = World::start().await;
    let reader = world.agent("read").await;
    let registered = r#"{"clientID": "c", "tools": [{"id": "t"}]}"#;
    assert_eq!(reader.ask("POST /client-tools/register", &[], registered).await.0, 403);
    for (line, body) in [
        ("POST /v1/tools/job_sleep/call", "{}"),
        ("POST /v1/tools/job_sleep/call", "[]"),
        ("POST /v1/tools/job_sleep/call", "no JSON"),
        ("POST /v1/tools/job_sleep/call?deadline_ms=x", "{}"),
        ("POST /v1/tools/token_create/call", "{}"),
        ("POST /v1/tokens", "{}"),
        ("DELETE /v1/tokens/nothing", ""),
        ("POST /v1/sessions", "{}"),
        ("DELETE /v1/sessions/nothing", ""),
        ("PUT /v1/blobs/nothing", "x"),
        ("POST /client-tools/register", "{}"),
        ("DELETE /client-tools/unregister", "{}"),
        ("POST /client-tools/execute", "{}"),
        ("POST /client-tools/result", "{}"),
    ] {
        let (status, denied) = reader.ask(line, &[], body).await;
        assert_eq!((status, code(&denied)), (403, "FORBIDDEN"), "{line} {body}");
    }
}
