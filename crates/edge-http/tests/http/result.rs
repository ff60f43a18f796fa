//! `POST /client-tools/result` and `/progress`: two dialects, one result.

use std::time::Duration;

use ringback_testkit::pass;
use serde_json::{Value, json};

use crate::execute::{WaitingCall, succeed};
use crate::register::register;
use crate::support::{World, code};

const RESULT: &str = "POST /client-tools/result";

/// A world in which `r` was called and delivered.
async fn called() -> (World, WaitingCall, crate::support::Sse) {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let waiting =
        WaitingCall::call(&world.admin, json!({"toolID": "client_c_t", "requestID": "r"}));
    stream.named("tool-request").await;
    (world, waiting, stream)
}

/// Rule: the shape of a result decides the shape of its answer.
#[tokio::test]
async fn each_dialect_is_answered_in_its_own_way() {
    let (world, mut waiting, _stream) = called().await;
    let flat = json!({"requestID": "r", "status": "success", "title": "t", "output": "o",
        "metadata": {"k": [1]}});
    assert_eq!(world.admin.json(RESULT, flat.clone()).await, (200, json!(true)));
    let expected =
        json!({"status": "success", "title": "t", "output": "o", "metadata": {"k": [1]}});
    assert_eq!(waiting.answer().await, (200, expected));

    let (status, again) = world.admin.json(RESULT, flat).await;
    assert_eq!((status, code(&again)), (404, "NOT_FOUND"));
    let nested =
        json!({"requestID": "x", "result": {"status": "success", "title": "", "output": ""}});
    let unknown = json!({"error": "Unknown request ID"});
    assert_eq!(world.admin.json(RESULT, nested).await, (404, unknown));
}

#[tokio::test]
async fn a_flat_result_may_leave_things_out() {
    let (world, mut waiting, _stream) = called().await;
    let flat = json!({"requestID": "r", "status": "success"});
    assert_eq!(world.admin.json(RESULT, flat).await, (200, json!(true)));
    assert_eq!(
        waiting.answer().await,
        (200, json!({"status": "success", "title": "", "output": ""}))
    );
}

/// Rule: an unknown status never counts as success, and leaves the call as it was.
#[tokio::test]
async fn a_result_that_does_not_fit_is_400_and_the_call_goes_on() {
    let (world, mut waiting, _stream) = called().await;
    for body in [
        json!({"requestID": "r", "status": "maybe"}),
        json!({"requestID": "r", "status": ""}),
        json!({"requestID": "r"}),
        json!({"requestID": "r", "status": "success", "output": 5}),
        json!({"requestID": "r", "result": {"status": "maybe"}}),
        json!({"requestID": "r", "result": {"status": "success", "output": "no title"}}),
        json!({"requestID": "r", "result": {"status": "error"}}),
        json!({"requestID": "r", "result": {"title": "t", "output": "o"}}),
        json!({"requestID": "r", "result": "success"}),
        json!({"requestID": "", "status": "success"}),
        json!({"requestID": 5, "status": "success"}),
        json!({"status": "success"}),
        Value::Null,
    ] {
        let (status, answer) = world.admin.json(RESULT, body.clone()).await;
        assert_eq!((status, code(&answer)), (400, "INVALID_REQUEST"), "{body}");
    }
    assert!(waiting.is_waiting());
    assert_eq!(succeed(&world.admin, &json!("r"), "o").await.0, 200);
    assert_eq!(waiting.answer().await.0, 200);
}

/// Rule: only the principal that registered the tool answers, and once.
#[tokio::test]
async fn a_strangers_result_and_a_second_one_change_nothing() {
    let (world, mut waiting, _stream) = called().await;
    let stranger = world.agent("admin").await;
    assert_eq!(succeed(&stranger, &json!("r"), "forged").await.0, 404);
    let progress = json!({"requestID": "r", "percent": 5});
    assert_eq!(stranger.json("POST /client-tools/progress", progress.clone()).await.0, 404);
    assert_eq!(world.admin.json("POST /client-tools/progress", progress).await.0, 200);
    for percent in [json!(-1), json!(101), json!("x")] {
        let body = json!({"requestID": "r", "percent": percent});
        assert_eq!(world.admin.json("POST /client-tools/progress", body).await.0, 400);
    }
    assert!(waiting.is_waiting());
    assert_eq!(succeed(&world.admin, &json!("r"), "first").await.0, 200);
    assert_eq!(succeed(&world.admin, &json!("r"), "second").await.0, 404);
    assert_eq!(waiting.answer().await.1["output"], "first");
}

/// Rule: a result after the timeout is refused as too late.
#[tokio::test]
async fn a_result_after_the_timeout_is_not_accepted() {
    let world = World::start().await;
    register(&world.admin, "c", &["t"]).await;
    let mut stream = world.admin.stream("/client-tools/pending/c").await;
    let call = json!({"toolID": "client_c_t", "requestID": "r", "timeout": 20_000});
    let mut call = WaitingCall::call(&world.admin, call);
    stream.named("tool-request").await;
    pass(Duration::from_secs(20)).await;
    assert_eq!(call.answer().await.0, 504);
    let cancel = stream.named("tool-cancel").await;
    let expected = r#"{"type":"client-tool-cancel","requestID":"r","reason":"timeout"}"#;
    assert_eq!(cancel.data, expected);
    assert_eq!(succeed(&world.admin, &json!("r"), "late").await.0, 404);
}
