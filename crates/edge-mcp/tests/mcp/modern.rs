//! Requests that stand alone.

use serde_json::{Value, json};

use crate::support::{World, modern};

#[tokio::test]
async fn discover_says_who_answers_and_for_how_long() {
    let world = World::start().await;
    let client = world.client();
    let answered = client.modern(json!("a"), "server/discover", json!({})).await;
    assert_eq!((answered.status.as_u16(), answered.header("mcp-session-id")), (200, None));
    let answer = answered.json().await;
    let result = &answer["result"];
    assert_eq!((&answer["id"], &result["resultType"]), (&json!("a"), &json!("complete")));
    assert_eq!(result["supportedVersions"][0], "2026-07-28");
    assert!(result["ttlMs"].is_u64() && result["cacheScope"] == "public");
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "ringback");
    assert_eq!(world.mcp().n_sessions(), 0);
}

/// REQ: issue "header checks with the exact code and status pairs".
#[tokio::test]
async fn each_mistake_has_its_code_and_its_status() {
    let world = World::start().await;
    let client = world.client();
    let ping = || json!({"name": "ping", "arguments": {}});
    let (good, body) = modern(&json!(5), "tools/call", ping());
    let without = |name: &str| {
        let mut body = body.clone();
        body["params"]["_meta"].as_object_mut().unwrap().remove(name);
        body
    };
    let prefix = "io.modelcontextprotocol";
    let no_version = without(&format!("{prefix}/protocolVersion"));
    let no_capabilities = without(&format!("{prefix}/clientCapabilities"));
    let mut unknown_version = body.clone();
    unknown_version["params"]["_meta"][format!("{prefix}/protocolVersion")] = json!("v9");
    let (_, unknown_method) = modern(&json!(5), "nothing", json!({}));
    let (_, removed) = modern(&json!(5), "ping", json!({}));
    let (_, handshake) = modern(&json!(5), "initialize", json!({"protocolVersion": "2025-11-25"}));
    let cases: Vec<(&str, &[&str], &Value, u16, i64)> = vec![
        ("no version", &[], &no_version, 400, -32602),
        ("no capabilities", &[], &no_capabilities, 400, -32602),
        ("no version header", &["mcp-protocol-version:"], &body, 400, -32020),
        ("other version header", &[], &unknown_version, 400, -32020),
        ("unknown version", &["mcp-protocol-version: v9"], &unknown_version, 400, -32022),
        ("no method header", &["mcp-method:"], &body, 400, -32020),
        ("other method", &["mcp-method: tools/list"], &body, 400, -32020),
        ("method in capitals", &["mcp-method: TOOLS/CALL"], &body, 400, -32020),
        ("no name", &["mcp-name:"], &body, 400, -32020),
        ("other name", &["mcp-name: pong"], &body, 400, -32020),
        ("bad base64", &["mcp-name: =?base64?cGluZ!?="], &body, 400, -32020),
        ("unknown method", &["mcp-method: nothing", "mcp-name:"], &unknown_method, 404, -32601),
        ("removed method", &["mcp-method: ping", "mcp-name:"], &removed, 404, -32601),
        ("handshake", &["mcp-method: initialize", "mcp-name:"], &handshake, 404, -32601),
    ];
    for (what, changed, body, status, code) in cases {
        let headers: Vec<_> =
            good.iter().map(String::as_str).chain(changed.iter().copied()).collect();
        let answered = client.send("POST /mcp", &headers, &body.to_string()).await;
        assert_eq!(answered.status, status, "{what}");
        let answer = answered.json().await;
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &json!(5)), "{what}");
    }
    let coded = ["mcp-name: =?base64?cGluZw==?=", "mcp-session-id: stale", "last-event-id: 3-4"];
    let headers: Vec<_> = good.iter().map(String::as_str).chain(coded).collect();
    assert_eq!(client.send("POST /mcp", &headers, &body.to_string()).await.status, 200);
    for line in ["GET /mcp", "DELETE /mcp"] {
        let answered = client.send(line, &["mcp-protocol-version: 2026-07-28"], "").await;
        assert_eq!(
            (answered.status.as_u16(), answered.header("allow")),
            (405, Some("POST".into()))
        );
    }
}

#[tokio::test]
async fn every_result_is_stamped_and_a_fault_of_the_tool_is_a_result() {
    let world = World::start().await;
    let client = world.client();
    for (tool, arguments, is_error) in [
        ("ping", json!({}), false),
        ("job_sleep", json!({"milliseconds": 1}), false),
        ("job_sleep", json!({"milliseconds": "soon"}), true),
        ("job_status", json!({"job_id": format!("job_{}", "0".repeat(32))}), true),
    ] {
        let params = json!({"name": tool, "arguments": arguments});
        let answered = client.modern(json!(1), "tools/call", params).await;
        assert_eq!(answered.status, 200);
        let answer = answered.last().await;
        let result = &answer["result"];
        assert_eq!(result["resultType"], "complete", "{answer}");
        assert!(result["_meta"]["io.modelcontextprotocol/serverInfo"].is_object());
        assert_eq!(result.get("isError").is_some(), is_error, "{answer}");
        assert_eq!(result.get("structuredContent").is_none(), is_error, "{answer}");
    }
    let params = json!({"name": "nothing", "arguments": {}});
    let unknown = client.modern(json!(1), "tools/call", params).await;
    assert_eq!(unknown.status, 400);
    assert_eq!(unknown.json().await["error"]["code"], -32602);
}

/// REQ: issue "list changes (coalesced, bounded per subscriber) in both eras".
#[tokio::test]
async fn changes_of_the_list_reach_each_subscriber_once() {
    let world = World::start().await;
    let mut client = world.client();
    client.initialize("2025-11-25").await;
    let mut legacy = client.send("GET /mcp", &[], "").await;
    let listen = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": true}});
    let mut listening = client.modern(json!("x"), "subscriptions/listen", listen).await;
    let key = "io.modelcontextprotocol/subscriptionId";
    let first = listening.message().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(first["params"]["notifications"], json!({"toolsListChanged": true}));
    assert_eq!(first["params"]["_meta"][key], "x");
    let other = json!({"notifications": {"promptsListChanged": true}});
    let mut deaf = client.modern(json!(7), "subscriptions/listen", other).await;
    assert_eq!(deaf.message().await.unwrap()["params"]["_meta"][key], 7);
    for _ in 0..501 {
        world.change_tools();
    }
    let told = listening.message().await.unwrap();
    assert_eq!(told["method"], "notifications/tools/list_changed");
    assert_eq!(told["params"]["_meta"][key], "x");
    assert_eq!(legacy.message().await.unwrap()["method"], "notifications/tools/list_changed");
    world.stopping().cancel();
    assert!(deaf.message().await.unwrap().get("result").is_some(), "nothing else was sent");
    let mut n_told = 0;
    while let Some(message) = listening.message().await {
        n_told += usize::from(message.get("method").is_some());
    }
    assert!(n_told <= 1, "a burst is one change, or two if it was read in the middle: {n_told}");
}
