//! Calls: waiting, progress, cancellation, and the answer to a caller that does not wait.

use std::time::Duration;

use ringback_testkit::{pass, wait_for};
use serde_json::json;

use crate::support::World;

const FOR_EVER: u64 = 3_600_000;
/// Longer than the wait for any call, and less than that.
const PAST_THE_WAIT: Duration = Duration::from_secs(200);

#[tokio::test]
async fn progress_comes_while_the_call_is_waited_for() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let params = json!({
        "name": "job_sleep", "arguments": {"milliseconds": 300}, "_meta": {"progressToken": "p"},
    });
    let legacy = client.ask(1, "tools/call", params.clone()).await;
    let modern = client.modern(json!(1), "tools/call", params).await;
    for mut answered in [legacy, modern] {
        assert!(answered.is_stream());
        let (mut last, mut n_told) = (-1.0, 0);
        let result = loop {
            let message = answered.message().await.unwrap();
            if let Some(result) = message.get("result") {
                break result.clone();
            }
            assert_eq!(message["method"], "notifications/progress");
            assert_eq!(message["params"]["progressToken"], "p");
            let progress = message["params"]["progress"].as_f64().unwrap();
            assert!(progress > last, "progress only rises");
            (last, n_told) = (progress, n_told + 1);
        };
        assert!(n_told > 0);
        let expected = json!({"type": "slept", "milliseconds": 300});
        assert_eq!(result["structuredContent"], expected);
        assert!(answered.message().await.is_none());
    }
}

/// REQ: issue "Timing at the edge": past the wait, the job id and how to poll it; the work goes on.
#[tokio::test]
async fn past_the_wait_the_answer_is_the_job_and_the_work_goes_on() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let plain = json!({"name": "job_sleep", "arguments": {"milliseconds": FOR_EVER}});
    let mut told = plain.clone();
    told["_meta"] = json!({"progressToken": 1});
    let mut answers = vec![
        client.ask(1, "tools/call", plain.clone()).await,
        client.ask(2, "tools/call", told.clone()).await,
        client.modern(json!(3), "tools/call", plain).await,
        client.modern(json!(4), "tools/call", told).await,
    ];
    // Wait until the job is stored as running: from here on no timer is set late.
    let mut n_running = 0;
    while n_running < 4 {
        let listed = client.call(9, "job_list", json!({"status": "running"})).await;
        n_running = listed["result"]["structuredContent"]["total"].as_u64().unwrap();
    }
    // Only the jump itself happens on a paused clock: a paused clock moves to the next timer, in
    // the end even to that of the work, whenever an answer is on its way.
    pass(PAST_THE_WAIT).await;
    for answered in &mut answers {
        let result = loop {
            let message = answered.message().await.unwrap();
            if let Some(result) = message.get("result") {
                break result.clone();
            }
        };
        let job = &result["structuredContent"];
        assert_eq!((&job["status"], &job["tool"]), (&json!("started"), &json!("job_sleep")));
        assert!(result["content"][0]["text"].as_str().unwrap().contains("job_id"));
    }
    drop(answers);
    assert_eq!(world.broker.under_way().n_jobs, 4, "the work goes on without its callers");
}

/// Rule: a cancelled call does not continue.
#[tokio::test]
async fn a_cancelled_call_stops_and_gets_no_answer() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let params = json!({
        "name": "job_sleep", "arguments": {"milliseconds": FOR_EVER}, "_meta": {"progressToken": 1},
    });
    let mut answered = client.ask(77, "tools/call", params).await;
    wait_for("it runs", async || world.broker.under_way().n_jobs == 1).await;
    let cancel = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 77, "reason": "changed my mind"},
    });
    assert_eq!(client.post(&cancel).await.status, 202);
    while let Some(message) = answered.message().await {
        assert_eq!(message["method"], "notifications/progress", "no answer comes");
    }
    world.until_quiet().await;
    let jobs = client.call(2, "job_list", json!({"status": "cancelled"})).await;
    assert_eq!(jobs["result"]["structuredContent"]["by_status"]["cancelled"], 1);
    // A late cancel is not an error.
    assert_eq!(client.post(&cancel).await.status, 202);
}

/// Rule: in the modern era closing the stream is the cancel.
#[tokio::test]
async fn closing_a_modern_stream_cancels_the_call() {
    let world = World::start().await;
    for meta in [json!({}), json!({"progressToken": 1})] {
        let client = world.client();
        let params = json!({
            "name": "job_sleep", "arguments": {"milliseconds": FOR_EVER}, "_meta": meta,
        });
        let answered = client.modern(json!(1), "tools/call", params).await;
        assert!(answered.is_stream());
        wait_for("it runs", async || world.broker.under_way().n_jobs == 1).await;
        drop((answered, client));
        world.until_quiet().await;
    }
}

/// Rule: known mistakes of clients are corrected at this edge.
#[tokio::test]
async fn arguments_in_a_text_and_other_names_are_taken() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-06-18").await;
    let slept = client.call(1, "job_sleep", json!("{\"duration_ms\": 1}")).await;
    assert_eq!(slept["result"]["structuredContent"]["milliseconds"], 1, "{slept}");
}

#[tokio::test]
async fn calls_under_way_at_once_do_not_wait_for_each_other() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let long = json!({"name": "job_sleep", "arguments": {"milliseconds": FOR_EVER}});
    let held = client.ask(1, "tools/call", long.clone()).await;
    let pong = client.call(2, "ping", json!({})).await;
    assert_eq!(pong["result"]["structuredContent"]["type"], "pong");
    let again = client.ask(1, "tools/call", long).await.json().await;
    assert_eq!(again["error"]["code"], -32600, "an id in use is refused: {again}");
    drop(held);
    client.send("DELETE /mcp", &[], "").await;
    world.until_quiet().await;
}
