//! The daemon's own tools in a session, limited by its key, and those of HTTP clients.

use ringback_broker::{LineName, LineOffer, ToolOffer};
use ringback_proto::any::{Any, Format};
use ringback_testkit::within;
use serde_json::json;

use crate::agent::{Agent, Door};
use crate::callers::failed;
use crate::support::World;

/// REQ: seed 002 "Scope table": a key discovers and calls what its scope has, and nothing else.
#[tokio::test]
async fn a_key_sees_and_calls_the_tools_of_its_scope() {
    let world = World::start().await;
    let (read, _) = world.token("read").await;
    for door in Door::ALL {
        let session = world.open(r#"[{"name":"x"}]"#).await;
        let socket = world.socket(session.id);
        let mut agent = Agent::start(door, &socket, &session, Some(&read)).await;
        let names = agent.names().await;
        assert_eq!(names[0], "ant_x", "{door:?}");
        assert!(names.contains(&"oubliette_project_list".to_owned()), "{door:?}: {names:?}");
        assert!(!names.contains(&"oubliette_project_create".to_owned()), "{door:?}: {names:?}");
        let listed = agent.call(1, "oubliette_project_list", "{}").await;
        assert!(listed["result"]["structuredContent"]["projects"].is_array(), "{door:?}: {listed}");
        let denied = agent.call(2, "oubliette_project_create", r#"{"name":"mine"}"#).await;
        assert_eq!(denied["error"]["code"], -32602, "{door:?}: {denied}");
    }
    world.stop().await;
}

/// REQ: seed 002 "Invalid key": it discovers nothing, and the caller tools are still available.
#[tokio::test]
async fn a_key_that_is_not_valid_opens_nothing() {
    let world = World::start().await;
    for door in Door::URLS {
        let session = world.open(r#"[{"name":"x"}]"#).await;
        let socket = world.socket(session.id);
        let mut agent = Agent::start(door, &socket, &session, Some("oub_nothing")).await;
        assert_eq!(agent.names().await, ["ant_x"], "{door:?}");
    }
    world.stop().await;
}

/// Rule: the session key works at the session's URL without being shown.
#[tokio::test]
async fn a_session_s_own_key_counts_at_its_url() {
    let world = World::start().await;
    let project = world.project(Some("read")).await;
    for door in Door::URLS {
        let session = world.open_in(project, r#"[{"name":"x"}]"#).await;
        let mut agent = world.agent(door, &session).await;
        let names = agent.names().await;
        assert!(names.contains(&"oubliette_session_get".to_owned()), "{door:?}: {names:?}");
        assert!(!names.contains(&"oubliette_session_end".to_owned()), "{door:?}: {names:?}");
        let own = json!({ "session_id": session.id.to_string() }).to_string();
        let got = agent.call(1, "oubliette_session_get", &own).await;
        let got = &got["result"]["structuredContent"];
        assert_eq!(got["agent"], "elsewhere", "{door:?}: {got}");
        assert!(got.get("token").is_none(), "{door:?}: {got}");
    }
    world.stop().await;
}

/// REQ: seed 004 "Client tools in agent sessions": a client's tool is called with the session's
/// ids.
#[tokio::test]
async fn a_client_tool_is_called_from_a_session() {
    let world = World::start().await;
    let (secret, owner) = world.token("write").await;
    let line = LineName::Client("page".into());
    let tools = vec![ToolOffer { name: "zoom".to_owned(), ..ToolOffer::default() }];
    let offer = LineOffer { line: line.clone(), grace_ms: None, tools };
    world.broker.lines().offer(&owner, offer).unwrap();
    let mut stream = world.broker.lines().open(&owner, &line).unwrap();
    for door in Door::ALL {
        let session = world.open("[]").await;
        let socket = world.socket(session.id);
        let mut agent = Agent::start(door, &socket, &session, Some(&secret)).await;
        agent.ask(1, "oubliette_client_page_zoom", r#"{"to":9007199254740993}"#).await;
        let post = within("the client hears", stream.next()).await.unwrap();
        let ringback_broker::PartyMessage::Call(call) = post else { panic!("a call") };
        assert_eq!(call.arguments.bytes, r#"{"to":9007199254740993}"#, "{door:?}");
        let id = session.id.to_string();
        assert_eq!(call.context.session_id.as_deref(), Some(id.as_str()), "{door:?}");
        assert_eq!(call.context.message_id.as_deref(), Some(id.as_str()), "{door:?}");
        assert!(call.context.call_id.is_some(), "{door:?}");
        let result = Any { format: Format::Json, bytes: r#"{"zoomed":true}"#.into() };
        world.broker.lines().answer(&owner, &call.request_id, Ok(result)).unwrap();
        let answer = agent.answer(1).await;
        assert_eq!(answer["result"]["structuredContent"], json!({ "zoomed": true }), "{door:?}");
    }
    world.stop().await;
}

/// Rule: a failure of one of the daemon's tools is reported as the tool's failure, unchanged.
#[tokio::test]
async fn a_failure_of_a_native_tool_is_told() {
    let world = World::start().await;
    let (write, _) = world.token("write").await;
    for door in Door::URLS {
        let session = world.open("[]").await;
        let socket = world.socket(session.id);
        let mut agent = Agent::start(door, &socket, &session, Some(&write)).await;
        let strange = json!({ "session_id": format!("gogol_{}", "a".repeat(32)) }).to_string();
        let refused = agent.call(1, "oubliette_session_get", &strange).await;
        assert_eq!(failed(&refused), "not_found not_started", "{door:?}");
    }
    world.stop().await;
}
