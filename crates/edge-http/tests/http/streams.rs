//! `GET /client-tools/pending/{clientID}`: a client's streams, and what happens when they close.

use std::time::Duration;

use ringback_testkit::pass;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::execute::{WaitingCall, succeed};
use crate::register::{register, tool};
use crate::support::{Options, World, code};

/// REQ: seed 004 "Testing Strategy" 4: headers come immediately, before any event.
#[tokio::test]
async fn headers_do_not_wait_for_the_first_event() {
    let world = World::start().await;
    let stream = world.admin.stream("/client-tools/pending/nobody-registered").await;
    assert_eq!(stream.headers["cache-control"], "no-cache");
    assert_eq!(stream.headers["x-accel-buffering"], "no");
}

/// REQ: seed 004 "Event Format" and "Testing Strategy" 5; configuration `keepaliveInterval`.
#[tokio::test]
async fn a_ping_comes_at_every_interval() {
    let keepalive = Duration::from_secs(20);
    let world = World::start_with(Options { keepalive, ..Options::default() }).await;
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    for _ in 0..3 {
        pass(keepalive).await;
        assert_eq!(stream.next().await.unwrap().raw, "event: ping\ndata: \n\n");
    }
}

/// REQ: seed 004 "Error Handling": streaming not supported.
#[tokio::test]
async fn http_1_0_cannot_stream() {
    let world = World::start().await;
    for path in ["/client-tools/pending/c", "/event"] {
        let request =
            format!("GET {path} HTTP/1.0\r\nAuthorization: Bearer {}\r\n\r\n", world.admin.token);
        let mut stream = TcpStream::connect(world.admin.addr).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.0 500"), "{answer}");
        let says = answer.contains("INTERNAL_ERROR") && answer.contains("streaming not supported");
        assert!(says, "{answer}");
    }
}

/// Rule: a call made while no stream is open waits for one.
#[tokio::test]
async fn a_call_made_before_the_stream_opens_is_not_lost() {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let mut call =
        WaitingCall::call(&world.admin, json!({"toolID": "client_c_t", "requestID": "r"}));
    world.settled(|broker| broker.under_way().lines.2 == 1).await;
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    assert_eq!(stream.named("tool-request").await.json()["requestID"], "r");
    assert_eq!(succeed(&world.admin, &json!("r"), "o").await.0, 200);
    assert_eq!(call.answer().await.0, 200);
}

/// Rule: of two tabs, the newest one runs a call; closing one of them loses nothing.
#[tokio::test]
async fn two_tabs_never_both_run_a_call_and_one_may_close() {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let mut old = world.admin.stream("/client-tools/pending/c").await;
    let mut new = world.admin.stream("/client-tools/pending/c").await;
    for request_id in ["1", "2"] {
        let body = json!({"toolID": "client_c_t", "requestID": request_id});
        let mut call = WaitingCall::call(&world.admin, body);
        assert_eq!(new.named("tool-request").await.json()["requestID"], request_id);
        assert_eq!(succeed(&world.admin, &json!(request_id), "o").await.0, 200);
        assert_eq!(call.answer().await.0, 200);
    }
    drop(new);
    world.settled(|broker| broker.under_way().lines.1 == 1).await;
    let mut call =
        WaitingCall::call(&world.admin, json!({"toolID": "client_c_t", "requestID": "3"}));
    let first = old.named("tool-request").await.json();
    assert_eq!(first["requestID"], "3", "the old tab never saw the calls of the new one");
    assert_eq!(succeed(&world.admin, &json!("3"), "o").await.0, 200);
    assert_eq!(call.answer().await.0, 200);
}

/// REQ: seed 004 "Lifecycle" and "Testing Strategy" 6. Rule: a disconnect is never an empty
/// success.
#[tokio::test]
async fn when_the_last_stream_closes_tools_go_and_calls_fail_at_once() {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let mut call = WaitingCall::call(&world.admin, json!({"toolID": "client_c_t"}));
    stream.named("tool-request").await;
    drop(stream);
    let (status, answer) = call.answer().await;
    assert_eq!((status, code(&answer)), (503, "CLIENT_GONE"));
    assert_eq!(answer["error"]["certainty"], "may_have_run");
    assert_eq!(world.admin.get("/client-tools/tools").await.1, json!({}));
    world.settled(|broker| broker.under_way().lines == (0, 0, 0)).await;
}

/// Rule: with a grace period, a client that comes back gets its unanswered calls again, under the
/// same ids.
#[tokio::test]
async fn with_grace_a_reload_loses_nothing() {
    let world = World::start().await;
    let body = json!({"clientID": "c", "tools": [tool("t")], "graceMs": 10_000});
    assert_eq!(world.admin.json("POST /client-tools/register", body).await.0, 200);
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let mut call = WaitingCall::call(&world.admin, json!({"toolID": "client_c_t"}));
    let first = stream.named("tool-request").await;
    drop(stream);
    world.settled(|broker| broker.under_way().lines.1 == 0).await;
    assert!(call.is_waiting());
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let again = stream.named("tool-request").await;
    assert_eq!(again.raw, first.raw);
    assert_eq!(succeed(&world.admin, &again.json()["requestID"], "o").await.0, 200);
    assert_eq!(call.answer().await.0, 200);
    assert_eq!(world.admin.get("/client-tools/tools/c").await.1.as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn when_grace_is_over_calls_fail() {
    let world = World::start().await;
    let body = json!({"clientID": "c", "tools": [tool("t")], "graceMs": 50});
    assert_eq!(world.admin.json("POST /client-tools/register", body).await.0, 200);
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let mut call = WaitingCall::call(&world.admin, json!({"toolID": "client_c_t"}));
    stream.named("tool-request").await;
    drop(stream);
    let (status, answer) = call.answer().await;
    assert_eq!((status, code(&answer)), (503, "CLIENT_GONE"));
    assert_eq!(world.admin.get("/client-tools/tools/c").await.1, json!([]));
}

/// Rule: when the caller hangs up, the client is notified.
#[tokio::test]
async fn a_caller_that_leaves_cancels_its_call() {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let call = WaitingCall::call(&world.admin, json!({"toolID": "client_c_t", "requestID": "r"}));
    stream.named("tool-request").await;
    call.leave().await;
    let cancel = stream.named("tool-cancel").await.json();
    assert_eq!(cancel["requestID"], "r");
    assert_eq!(succeed(&world.admin, &json!("r"), "late").await.0, 404);
    world.settled(|broker| broker.under_way().n_calls == 0).await;
}

#[tokio::test]
async fn a_clients_streams_end_with_its_token() {
    let world = World::start().await;
    let owner = world.agent("write").await;
    register(&owner, "c", &["t"]).await;
    let mut stream = owner.stream("/client-tools/pending/c").await;
    let revoke = format!("DELETE /v1/tokens/{}", owner.token_id);
    assert_eq!(world.admin.ask(&revoke, &[], "").await.0, 200);
    stream.ended().await;
    world.settled(|broker| broker.under_way().lines == (0, 0, 0)).await;
}
