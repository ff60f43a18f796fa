//! Streams that break, streams without a reader, and streams that are resumed.

use std::time::Duration;

use ringback_edge_mcp::Config;
use ringback_testkit::wait_for;
use serde_json::json;

use crate::support::World;

/// REQ: issue "sessions, GET stream, resumption".
#[tokio::test]
async fn a_broken_stream_is_resumed_where_it_broke() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let params = json!({
        "name": "job_sleep", "arguments": {"milliseconds": 600}, "_meta": {"progressToken": 1},
    });
    let mut answered = client.clone().ask(5, "tools/call", params).await;
    let (first, empty) = answered.event().await.unwrap();
    assert!(!first.is_empty() && empty.is_empty(), "an id to resume from comes first");
    let (last, _) = answered.event().await.unwrap();
    drop(answered);
    for after in [&last, &first] {
        let header = format!("last-event-id: {after}");
        let mut resumed = client.send("GET /mcp", &[&header], "").await;
        assert_eq!(resumed.status, 200);
        let mut messages = Vec::new();
        while let Some(message) = resumed.message().await {
            messages.push(message);
        }
        let end = messages.last().unwrap();
        assert_eq!(
            (&end["id"], &end["result"]["structuredContent"]["type"]),
            (&json!(5), &json!("slept"))
        );
        let is_replayed = messages[0]["method"] == "notifications/progress";
        assert!(is_replayed || *after == last, "what came after that event comes again");
    }
    let gone = client.send("GET /mcp", &["last-event-id: 99-1"], "").await;
    assert_eq!(gone.status, 400);
}

#[tokio::test]
async fn clients_before_2025_11_25_get_no_event_without_a_message() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-06-18").await;
    let params = json!({"name": "job_sleep", "arguments": {"milliseconds": 1}});
    let mut answered = client.ask(5, "tools/call", params).await;
    let (id, data) = answered.event().await.unwrap();
    assert!(!id.is_empty() && data.contains("slept"), "{data}");
}

/// Rule: a caller that has left and does not come back has cancelled.
#[tokio::test]
async fn a_call_whose_client_does_not_come_back_is_cancelled() {
    let resume_grace = Duration::from_millis(100);
    let world = World::start_with(Config { resume_grace, ..Config::default() }).await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let params = json!({"name": "job_sleep", "arguments": {"milliseconds": 3_600_000}});
    let answered = client.ask(5, "tools/call", params).await;
    wait_for("it runs", async || world.broker.under_way().n_jobs == 1).await;
    drop(answered);
    world.until_quiet().await;
}

/// Rule: a slow reader of one stream delays no other.
#[tokio::test]
async fn a_reader_that_does_not_read_delays_no_other() {
    let world = World::start().await;
    let mut slow = world.client();
    slow.initialize("2025-11-25").await;
    let unread = slow.send("GET /mcp", &[], "").await;
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let unread_too = slow.modern(json!(1), "subscriptions/listen", listen.clone()).await;
    let mut quick = world.client();
    quick.initialize("2025-11-25").await;
    let mut news = quick.send("GET /mcp", &[], "").await;
    let mut listening = quick.modern(json!(1), "subscriptions/listen", listen).await;
    listening.message().await.unwrap();
    for id in 0..50 {
        world.change_tools();
        assert!(news.message().await.is_some());
        assert!(listening.message().await.is_some());
        let pong = quick.call(id, "ping", json!({})).await;
        assert!(pong["result"].is_object());
    }
    drop((unread, unread_too));
}

#[tokio::test]
async fn a_new_reader_of_a_session_takes_over_from_the_old_one() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let mut old = client.send("GET /mcp", &[], "").await;
    let mut new = client.send("GET /mcp", &[], "").await;
    assert!(old.message().await.is_none());
    world.change_tools();
    assert_eq!(new.message().await.unwrap()["method"], "notifications/tools/list_changed");
}
