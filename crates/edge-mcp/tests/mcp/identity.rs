//! The identity of the caller: from every request, and never from the MCP session.

use ringback_edge_mcp::Config;
use serde_json::json;

use crate::support::{World, open};

/// Rule: a token never acts with the rights of the token that opened the MCP session.
#[tokio::test]
async fn a_session_lends_nobody_its_openers_rights() {
    let world = World::start().await;
    let mut admin = world.client();
    admin.initialize("2025-11-25").await;
    let mut thief = world.client_as(&world.token("read").await.0);
    thief.session = admin.session.clone();
    thief.version = admin.version.clone();
    let call = json!({"name": "token_list", "arguments": {}});
    assert_eq!(thief.ask(1, "tools/call", call.clone()).await.status, 404);
    assert_eq!(thief.send("GET /mcp", &[], "").await.status, 404);
    assert_eq!(thief.send("DELETE /mcp", &[], "").await.status, 404);
    thief.token = None;
    assert_eq!(thief.ask(1, "tools/call", call).await.status, 401);
    let listed = admin.call(2, "token_list", json!({})).await;
    assert!(listed["result"]["structuredContent"]["tokens"].is_array(), "{listed}");
}

/// Rule: a read token reaches no write tool, in either era.
#[tokio::test]
async fn a_read_token_sees_and_reaches_no_write_tool() {
    let world = World::start().await;
    let mut reader = world.client_as(&world.token("read").await.0);
    reader.initialize("2025-11-25").await;
    let listed = reader.ask(1, "tools/list", json!({})).await.json().await;
    let modern = reader.modern(json!(1), "tools/list", json!({})).await.json().await;
    assert_eq!(listed["result"]["tools"], modern["result"]["tools"]);
    assert_eq!(modern["result"]["cacheScope"], "private");
    for (tool, arguments) in [
        ("job_sleep", json!({"milliseconds": 1})),
        ("cas_store", json!({"data": "aGk=", "mime_type": "a/b"})),
        ("token_create", json!({"name": "x", "scope": "admin"})),
        // The scope is checked first: the answer says nothing about invalid arguments.
        ("token_create", json!({})),
        ("job_sleep", json!({"milliseconds": "x"})),
    ] {
        let names = listed["result"]["tools"].as_array().unwrap();
        assert!(names.iter().all(|shown| shown["name"] != tool), "{tool} is not shown");
        let legacy = reader.call(2, tool, arguments.clone()).await;
        let params = json!({"name": tool, "arguments": arguments});
        let modern = reader.modern(json!(2), "tools/call", params).await.last().await;
        for answer in [legacy, modern] {
            assert_eq!(answer["result"]["isError"], true, "{answer}");
            let error = &answer["result"]["_meta"]["ringback/error"];
            assert_eq!(error["code"], "permission_denied");
            assert_eq!(error["certainty"], "not_started");
        }
    }
    assert_eq!(world.broker.under_way().n_jobs, 0);
}

/// REQ: issue "Authorisation": challenges and protected-resource metadata (RFC 9728).
#[tokio::test]
async fn a_challenge_says_where_to_learn_which_tokens_are_taken() {
    let issuer = "https://issuer.example".to_owned();
    let config = Config { authorization_servers: vec![issuer.clone()], ..Config::default() };
    let world = World::start_with(config).await;
    let mut client = world.client();
    client.token = None;
    let answered = client.post(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})).await;
    assert_eq!(answered.status, 401);
    let url = format!("http://{}/.well-known/oauth-protected-resource/mcp", world.address());
    let challenge = answered.header("www-authenticate").unwrap();
    assert_eq!(challenge, format!("Bearer resource_metadata=\"{url}\""));
    let path = "GET /.well-known/oauth-protected-resource";
    for path in [path.to_owned(), format!("{path}/mcp")] {
        let metadata = client.send(&path, &[], "").await.json().await;
        assert_eq!(metadata["resource"], format!("http://{}/mcp", world.address()));
        assert_eq!(metadata["authorization_servers"], json!([issuer]));
    }
    client.token = Some(format!("oub_{}", "0".repeat(64)));
    let answered = client.send("GET /mcp", &[], "").await;
    assert_eq!(answered.status, 401);
    assert!(answered.header("www-authenticate").unwrap().contains("error=\"invalid_token\""));

    let mut reader = world.client_as(&world.token("read").await.0);
    reader.initialize("2025-11-25").await;
    let params = json!({"name": "job_sleep", "arguments": {"milliseconds": 1}});
    let answers = [
        reader.ask(1, "tools/call", params.clone()).await,
        reader.modern(json!(1), "tools/call", params).await,
    ];
    for answered in answers {
        assert_eq!(answered.status, 403);
        let challenge = answered.header("www-authenticate").unwrap();
        assert!(challenge.contains("insufficient_scope") && challenge.contains("scope=\"write\""));
    }
}

/// Rule: revoking a token closes everything it has open.
#[tokio::test]
async fn a_revoked_token_s_streams_end() {
    let world = World::start().await;
    let token = world.token("write").await.0;
    let mut client = world.client_as(&token);
    client.initialize("2025-11-25").await;
    let mut news = client.send("GET /mcp", &[], "").await;
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = client.modern(json!("l"), "subscriptions/listen", listen).await;
    listening.message().await.unwrap();
    let mut admin = world.client();
    admin.initialize("2025-11-25").await;
    let listed = admin.call(1, "token_list", json!({})).await;
    let tokens = listed["result"]["structuredContent"]["tokens"].as_array().unwrap().clone();
    let id = tokens.iter().find(|token| token["name"] == "t").unwrap()["token_id"].clone();
    admin.call(2, "token_revoke", json!({"token_id": id})).await;
    assert!(news.message().await.is_none());
    let end = listening.message().await.unwrap();
    assert_eq!(end["id"], "l");
    assert_eq!(client.ask(3, "ping", json!({})).await.status, 401);
}

/// Rule: `Origin: http://evil.example` never gets 200.
#[tokio::test]
async fn a_page_of_another_site_is_refused() {
    let world = World::start_with(open()).await;
    let mut client = world.client();
    client.token = None;
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}).to_string();
    let evil = client.send("POST /mcp", &["origin: http://evil.example"], &ping).await;
    assert_eq!(evil.status, 403);
    // Requests without an origin: a picture, a frame, a form that is opened.
    for site in ["cross-site", "same-site, cross-site"] {
        let foreign = format!("sec-fetch-site: {site}");
        assert_eq!(client.send("POST /mcp", &[&foreign], &ping).await.status, 403);
        assert_eq!(client.send("GET /mcp", &[&foreign], "").await.status, 403);
    }
    let rebound = client.send("POST /mcp", &["host: evil.example"], &ping).await;
    assert!(rebound.status.is_client_error());
    let (headers, body) = crate::support::modern(&json!(1), "server/discover", json!({}));
    let mut headers: Vec<_> = headers.iter().map(String::as_str).collect();
    headers.push("origin: http://localhost:3000");
    assert_eq!(client.send("POST /mcp", &headers, &body.to_string()).await.status, 200);
}

#[tokio::test]
async fn a_stopping_edge_ends_its_streams_with_a_result() {
    let mut world = World::start().await;
    let client = world.client();
    let listen = json!({"notifications": {"toolsListChanged": true}});
    let mut listening = client.modern(json!(9), "subscriptions/listen", listen).await;
    listening.message().await.unwrap();
    world.stopping().cancel();
    let end = listening.message().await.unwrap();
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!(9), &json!("complete")));
    drop((client, listening));
    world.0.edges_ended().await;
}
