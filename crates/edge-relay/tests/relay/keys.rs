//! The daemon's own tools, with a key.

use ringback_broker::{Credential, LineName, LineOffer, PartyMessage, ToolOffer};
use ringback_proto::any::{Any, Format};
use ringback_proto::ids::SessionId;
use ringback_testkit::{wait_for, within};
use serde_json::{Value, json};

use crate::support::{Peer, World, refused};

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

async fn connected(world: &World) -> (SessionId, Peer) {
    let session = world.session(&Credential::local(), json!([])).await;
    (session, world.settled(session).await)
}

fn call(key: &str, tool: &str, arguments: Value) -> Value {
    json!({ "api_key": key, "tool": tool, "arguments": arguments })
}

/// REQ: seed 002 "Testing Strategy": discover tools with a valid key; "Tool Filtering by Scope".
#[tokio::test]
async fn a_key_discovers_the_tools_of_its_scope() {
    let world = World::start().await;
    let (_, mut peer) = connected(&world).await;
    let mut seen = Vec::new();
    for scope in ["read", "write", "admin"] {
        let (key, _) = world.token(scope).await;
        let listed = peer.get(1, "oubliette_tools", json!({ "api_key": key })).await;
        for tool in listed["result"]["tools"].as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(!tool["description"].as_str().unwrap().is_empty(), "{tool}");
        }
        seen.push(names(&listed));
    }
    let has = |n: usize, name: &str| seen[n].iter().any(|seen| seen == name);
    for read in [
        "project_list",
        "project_get",
        "session_list",
        "session_get",
        "session_events",
        "workspace_list",
        "config_limits",
    ] {
        assert!(has(0, read) && has(1, read) && has(2, read), "{read}");
    }
    for write in ["project_create", "session_message", "session_spawn", "session_end"] {
        assert!(!has(0, write) && has(1, write) && has(2, write), "{write}");
    }
    // Whatever its scope, a key in an agent's hands manages no tokens, and its list contains only
    // what it may call.
    for never in ["token_create", "token_list", "token_revoke", "project_update"] {
        assert!(!has(0, never) && !has(1, never) && !has(2, never), "{never}");
    }
    world.stop().await;
}

/// REQ: seed 002 "Testing Strategy": discover tools with an invalid key, call a tool with one.
#[tokio::test]
async fn an_invalid_key_discovers_and_calls_nothing() {
    let world = World::start().await;
    let (_, mut peer) = connected(&world).await;
    let revoked = {
        let (secret, credential) = world.token("admin").await;
        let id = json!({ "token_id": credential.id().to_string() });
        world.call(&Credential::local(), "token_revoke", id).await.unwrap();
        secret
    };
    for key in ["", "oub_", "nonsense", "oub_\u{e9}\u{0}", &"x".repeat(10_000), &revoked] {
        let listed = peer.get(1, "oubliette_tools", json!({ "api_key": key })).await;
        assert_eq!(refused(&listed), "-32001 unauthenticated not_started");
        assert_eq!(listed["error"]["message"], "invalid or expired API key");
        let called = peer.get(2, "oubliette_call_tool", call(key, "ping", json!({}))).await;
        assert_eq!(refused(&called), "-32001 unauthenticated not_started");
        let projects = peer.get(3, "project_list", json!({ "api_key": key })).await;
        assert_eq!(refused(&projects), "-32001 unauthenticated not_started");
    }
    let without = peer.get(4, "project_list", json!({})).await;
    assert_eq!(refused(&without), "-32602 invalid not_started", "it needs a key");
    world.stop().await;
}

