//! Callers' tools as an agent sees and calls them.

use std::time::Duration;

use ringback_broker::PartyMessage;
use ringback_testkit::pass;
use serde_json::{Value, json};

use crate::agent::Door;
use crate::support::World;

/// `kind certainty` of a call that failed.
pub(crate) fn failed(answer: &Value) -> String {
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let error = &answer["result"]["_meta"]["ringback/error"];
    assert!(error["retryable"].is_boolean(), "{answer}");
    let text = |name: &str| error[name].as_str().unwrap_or("?").to_owned();
    format!("{} {}", text("kind"), text("certainty"))
}

/// REQ: seed 001 "Caller declares tools at session start", "Tools include input schema": unchanged,
/// digit for digit.
#[tokio::test]
async fn declared_tools_are_listed_with_their_schemas() {
    let world = World::start().await;
    for door in Door::ALL {
        let schema = r#"{"z":12345678901234567890,"a":{"maximum":1e2},"type":"object"}"#;
        let tools = format!(
            r#"[{{"name":"send","description":"Sends","inputSchema":{schema}}},{{"name":"bare"}}]"#
        );
        let session = world.open(&tools).await;
        let listed = world.agent(door, &session).await.list_text().await;
        let send = format!(r#"{{"name":"ant_send","description":"Sends","inputSchema":{schema}}}"#);
        assert!(listed.contains(&send), "{door:?}: {listed}");
        let bare = r#"{"name":"ant_bare","inputSchema":{"type":"object"}}"#;
        assert!(listed.contains(bare), "{door:?}: {listed}");
    }
    world.stop().await;
}

/// REQ: seed 001 "Agent calls caller tool successfully", "Successful tool response", "Socket
/// request and response".
/// REQ: seed 001 "Tool request event format": a unique request id, the tool, its arguments.
#[tokio::test]
async fn a_call_reaches_the_caller_and_its_result_the_agent() {
    let world = World::start().await;
    for door in Door::ALL {
        let session = world.open(r#"[{"name":"send"}]"#).await;
        let mut agent = world.agent(door, &session).await;
        agent.ask(1, "ant_send", r#"{"message":"hi"}"#).await;
        let id = session.id.to_string();
        let asked = json!({ "session_id": id, "wait_ms": 30_000 });
        let asked = world.call("caller_tool_requests", asked).await.unwrap();
        let request = &asked["requests"][0];
        assert_eq!(request["type"], "caller_tool_request", "{door:?}");
        assert_eq!((&request["tool"], &request["caller_id"]), (&json!("send"), &json!("ant")));
        assert_eq!(request["arguments"], json!({ "message": "hi" }));
        assert_eq!((&request["session_id"], &request["root_session_id"]), (&json!(id), &json!(id)));
        let request_id = request["request_id"].as_str().unwrap();
        assert_eq!(request_id.len(), 36, "a UUID: {request_id}");
        let answer = json!({
            "session_id": id, "request_id": request_id, "result": { "status": "sent" },
        });
        world.call("caller_tool_response", answer).await.unwrap();
        let answer = agent.answer(1).await;
        assert_eq!(answer["result"]["structuredContent"], json!({ "status": "sent" }), "{door:?}");
        assert!(answer["result"]["isError"] != true, "{door:?}: {answer}");
    }
    world.stop().await;
}

/// REQ: seed 001 "Caller tool request times out"; a declared tool may carry `timeoutMs`.
/// Rule: an answer after the call has failed for the agent is not accepted.
#[tokio::test]
async fn a_call_ends_at_its_deadline_and_a_late_answer_is_refused() {
    let world = World::start().await;
    for door in Door::ALL {
        let session = world.open(r#"[{"name":"x","timeoutMs":20000}]"#).await;
        let mut caller = world.caller(session.id);
        let mut agent = world.agent(door, &session).await;
        agent.ask(1, "ant_x", "{}").await;
        let call = caller.next_call().await;
        pass(Duration::from_secs(20)).await;
        assert_eq!(failed(&agent.answer(1).await), "timeout may_have_run", "{door:?}");
        let late = world.answer(&caller, &call, r#""result":1"#).await.unwrap_err();
        assert_eq!(late.code, "not_found");
        assert!(matches!(caller.next().await, PartyMessage::Cancel { .. }));
    }
    world.stop().await;
}

/// REQ: seed 001 "Caller disconnected before response"; seed 000 "Caller disconnected".
/// Rule: the caller disconnects and the agent does not wait for the deadline.
#[tokio::test]
async fn a_caller_that_disconnects_ends_the_agent_s_call_at_once() {
    let world = World::start().await;
    for door in Door::ALL {
        let session = world.open(r#"[{"name":"x"}]"#).await;
        let mut caller = world.caller(session.id);
        let mut agent = world.agent(door, &session).await;
        agent.ask(1, "ant_x", "{}").await;
        caller.next_call().await;
        drop(caller);
        let lost = agent.answer(1).await;
        assert_eq!(failed(&lost), "gone may_have_run", "{door:?}");
        assert_eq!(lost["result"]["_meta"]["ringback/error"]["retryable"], true);
        let next = agent.call(2, "ant_x", "{}").await;
        assert_eq!(failed(&next), "gone not_started", "{door:?}");
    }
    world.stop().await;
}

/// REQ: seed 001 "Dynamic tool registration": declaring again replaces the list live, with a
/// notice.
/// Rule: a removed tool cannot be called, and an undeclared one is not relayed.
#[tokio::test]
async fn declaring_again_is_announced_and_what_is_gone_is_not_relayed() {
    let world = World::start().await;
    for door in Door::ALL {
        let session = world.open(r#"[{"name":"x"},{"name":"y"}]"#).await;
        let mut caller = world.caller(session.id);
        let mut agent = world.agent(door, &session).await;
        assert_eq!(agent.names().await, ["ant_x", "ant_y"], "{door:?}");
        let undeclared = agent.call(1, "ant_z", "{}").await;
        assert_eq!(undeclared["error"]["code"], -32602, "{door:?}: {undeclared}");
        world.declare(session.id, "ant", json!([{ "name": "y" }])).await;
        agent.told("notifications/tools/list_changed").await;
        assert_eq!(agent.names().await, ["ant_y"], "{door:?}");
        let removed = agent.call(3, "ant_x", "{}").await;
        assert_eq!(removed["error"]["code"], -32602, "{door:?}: {removed}");
        world.declare(session.id, "bee", json!([{ "name": "y" }])).await;
        agent.told("notifications/tools/list_changed").await;
        assert_eq!(agent.names().await, ["ant_y", "bee_y"], "{door:?}");
        agent.ask(4, "bee_y", "{}").await;
        let call = caller.next_call().await;
        assert_eq!(call.caller_id(), Some("bee"), "{door:?}: the first that was relayed");
    }
    world.stop().await;
}

/// Rule: arguments are checked against the declared schema before they leave.
#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_do_not_leave() {
    let world = World::start().await;
    for door in Door::ALL {
        let schema = r#"{"type":"object","required":["m"]}"#;
        let session = world.open(&format!(r#"[{{"name":"x","inputSchema":{schema}}}]"#)).await;
        let mut agent = world.agent(door, &session).await;
        let misfit = agent.call(1, "ant_x", r#"{"n":1}"#).await;
        assert_eq!(failed(&misfit), "invalid not_started", "{door:?}");
    }
    world.stop().await;
}

/// Rule: a slow caller tool delays no other call of the session.
#[tokio::test]
async fn a_slow_tool_delays_nobody() {
    let world = World::start().await;
    for door in Door::ALL {
        let session = world.open(r#"[{"name":"slow"},{"name":"quick"}]"#).await;
        let mut caller = world.caller(session.id);
        let mut agent = world.agent(door, &session).await;
        agent.ask(1, "ant_slow", "{}").await;
        let slow = caller.next_call().await;
        for id in 2..10 {
            agent.ask(id, "ant_quick", "{}").await;
            let quick = caller.next_call().await;
            world.answer(&caller, &quick, r#""result":{"n":2}"#).await.unwrap();
            assert_eq!(agent.answer(id).await["result"]["structuredContent"]["n"], 2, "{door:?}");
        }
        world.answer(&caller, &slow, r#""result":{"n":1}"#).await.unwrap();
        assert_eq!(agent.answer(1).await["result"]["structuredContent"]["n"], 1, "{door:?}");
    }
    world.stop().await;
}

/// REQ: design "The sandbox socket": progress and cancel pass through.
#[tokio::test]
async fn progress_reaches_the_agent_and_its_cancel_the_caller() {
    let world = World::start().await;
    for door in Door::ALL {
        let session = world.open(r#"[{"name":"x"}]"#).await;
        let mut caller = world.caller(session.id);
        let mut agent = world.agent(door, &session).await;
        agent.ask(7, "ant_x", "{}").await;
        let call = caller.next_call().await;
        let progress = json!({
            "session_id": session.id.to_string(), "request_id": &*call.request_id,
            "percent": 25.0, "message": "a quarter",
        });
        world.call("caller_tool_progress", progress).await.unwrap();
        let told = agent.told("notifications/progress").await;
        assert_eq!(told["params"]["progressToken"], 7, "{door:?}: {told}");
        assert_eq!(told["params"]["progress"].as_f64(), Some(25.0));
        assert_eq!(told["params"]["message"], "a quarter");
        agent.cancel(7).await;
        assert!(matches!(caller.next().await, PartyMessage::Cancel { .. }), "{door:?}");
        let late = world.answer(&caller, &call, r#""result":1"#).await;
        assert!(late.is_err(), "{door:?}: the agent is no longer waiting");
        agent.ask(8, "ant_x", "{}").await;
        let call = caller.next_call().await;
        world.answer(&caller, &call, r#""result":{}"#).await.unwrap();
        agent.answer(8).await;
    }
    world.stop().await;
}

/// Rule: one session never receives another's tools or calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_never_swap_tools_or_calls() {
    const N_SESSIONS: usize = 8;
    let world = std::sync::Arc::new(World::start().await);
    let project = world.project(None).await;
    let mut starting = tokio::task::JoinSet::new();
    for n in 0..N_SESSIONS {
        let world = std::sync::Arc::clone(&world);
        starting.spawn(async move {
            let door = Door::ALL[n % Door::ALL.len()];
            let session = world.open_in(project, &format!(r#"[{{"name":"tool_{n}"}}]"#)).await;
            let mut caller = world.caller(session.id);
            let mut agent = world.agent(door, &session).await;
            let name = format!("ant_tool_{n}");
            assert_eq!(agent.names().await, [name.as_str()], "{door:?}");
            for id in 0..5 {
                agent.ask(id, &name, &format!(r#"{{"n":{n}}}"#)).await;
                let call = caller.next_call().await;
                assert_eq!(call.arguments.bytes, format!(r#"{{"n":{n}}}"#));
                world.answer(&caller, &call, &format!(r#""result":{{"n":{n}}}"#)).await.unwrap();
                assert_eq!(agent.answer(id).await["result"]["structuredContent"]["n"], n);
            }
            let other = format!("ant_tool_{}", (n + 1) % N_SESSIONS);
            let other = agent.call(9, &other, "{}").await;
            assert_eq!(other["error"]["code"], -32602, "{door:?}: {other}");
        });
    }
    while let Some(done) = starting.join_next().await {
        done.unwrap();
    }
    std::sync::Arc::into_inner(world).unwrap().stop().await;
}
