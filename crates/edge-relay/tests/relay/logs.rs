//! What is never logged.

use ringback_broker::Credential;
use ringback_testkit::Logs;
use serde_json::json;

use crate::support::{World, tool};

/// REQ: seed 002 "API Key in Environment": the key is never logged.
/// Rule: no payload is logged either, at any level, whatever becomes of the request.
#[tokio::test]
async fn neither_a_key_nor_a_payload_is_ever_logged() {
    let (logs, _capturing) = Logs::capture_here();
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    let (key, _) = world.token("read").await;
    for (id, tool) in [(1, "ping"), (2, "project_create"), (3, "nothing")] {
        let params = json!({ "api_key": key, "tool": tool, "arguments": { "name": "payload-1" } });
        peer.get(id, "oubliette_call_tool", params).await;
    }
    let wrong = format!("{key}0");
    peer.get(4, "oubliette_tools", json!({ "api_key": wrong })).await;
    peer.get(5, "oubliette_tools", json!({ "api_key": [key] })).await;
    peer.get(6, "session_events", json!({ "wait_ms": key })).await;
    peer.send(&format!("{{\"api_key\":\"{key}\"")).await;
    peer.next().await;
    peer.ask(7, "caller_tool", json!({ "tool": "x", "arguments": { "a": "payload-2" } })).await;
    let call = caller.next_call().await;
    world.answer(&caller, &call, "\"payload-3\"").await.unwrap();
    peer.answer(7).await;
    world.answer(&caller, &call, "\"payload-4\"").await.unwrap_err();
    peer.closed_by(&format!("OUBLIETTE-DOWNSTREAM {key}")).await;
    world.stop().await;
    let text = logs.text();
    assert!(text.contains("an answer without a waiting call"), "something was logged: {text}");
    for secret in [key.trim_start_matches("oub_"), "payload-"] {
        assert!(!text.contains(secret), "{text}");
    }
}

impl crate::support::Peer {
    /// Sends a line, then leaves.
    async fn closed_by(mut self, line: &str) {
        self.send(line).await;
        self.next().await;
    }
}
