//! Sessions that an agent starts and reads, and the end of its own.

use ringback_broker::Credential;
use serde_json::{Value, json};

use crate::support::{World, refused, tool};

/// An agent that reports that it is done after each message, or breaks off if the message says
/// `fail`.
const TURNS: &str = r#"while read -r line; do
    case $line in *fail*) exit 3;; esac
    printf '{"type":"message","text":"done"}\n{"type":"done"}\n'
done"#;

fn id_of(answer: &Value) -> ringback_proto::ids::SessionId {
    let id = answer["result"]["session_id"].as_str().unwrap_or_else(|| panic!("{answer}"));
    id.parse().unwrap()
}

/// REQ: design "The sandbox socket": `session_message` starts a child that has the caller's tools;
/// its requests reach the root's caller.
/// Rule: a child session has its tools.
#[tokio::test]
async fn a_child_session_has_the_caller_s_tools() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    let child = peer.get(1, "session_message", json!({ "message": "go" })).await;
    assert_eq!(child["result"]["root_session_id"], session.to_string(), "{child}");
    assert_eq!(child["result"]["spawned"], true);
    let child = id_of(&child);
    assert_ne!(child, session);
    let mut inner = world.connect(child).await;
    let config = inner.next().await;
    assert_eq!(config["params"]["caller_id"], "ant");
    assert_eq!(config["params"]["tools"][0]["name"], "x");
    inner.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    let call = caller.next_call().await;
    assert_eq!(call.context.session_id.as_deref(), Some(&*child.to_string()));
    world.answer(&caller, &call, "\"there\"").await.unwrap();
    assert_eq!(inner.answer(1).await["result"], "there");
    world.stop().await;
}

/// REQ: design "The sandbox socket": `session_events` for itself and its descendants.
/// Rule: no session reads, or sends messages to, another that is not its own.
#[tokio::test]
async fn an_agent_reads_and_tells_its_own_sessions_alone() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([])).await;
    let stranger = world.session(&who, json!([])).await;
    let mut peer = world.settled(session).await;
    let child = id_of(&peer.get(1, "session_message", json!({ "message": "go" })).await);
    for (id, own) in [(2, session), (3, child)] {
        let ask = json!({ "session_id": own.to_string(), "since_index": -1, "wait_ms": 30_000 });
        let events = peer.get(id, "session_events", ask).await;
        assert_eq!(events["result"]["session_id"], own.to_string(), "{events}");
        assert!(!events["result"]["events"].as_array().unwrap().is_empty());
    }
    let again = json!({ "message": "more", "session_id": child.to_string() });
    let again = peer.get(4, "session_message", again).await;
    assert_eq!(again["result"]["spawned"], false, "{again}");
    let mut inner = world.settled(child).await;
    for (asker, other) in [(&mut peer, stranger), (&mut inner, session)] {
        let other = other.to_string();
        let ask = json!({ "session_id": other, "since_index": -1 });
        let events = asker.get(5, "session_events", ask).await;
        assert_eq!(refused(&events), "-32000 not_found not_started");
        let tell = json!({ "session_id": other, "message": "hello" });
        let told = asker.get(6, "session_message", tell).await;
        assert_eq!(refused(&told), "-32000 not_found not_started");
    }
    world.stop().await;
}

