//! Clients with a handshake: MCP sessions, their messages, and how they end.

use std::time::Duration;

use ringback_edge_mcp::{Config, SessionLimits};
use ringback_testkit::{pass, wait_for};
use serde_json::json;

use crate::support::World;

/// REQ: issue "both eras on one endpoint": every revision with a handshake.
#[tokio::test]
async fn every_version_with_a_handshake_is_settled_and_served() {
    let world = World::start().await;
    for (asked, settled) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2031-01-01", "2025-11-25"),
    ] {
        let mut client = world.client();
        let result = client.initialize(asked).await;
        assert_eq!(result["protocolVersion"], settled);
        assert_eq!(result["capabilities"]["tools"]["listChanged"], true);
        assert_eq!(result["serverInfo"]["name"], "ringback");
        assert!(result.get("resultType").is_none(), "older clients do not know it");
        assert_eq!(client.ask(1, "ping", json!({})).await.json().await["result"], json!({}));
        let listed = client.ask(2, "tools/list", json!({})).await.json().await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        assert!(tools.iter().any(|tool| tool["name"] == "job_sleep"));
        assert!(listed["result"].get("ttlMs").is_none());
        let pong = client.call(3, "ping", json!({})).await;
        assert_eq!(pong["result"]["structuredContent"]["type"], "pong");
        let text = pong["result"]["content"][0]["text"].as_str().unwrap();
        let same: serde_json::Value = serde_json::from_str(text).unwrap();
        assert_eq!(same, pong["result"]["structuredContent"], "the same information as text");
    }
}

/// Rule: an unknown MCP session id never silently creates a new MCP session.
#[tokio::test]
async fn an_unknown_session_is_404_and_none_at_all_is_400() {
    let world = World::start().await;
    let mut client = world.client();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(client.post(&list).await.status, 400);
    client.session = Some("0".repeat(32));
    let answered = client.post(&list).await;
    assert_eq!((answered.status.as_u16(), answered.header("mcp-session-id")), (404, None));
    assert_eq!(client.send("GET /mcp", &[], "").await.status, 404);
    assert_eq!(client.send("DELETE /mcp", &[], "").await.status, 404);
    assert_eq!(world.mcp().n_sessions(), 0);
}

#[tokio::test]
async fn a_deleted_session_is_gone() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let mut news = client.send("GET /mcp", &[], "").await;
    assert_eq!(client.send("DELETE /mcp", &[], "").await.status, 204);
    assert!(news.message().await.is_none(), "its stream ends");
    assert_eq!(client.ask(1, "ping", json!({})).await.status, 404);
    assert_eq!(world.mcp().n_sessions(), 0);
}

/// Rule: a client that abandons 1,000 MCP sessions does not leave them in memory.
#[tokio::test]
async fn abandoned_sessions_end_by_themselves() {
    let idle = Duration::from_secs(60);
    let sessions = SessionLimits { idle, handshake: idle, ..SessionLimits::default() };
    let world = World::start_with(Config { sessions, ..Config::default() }).await;
    let mut kept = world.client();
    kept.initialize("2025-11-25").await;
    let mut stream = kept.send("GET /mcp", &[], "").await;
    for _ in 0..1000 {
        world.client().initialize("2025-06-18").await;
    }
    assert_eq!(world.mcp().n_sessions(), 1001);
    pass(2 * idle).await;
    wait_for("only the session with a reader is left", async || world.mcp().n_sessions() == 1)
        .await;
    world.change_tools();
    let told = stream.message().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn the_oldest_quiet_session_makes_room_for_a_new_one() {
    let sessions = SessionLimits { per_principal_max: 2, ..SessionLimits::default() };
    let world = World::start_with(Config { sessions, ..Config::default() }).await;
    let mut clients = [world.client(), world.client(), world.client()];
    for client in &mut clients {
        client.initialize("2025-11-25").await;
    }
    assert_eq!(world.mcp().n_sessions(), 2);
    let statuses = [
        clients[0].ask(1, "ping", json!({})).await.status.as_u16(),
        clients[1].ask(1, "ping", json!({})).await.status.as_u16(),
        clients[2].ask(1, "ping", json!({})).await.status.as_u16(),
    ];
    assert_eq!(statuses, [404, 200, 200]);
}

#[tokio::test]
async fn what_is_no_message_gets_a_json_rpc_error_under_its_id() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    for (body, status, code) in [
        ("{", 400, -32700),
        ("[]", 400, -32600),
        (r#"{"jsonrpc":"2.0","id":7,"method":"nothing"}"#, 200, -32601),
        (r#"{"jsonrpc":"2.0","id":7,"method":"prompts/list"}"#, 200, -32601),
        (r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}"#, 200, -32602),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"nothing"}}"#,
            200,
            -32602,
        ),
        (
            r#"{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{"level":"loud"}}"#,
            200,
            -32602,
        ),
    ] {
        let answered = client.send("POST /mcp", &[], body).await;
        assert_eq!(answered.status, status, "{body}");
        let answer = answered.json().await;
        assert_eq!(answer["error"]["code"], code, "{body}: {answer}");
        assert_eq!(answer["id"], if body.contains('7') { json!(7) } else { json!(null) });
    }
    assert_eq!(client.send("POST /mcp", &["content-type: text/plain"], "{}").await.status, 415);
    assert_eq!(client.send("GET /mcp", &["accept: application/json"], "").await.status, 406);
}

/// Rule: an integer of 20 digits does not change, not even as an id.
#[tokio::test]
async fn an_id_of_twenty_digits_comes_back_digit_for_digit() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let body = r#"{"jsonrpc":"2.0","id":12345678901234567890,"method":"ping"}"#;
    let text = client.send("POST /mcp", &[], body).await.text().await;
    assert_eq!(text, r#"{"jsonrpc":"2.0","id":12345678901234567890,"result":{}}"#);
}