/// REQ: seed 002 "Testing Strategy": call a tool with a valid key; "oubliette_call_tool".
#[tokio::test]
async fn a_key_calls_a_tool_and_gets_content() {
    let world = World::start().await;
    let (_, mut peer) = connected(&world).await;
    let (key, _) = world.token("write").await;
    let made = json!({ "name": "my-project", "description": "A new project" });
    let made = peer.get(1, "oubliette_call_tool", call(&key, "project_create", made)).await;
    let result = &made["result"];
    assert_eq!(result["isError"], false, "{made}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(result["content"][0]["type"], "text");
    assert_eq!(text["name"], "my-project");
    assert_eq!(result["structuredContent"], text);
    let listed = peer.get(2, "project_list", json!({ "api_key": key, "limit": 5 })).await;
    assert_eq!(listed["result"]["projects"][0]["project_id"], text["project_id"], "{listed}");
    world.stop().await;
}

/// REQ: seed 002 "Testing Strategy": call a tool with insufficient scope.
#[tokio::test]
async fn a_key_does_not_call_what_its_scope_lacks() {
    let world = World::start().await;
    let (_, mut peer) = connected(&world).await;
    // The scope is checked first: a caller without it learns nothing about the arguments.
    for (scope, tool, arguments) in [
        ("read", "project_create", json!({ "name": "x" })),
        ("read", "project_create", json!({})),
        ("read", "project_create", json!([])),
        ("read", "token_create", json!({})),
        ("write", "token_create", json!({ "name": "x", "scope": "read" })),
        ("admin", "token_create", json!({})),
    ] {
        let (key, _) = world.token(scope).await;
        let answer = peer.get(1, "oubliette_call_tool", call(&key, tool, arguments)).await;
        assert_eq!(refused(&answer), "-32002 forbidden not_started");
        assert_eq!(answer["error"]["message"], "tool not allowed for this token scope");
        let missing = answer["error"]["data"]["missing"].as_str().unwrap();
        assert!(missing.contains("with scope") || scope == "admin", "{answer}");
    }
    world.stop().await;
}

/// REQ: seed 002 "Response (tool error)"; design: only unauthenticated, forbidden, malformed params
/// and failed dispatch are errors of the protocol.
#[tokio::test]
async fn what_the_tool_reports_is_its_result_and_what_kept_it_from_running_an_error() {
    let world = World::start().await;
    let (_, mut peer) = connected(&world).await;
    let (key, _) = world.token("admin").await;
    let job = format!("job_{}", "0".repeat(32));
    for (tool, arguments, text) in [
        ("job_status", json!({ "job_id": job }), "no such job"),
        ("job_status", json!({ "job_id": "x" }), "invalid arguments"),
        ("project_create", json!({}), "missing field `name`"),
    ] {
        let answer = peer.get(1, "oubliette_call_tool", call(&key, tool, arguments)).await;
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{answer}");
        assert!(result["content"][0]["text"].as_str().unwrap().contains(text), "{answer}");
        assert_eq!(result["_meta"]["ringback/error"]["certainty"], "not_started", "{answer}");
    }
    let unknown = peer.get(2, "oubliette_call_tool", call(&key, "nothing", json!({}))).await;
    assert_eq!(refused(&unknown), "-32000 not_found not_started");
    for malformed in [
        json!({ "api_key": key }),
        json!({ "api_key": key, "tool": "ping", "arguments": [] }),
        json!({ "api_key": key, "tool": "ping", "arguments": "{}" }),
        json!({ "api_key": key, "tool": "x".repeat(1000) }),
    ] {
        let answer = peer.get(3, "oubliette_call_tool", malformed).await;
        assert_eq!(refused(&answer), "-32602 invalid not_started");
    }
    for bare in [json!({ "api_key": key, "tool": "ping" }), call(&key, "ping", Value::Null)] {
        let answer = peer.get(4, "oubliette_call_tool", bare).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    world.stop().await;
}

/// REQ: seed 002 "Per-Call Validation": the key is validated on every call, not cached.
/// Rule: the identity of the request that opened a connection is not used for a later one.
#[tokio::test]
async fn each_request_is_made_with_its_own_key_alone() {
    let world = World::start().await;
    let (_, mut peer) = connected(&world).await;
    let (admin, credential) = world.token("admin").await;
    let (read, _) = world.token("read").await;
    let create = |key: &str| call(key, "project_create", json!({ "name": "x" }));
    let done = peer.get(1, "oubliette_call_tool", create(&admin)).await;
    assert_eq!(done["result"]["isError"], false, "{done}");
    let lent = peer.get(2, "oubliette_call_tool", create(&read)).await;
    assert_eq!(refused(&lent), "-32002 forbidden not_started");
    let id = json!({ "token_id": credential.id().to_string() });
    world.call(&Credential::local(), "token_revoke", id).await.unwrap();
    let revoked = peer.get(3, "oubliette_call_tool", create(&admin)).await;
    assert_eq!(refused(&revoked), "-32001 unauthenticated not_started");
    world.stop().await;
}

/// REQ: seed 002 "No Elevation": a session's own key works in its session alone, with the level its
/// project says, and ends with it.
#[tokio::test]
async fn a_session_s_own_key_works_in_its_session_alone() {
    let world = World::start().await;
    let who = Credential::local();
    let project = world.project(&who, Some("read")).await;
    let session = world.session_in(&who, project, json!([])).await;
    let other = world.session_in(&who, project, json!([])).await;
    let key = world.key_of(&who, session).await;
    let mut peer = world.settled(session).await;
    let listed = peer.get(1, "project_list", json!({ "api_key": key })).await;
    let projects = listed["result"]["projects"].as_array().unwrap();
    assert_eq!(projects.len(), 1, "its project alone: {listed}");
    let tools = names(&peer.get(5, "oubliette_tools", json!({ "api_key": key })).await);
    assert!(!tools.iter().any(|tool| tool == "project_create"), "{tools:?}");
    let create = call(&key, "project_create", json!({ "name": "x" }));
    assert_eq!(
        refused(&peer.get(2, "oubliette_call_tool", create).await),
        "-32002 forbidden not_started"
    );
    let mut stranger = world.settled(other).await;
    let elsewhere = stranger.get(1, "oubliette_tools", json!({ "api_key": key })).await;
    assert_eq!(refused(&elsewhere), "-32001 unauthenticated not_started");
    assert!(world.broker.authenticate(&key).is_err(), "nor at any other edge");
    world.stop().await;
}

fn offer(world: &World, who: &Credential, name: &str) -> LineName {
    let line = LineName::Client("tab".into());
    let schema = r#"{"maximum":12345678901234567890}"#;
    let input_schema = Some(Any { format: Format::Json, bytes: schema.into() });
    let tools = vec![ToolOffer { name: name.to_owned(), input_schema, ..ToolOffer::default() }];
    let offer = LineOffer { line: line.clone(), grace_ms: None, tools };
    world.broker.lines().offer(who, offer).unwrap();
    line
}

/// REQ: design "The sandbox socket": `oubliette_tools` has client tools; a call of one carries the
/// session's ids; changes of them are announced.
#[tokio::test]
async fn a_client_tool_is_listed_called_with_the_session_s_ids_and_its_change_announced() {
    let world = World::start().await;
    let (session, mut peer) = connected(&world).await;
    let (key, who) = world.token("write").await;
    let before = names(&peer.get(1, "oubliette_tools", json!({ "api_key": key })).await);
    assert!(!before.iter().any(|name| name.starts_with("client_")));
    let line = offer(&world, &who, "click");
    assert_eq!(peer.next().await, json!({ "jsonrpc": "2.0", "method": "oubliette_tools_changed" }));
    peer.ask(2, "oubliette_tools", json!({ "api_key": key })).await;
    let listed = peer.answer_line("2").await;
    let shown = r#"{"name":"client_tab_click","description":"","inputSchema":{"type":"object","maximum":12345678901234567890}}"#;
    assert!(listed.contains(shown), "{listed}");

    let mut stream = world.broker.lines().open(&who, &line).unwrap();
    for (given, message_id, call_id) in [
        (json!({}), session.to_string(), "3"),
        (json!({ "message_id": "m", "call_id": "c" }), "m".to_owned(), "c"),
    ] {
        let mut params = call(&key, "client_tab_click", json!({ "n": 1 }));
        params.as_object_mut().unwrap().extend(given.as_object().unwrap().clone());
        peer.ask(3, "oubliette_call_tool", params).await;
        let post = within("the client hears", stream.next()).await.unwrap();
        let PartyMessage::Call(asked) = post else { panic!("a cancel") };
        assert_eq!(asked.context.session_id.as_deref(), Some(&*session.to_string()));
        assert_eq!(asked.context.message_id.as_deref(), Some(&*message_id));
        assert_eq!(asked.context.call_id.as_deref(), Some(call_id));
        let answer = r#"{"n":12345678901234567890}"#;
        let answer = Any { format: Format::Json, bytes: answer.into() };
        world.broker.lines().answer(&who, &asked.request_id, Ok(answer)).unwrap();
        assert_eq!(
            peer.answer_line("3").await,
            concat!(
                r#"{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","#,
                r#""text":"{\"n\":12345678901234567890}"}],"#,
                r#""structuredContent":{"n":12345678901234567890},"isError":false}}"#
            )
        );
    }
    world.stop().await;
}

/// REQ: design "The sandbox socket": a job whose wait is over is answered with its id; cancelling
/// ends the work; progress is reported.
#[tokio::test]
async fn a_tool_that_makes_a_job_is_waited_for_and_can_be_cancelled() {
    let world = World::start().await;
    let (_, mut peer) = connected(&world).await;
    let (key, _) = world.token("write").await;
    let sleep = |ms: u64| call(&key, "job_sleep", json!({ "milliseconds": ms }));
    let slept = peer.get(1, "oubliette_call_tool", sleep(20)).await;
    assert_eq!(slept["result"]["structuredContent"]["milliseconds"], 20, "{slept}");
    peer.ask(2, "oubliette_call_tool", sleep(600_000)).await;
    world.until(|it| it.n_jobs == 1).await;
    peer.send(r#"{"method":"cancel","params":{"id":2}}"#).await;
    assert!(refused(&peer.answer(2).await).starts_with("-32000 cancelled"));
    world.until(|it| it.n_jobs == 0).await;
    peer.ask(3, "oubliette_call_tool", sleep(600_000)).await;
    world.until(|it| it.n_jobs == 1).await;
    drop(peer);
    world.until(|it| it.n_jobs == 0).await;
    world.stop().await;
}

/// REQ: seed 002 "Audit Trail": tool calls are logged with the token's public id; the key is never
/// logged or persisted.
#[tokio::test]
async fn calls_are_audited_with_the_token_s_id_and_never_the_key() {
    let world = World::start().await;
    let (session, mut peer) = connected(&world).await;
    let (key, credential) = world.token("write").await;
    let create = call(&key, "project_create", json!({ "name": "x" }));
    peer.get(1, "oubliette_call_tool", create).await;
    let dir = world.stop().await;
    let mut all = Vec::new();
    let mut dirs = vec![dir.path().as_std_path().to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                all.push((path.display().to_string(), std::fs::read(&path).unwrap()));
            }
        }
    }
    let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|it| it == text.as_bytes());
    let audit = all.iter().filter(|(path, _)| path.contains("/audit/"));
    let audit: Vec<u8> = audit.flat_map(|(_, bytes)| bytes.clone()).collect();
    for text in [&*credential.id().to_string(), "project_create", "relay", &session.to_string()] {
        assert!(has(&audit, text), "{text}");
    }
    for (path, bytes) in &all {
        assert!(!has(bytes, &key), "{path} of {session}");
    }
}

impl World {
    async fn until(&self, is_so: impl Fn(ringback_broker::TableSizes) -> bool) {
        wait_for("the broker gets there", async || is_so(self.broker.under_way())).await;
    }
}