/// Rule: the clients that came before this daemon send an empty id for no session, and read events
/// until the status is `completed` or `failed`. A client that does not greet gets the states of
/// this daemon.
#[tokio::test]
async fn a_client_that_greets_waits_for_a_child_as_it_always_did() {
    let turns = |config: &mut _| crate::support::set_agent(config, TURNS);
    let world = World::start_with(ringback_edge_relay::Config::default(), turns).await;
    let who = Credential::local();
    let project = world.project(&who, None).await;
    let session = world.session_in(&who, project, json!([])).await;
    let mut peer = world.settled(session).await;
    peer.send(&format!("OUBLIETTE-DOWNSTREAM {project}")).await;
    let mut plain = world.settled(session).await;
    let mut id = 0;
    for (message, end, state) in [("go", "completed", "idle"), ("fail", "failed", "idle")] {
        id += 1;
        let ask = json!({ "message": message, "session_id": "" });
        let child = peer.get(id, "session_message", ask).await;
        assert_eq!(child["result"]["spawned"], true, "{child}");
        let child = id_of(&child).to_string();
        let events = loop {
            id += 1;
            let ask = json!({ "session_id": child, "since_index": -1 });
            let events = peer.get(id, "session_events", ask).await["result"].clone();
            if events["status"] != "running" {
                break events;
            }
            tokio::task::yield_now().await;
        };
        assert_eq!((&events["status"], &events["state"]), (&json!(end), &json!(state)));
        assert_eq!(events["completed"], end == "completed");
        assert_eq!(events["failed"], end == "failed");
        let ask = json!({ "session_id": child, "since_index": -1 });
        let seen = plain.get(id, "session_events", ask).await;
        assert_eq!(seen["result"]["status"], state, "{seen}");
        if end == "completed" {
            let said = events["events"].as_array().unwrap().iter();
            let text: Vec<_> =
                said.filter(|event| event["role"] == "assistant").map(|it| &it["text"]).collect();
            assert_eq!(text, ["done"], "{events}");
        }
    }
    let own = peer.get(100, "session_events", json!({ "session_id": "" })).await;
    assert_eq!(own["result"]["session_id"], session.to_string(), "{own}");
    world.stop().await;
}

/// Rule: at the depth limit an agent is refused immediately.
#[tokio::test]
async fn a_session_at_the_depth_limit_starts_no_other() {
    let world = World::start().await;
    let who = Credential::local();
    let mut session = world.session(&who, json!([tool("x")])).await;
    let mut depth = 0;
    let refusal = loop {
        let mut peer = world.settled(session).await;
        let answer = peer.get(1, "session_message", json!({ "message": "go" })).await;
        if answer.get("error").is_some() {
            break answer;
        }
        session = id_of(&answer);
        depth += 1;
        assert!(depth < 20, "there is a limit");
    };
    assert!(depth > 0, "{refusal}");
    assert!(refused(&refusal).ends_with("not_started"), "{refusal}");
    world.stop().await;
}

/// Rule: a wait for events ends when it is cancelled, and delays no other request.
#[tokio::test]
async fn a_wait_for_events_can_be_cancelled() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut peer = world.settled(session).await;
    let all = peer.get(1, "session_events", json!({})).await;
    let since = all["result"]["last_index"].clone();
    peer.ask(2, "session_events", json!({ "since_index": since, "wait_ms": 30_000 })).await;
    world.works(&who, session, &mut peer).await;
    peer.send(r#"{"method":"cancel","params":{"id":2}}"#).await;
    assert_eq!(refused(&peer.answer(2).await), "-32000 cancelled not_started");
    world.stop().await;
}

/// Rule: the end of a session closes its socket and every connection, and those of its children.
#[tokio::test]
async fn the_end_of_a_session_closes_its_socket_and_every_connection() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut first = world.settled(session).await;
    let second = world.settled(session).await;
    let child = id_of(&first.get(1, "session_message", json!({ "message": "go" })).await);
    let inner = world.settled(child).await;
    first.ask(2, "caller_tool", json!({ "tool": "x" })).await;
    caller.next_call().await;
    let end = json!({ "session_id": session.to_string() });
    world.call(&who, "session_end", end).await.unwrap();
    first.closed().await;
    second.closed().await;
    inner.closed().await;
    for session in [session, child] {
        let path = world.socket(session);
        assert!(tokio::net::UnixStream::connect(&path).await.is_err(), "{path}");
        assert!(!path.exists());
    }
    assert_eq!(world.broker.under_way().n_calls, 0);
    world.stop().await;
}

/// Rule: the edge stops with everything that belongs to it, and opens nothing afterwards.
#[tokio::test]
async fn a_stopped_edge_has_closed_everything() {
    let world = World::start().await;
    let who = Credential::local();
    let project = world.project(&who, None).await;
    let session = world.session_in(&who, project, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    caller.next_call().await;
    world.relay().stop().await;
    peer.closed().await;
    let spawn = json!({ "project_id": project.to_string() });
    let refused = world.call(&who, "session_spawn", spawn).await.unwrap_err();
    assert_eq!(refused.code, "internal");
    world.stop().await;
}
