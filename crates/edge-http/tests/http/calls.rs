//! `/v1/tools`: list, describe, call.

use serde_json::json;

use crate::support::{World, code};

#[tokio::test]
async fn a_tool_is_listed_described_and_called() {
    let world = World::start().await;
    let (status, listed) = world.admin.get("/v1/tools?prefix=job_").await;
    assert_eq!(status, 200);
    let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert!(names.contains(&&json!("job_sleep")) && !names.contains(&&json!("ping")), "{names:?}");
    let (_, tool) = world.admin.get("/v1/tools/job_sleep").await;
    assert_eq!(tool["input_schema"]["required"], json!(["milliseconds"]));

    let (status, pong) = world.admin.ask("POST /v1/tools/ping/call", &[], "").await;
    assert_eq!((status, &pong["result"]["type"]), (200, &json!("pong")));
    let (status, slept) =
        world.admin.json("POST /v1/tools/job_sleep/call", json!({"milliseconds": 1})).await;
    assert_eq!(status, 200, "the edge waits as the class says: {slept}");
    assert_eq!(slept["result"], json!({"type": "slept", "milliseconds": 1}));
}

#[tokio::test]
async fn a_caller_that_does_not_wait_gets_the_job_and_follows_it() {
    let world = World::start().await;
    let prefer = ["prefer: respond-async"];
    let call = "POST /v1/tools/job_sleep/call";
    let reply = world.admin.send(call, &prefer, r#"{"milliseconds": 60000}"#).await;
    assert_eq!(reply.status, 202);
    let location = reply.header("location").to_owned();
    let (_, job) = world.admin.get(&location).await;
    assert_eq!(job["status"], "running");
    let (status, cancelled) = world.admin.ask(&format!("DELETE {location}"), &[], "").await;
    assert_eq!((status, &cancelled["status"]), (200, &json!("cancelled")));
    let (_, listed) = world.admin.get("/v1/jobs?status=cancelled").await;
    assert_eq!(listed["by_status"]["cancelled"], 1);
}

/// Rule: the same `Idempotency-Key` from the same caller is the same call.
#[tokio::test]
async fn an_idempotency_key_makes_a_repeat_the_same_call() {
    let world = World::start().await;
    let headers = ["prefer: respond-async", "idempotency-key: once"];
    let call = "POST /v1/tools/job_sleep/call";
    let (_, first) = world.admin.ask(call, &headers, r#"{"milliseconds": 0}"#).await;
    let (_, again) = world.admin.ask(call, &headers, r#"{"milliseconds": 0}"#).await;
    assert_eq!(first, again);
    let (status, other) = world.admin.ask(call, &headers, r#"{"milliseconds": 1}"#).await;
    assert_eq!((status, code(&other)), (409, "CONFLICT"));
}

#[tokio::test]
async fn a_stream_is_server_sent_events() {
    let world = World::start().await;
    let accept = ["accept: text/event-stream"];
    for (tool, body, expected) in [
        ("job_sleep", r#"{"milliseconds": 120}"#, vec!["start", "chunk", "result"]),
        ("ping", "", vec!["result"]),
        ("job_sleep", r#"{"milliseconds": 99999999}"#, vec!["start", "error"]),
    ] {
        let line = format!("POST /v1/tools/{tool}/call");
        let mut events = world.admin.send(&line, &accept, body).await.events();
        let mut names = Vec::new();
        while let Some(frame) = events.next().await {
            names.push(frame.event);
        }
        names.dedup();
        assert_eq!(names, expected);
    }
}

#[tokio::test]
async fn bad_input_gets_a_typed_error_and_starts_nothing() {
    let world = World::start().await;
    let call = "POST /v1/tools/job_sleep/call";
    for (line, headers, body, status, expected) in [
        (call, vec![], "{", 400, "INVALID_REQUEST"),
        (call, vec![], "[5]", 400, "INVALID_REQUEST"),
        (call, vec![], r#"{"milliseconds": "x"}"#, 400, "INVALID_REQUEST"),
        (call, vec![], r#"{"milliseconds": 1} x"#, 400, "INVALID_REQUEST"),
        (call, vec!["prefer: wait=soon"], "{}", 400, "INVALID_REQUEST"),
        (call, vec!["content-type: text/plain"], "{}", 415, "UNSUPPORTED_MEDIA_TYPE"),
        ("POST /v1/tools/nothing/call", vec![], "{}", 404, "NOT_FOUND"),
        ("GET /v1/tools/nothing", vec![], "", 404, "NOT_FOUND"),
    ] {
        let (found, answer) = world.admin.ask(line, &headers, body).await;
        assert_eq!((found, code(&answer)), (status, expected), "{line} {body}");
        assert_eq!(answer["error"]["certainty"], "not_started", "{answer}");
    }
    let (_, listed) = world.admin.get("/v1/jobs").await;
    assert_eq!(listed["total"], 0);
}

/// Rule: lists come in pages, and a cursor leads from one to the next.
#[tokio::test]
async fn pages_follow_each_other_by_their_cursors() {
    let world = World::start().await;
    for _ in 0..3 {
        let call = "POST /v1/tools/job_sleep/call";
        let (status, _) = world.admin.json(call, json!({"milliseconds": 0})).await;
        assert_eq!(status, 200);
    }
    let (mut path, mut n_seen) = ("/v1/jobs?limit=2".to_owned(), 0);
    loop {
        let (status, page) = world.admin.get(&path).await;
        assert_eq!(status, 200, "{page}");
        n_seen += page["jobs"].as_array().unwrap().len();
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/jobs?limit=2&cursor={cursor}");
    }
    assert_eq!(n_seen, 3);
}
