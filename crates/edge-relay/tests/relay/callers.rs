//! Caller tools as the agent of a session sees and calls them.

use std::time::Duration;

use ringback_broker::{CancelReason, Credential, PartyMessage};
use ringback_testkit::pass;
use serde_json::{Value, json};

use crate::support::{World, refused, tool};

/// REQ: seed 001 "Caller declares tools at session start", "Tools include input schema".
#[tokio::test]
async fn declared_tools_are_told_at_once_with_their_schemas() {
    let world = World::start().await;
    let who = Credential::local();
    let schema = json!({ "properties": { "m": { "type": "string" } }, "type": "object" });
    let tools = json!([
        { "name": "send", "description": "Sends", "inputSchema": schema.clone() },
        { "name": "bare" },
    ]);
    let session = world.session(&who, tools).await;
    let config = world.connect(session).await.next().await;
    assert_eq!(
        config,
        json!({
            "jsonrpc": "2.0", "method": "caller_tools_config", "type": "caller_tools_config",
            "params": { "caller_id": "ant", "tools": [
                { "name": "send", "description": "Sends", "inputSchema": schema },
                { "name": "bare", "inputSchema": { "type": "object" } },
            ] },
        })
    );
    world.stop().await;
}

/// Rule: a schema reaches the agent unchanged, digit for digit.
#[tokio::test]
async fn a_schema_is_told_with_the_digits_it_was_declared_with() {
    let world = World::start().await;
    let who = Credential::local();
    let project = world.project(&who, None).await;
    let schema = r#"{"z":12345678901234567890,"a":{"maximum":1e2},"type":"object"}"#;
    let spawn = format!(
        r#"{{"project_id":"{project}","caller_id":"ant","caller_tools":[{{"name":"x","inputSchema":{schema}}}]}}"#
    );
    let spawned = world.call_text(&who, "session_spawn", &spawn).await.unwrap();
    let session = spawned["session_id"].as_str().unwrap().parse().unwrap();
    let line = world.connect(session).await.next_line().await.unwrap();
    assert!(line.contains(&format!(r#""inputSchema":{schema}"#)), "{line}");
    world.stop().await;
}

/// REQ: seed 001 "Agent calls caller tool successfully", "Socket request and response".
/// REQ: seed 001 "Tool request event format": a unique request id, the tool, its arguments.
#[tokio::test]
async fn a_call_reaches_the_caller_and_its_result_the_agent() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("send")])).await;
    let mut peer = world.settled(session).await;
    let arguments = json!({ "message": "hi" });
    peer.ask(1, "caller_tool", json!({ "tool": "send", "arguments": arguments })).await;
    let asked = json!({ "session_id": session.to_string(), "wait_ms": 30_000 });
    let asked = world.call(&who, "caller_tool_requests", asked).await.unwrap();
    let request = &asked["requests"][0];
    assert_eq!(request["type"], "caller_tool_request");
    assert_eq!(request["tool"], "send");
    assert_eq!(request["caller_id"], "ant");
    assert_eq!(request["arguments"], arguments);
    let request_id = request["request_id"].as_str().unwrap();
    assert_eq!(request_id.len(), 36, "a UUID: {request_id}");
    let answer = json!({
        "session_id": session.to_string(), "request_id": request_id, "result": { "status": "sent" },
    });
    world.call(&who, "caller_tool_response", answer).await.unwrap();
    assert_eq!(peer.answer(1).await["result"], json!({ "status": "sent" }));
    world.stop().await;
}

/// Rule: declaring again updates the list live, the same list is not a change, a removed caller is
/// announced with an empty list, and several callers are separate.
#[tokio::test]
async fn changes_of_the_tools_are_told_one_caller_at_a_time() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("a")])).await;
    let mut peer = world.settled(session).await;
    let told = |config: Value| {
        let names = config["params"]["tools"].as_array().unwrap().iter();
        let names: Vec<_> = names.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        format!("{} {}", config["params"]["caller_id"], names.join(" "))
    };
    world.declare(&who, session, "ant", json!([tool("a"), tool("b")])).await.unwrap();
    assert_eq!(told(peer.next().await), "\"ant\" a b");
    world.declare(&who, session, "ant", json!([tool("a"), tool("b")])).await.unwrap();
    world.declare(&who, session, "bee", json!([tool("a")])).await.unwrap();
    assert_eq!(told(peer.next().await), "\"bee\" a");
    world.declare(&who, session, "ant", json!([])).await.unwrap();
    assert_eq!(told(peer.next().await), "\"ant\" ");
    let mut late = world.connect(session).await;
    assert_eq!(told(late.next().await), "\"bee\" a");
    world.stop().await;
}

/// Rule: a removed tool does not stay callable, and one that was never declared is not relayed.
#[tokio::test]
async fn an_undeclared_or_removed_tool_is_not_relayed() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x"), tool("y")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    let undeclared = peer.get(1, "caller_tool", json!({ "tool": "z" })).await;
    assert_eq!(refused(&undeclared), "-32000 not_found not_started");
    let strange = json!({ "tool": "x", "caller_id": "bee" });
    let strange = peer.get(2, "caller_tool", strange).await;
    assert_eq!(refused(&strange), "-32000 not_found not_started");
    world.declare(&who, session, "ant", json!([tool("y")])).await.unwrap();
    let removed = peer.get(3, "caller_tool", json!({ "tool": "x" })).await;
    assert_eq!(refused(&removed), "-32000 not_found not_started");
    peer.ask(4, "caller_tool", json!({ "tool": "y", "arguments": { "n": 4 } })).await;
    assert_eq!(&*caller.next_call().await.tool.name, "y", "the first that was relayed");
    drop(peer);
    world.stop().await;
}

/// REQ: design "The sandbox socket": `caller_id` absent and ambiguous is -32602.
#[tokio::test]
async fn a_tool_of_two_callers_needs_the_caller_s_name() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x"), tool("only")])).await;
    world.declare(&who, session, "bee", json!([tool("x")])).await.unwrap();
    let mut caller = world.caller(&who, session);
    let mut peer = world.connect(session).await;
    let ambiguous = peer.get(1, "caller_tool", json!({ "tool": "x" })).await;
    assert_eq!(refused(&ambiguous), "-32602 invalid not_started");
    peer.ask(2, "caller_tool", json!({ "tool": "x", "caller_id": "bee" })).await;
    assert_eq!(caller.next_call().await.caller_id(), Some("bee"));
    peer.ask(3, "caller_tool", json!({ "tool": "only", "caller_id": null })).await;
    assert_eq!(caller.next_call().await.caller_id(), Some("ant"));
    drop(peer);
    world.stop().await;
}

/// Rule: arguments are checked against the declared schema before they leave.
#[tokio::test]
async fn arguments_that_do_not_fit_the_schema_do_not_leave() {
    let world = World::start().await;
    let who = Credential::local();
    let schema = json!({ "type": "object", "required": ["m"] });
    let session = world.session(&who, json!([{ "name": "x", "inputSchema": schema }])).await;
    let mut peer = world.settled(session).await;
    for arguments in [json!({}), json!(null), json!([1]), json!("m")] {
        let params = json!({ "tool": "x", "arguments": arguments });
        let answer = peer.get(1, "caller_tool", params).await;
        assert_eq!(refused(&answer), "-32602 invalid not_started", "{arguments}");
    }
    world.stop().await;
}

/// REQ: seed 001 "Caller disconnected before response"; seed 000 "Caller disconnected".
/// Rule: the caller disconnects and the agent does not wait for the deadline.
#[tokio::test]
async fn a_caller_that_disconnects_ends_the_agent_s_call_at_once() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    caller.next_call().await;
    drop(caller);
    let lost = peer.answer(1).await;
    assert_eq!(refused(&lost), "-32000 gone may_have_run");
    assert_eq!(lost["error"]["data"]["retryable"], true);
    let next = peer.get(2, "caller_tool", json!({ "tool": "x" })).await;
    assert_eq!(refused(&next), "-32000 gone not_started");
    world.stop().await;
}

/// REQ: seed 001 "Caller tool request times out"; a declared tool may carry `timeoutMs`.
/// Rule: an answer after the agent received the failure is refused.
#[tokio::test]
async fn a_call_ends_at_its_deadline_and_a_late_answer_is_refused() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([{ "name": "x", "timeoutMs": 20_000 }])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    let call = caller.next_call().await;
    pass(Duration::from_secs(20)).await;
    assert_eq!(refused(&peer.answer(1).await), "-32000 timeout may_have_run");
    let late = world.answer(&caller, &call, "1").await.unwrap_err();
    assert_eq!(late.code, "not_found");
    assert!(matches!(caller.next().await, PartyMessage::Cancel { .. }));
    world.stop().await;
}

/// Rule: a slow caller tool delays no other call on the same socket.
#[tokio::test]
async fn a_slow_tool_delays_nobody() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("slow"), tool("quick")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "slow" })).await;
    let slow = caller.next_call().await;
    for id in 2..20 {
        peer.ask(id, "caller_tool", json!({ "tool": "quick" })).await;
        let quick = caller.next_call().await;
        world.answer(&caller, &quick, "2").await.unwrap();
        assert_eq!(peer.answer(id).await["result"], 2);
        let events = json!({ "since_index": -1 });
        let events = peer.get(100 + id, "session_events", events).await;
        assert_eq!(events["result"]["session_id"], session.to_string());
    }
    world.answer(&caller, &slow, "1").await.unwrap();
    assert_eq!(peer.answer(1).await["result"], 1);
    world.stop().await;
}

/// REQ: design "The sandbox socket": `cancel` reaches the caller; the call ends with one outcome.
#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_its_caller_and_answered_once() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    for id in ["1", "\"a b\"", "[1,2]"] {
        peer.send(&format!(r#"{{"id":{id},"method":"caller_tool","params":{{"tool":"x"}}}}"#))
            .await;
        let call = caller.next_call().await;
        peer.send(&format!(r#"{{"method":"cancel","params":{{"id":{id}}}}}"#)).await;
        let answer = serde_json::from_str(&peer.answer_line(id).await).unwrap();
        assert_eq!(refused(&answer), "-32000 cancelled may_have_run");
        assert!(matches!(caller.next().await, PartyMessage::Cancel { .. }));
        assert!(world.answer(&caller, &call, "1").await.is_err(), "no one waits any more");
    }
    world.works_for(&mut caller, &mut peer).await;
    world.stop().await;
}

/// Rule: disconnecting cancels the calls of a peer.
#[tokio::test]
async fn a_peer_that_leaves_cancels_its_calls() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    caller.next_call().await;
    drop(peer);
    let PartyMessage::Cancel { reason, .. } = caller.next().await else { panic!("no cancel") };
    assert_eq!(reason, CancelReason::Cancelled);
    assert_eq!(world.broker.under_way().n_calls, 0);
    world.stop().await;
}

/// REQ: design "The sandbox socket": progress passes to the client under its request's id.
#[tokio::test]
async fn progress_of_a_call_is_told_under_its_id() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.send(r#"{"id":"p","method":"caller_tool","params":{"tool":"x"}}"#).await;
    let call = caller.next_call().await;
    for percent in [25.0, 50.5] {
        let progress = json!({
            "session_id": session.to_string(), "request_id": &*call.request_id,
            "percent": percent, "message": "half",
        });
        world.call(&who, "caller_tool_progress", progress).await.unwrap();
        let told = peer.next().await;
        assert_eq!(told["method"], "progress");
        assert_eq!(told["params"], json!({ "id": "p", "percent": percent, "message": "half" }));
    }
    world.answer(&caller, &call, "null").await.unwrap();
    let line = peer.next_line().await.unwrap();
    assert_eq!(line, r#"{"jsonrpc":"2.0","id":"p","result":null}"#);
    world.stop().await;
}

/// Rule: one session never receives another's tools or calls, even when many start at the same
/// moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_that_start_at_the_same_moment_never_swap_tools_or_calls() {
    const N_SESSIONS: usize = 40;
    let world = std::sync::Arc::new(World::start().await);
    let who = Credential::local();
    let project = world.project(&who, None).await;
    let mut starting = tokio::task::JoinSet::new();
    for n in 0..N_SESSIONS {
        let (world, who) = (std::sync::Arc::clone(&world), who.clone());
        starting.spawn(async move {
            let name = format!("tool_{n}");
            let session = world.session_in(&who, project, json!([tool(&name)])).await;
            let mut caller = world.caller(&who, session);
            let mut peer = world.connect(session).await;
            let config = peer.next().await;
            assert_eq!(config["params"]["tools"][0]["name"], name);
            assert_eq!(config["params"]["tools"].as_array().unwrap().len(), 1);
            for id in 0..5 {
                let params = json!({ "tool": name, "arguments": { "n": n, "id": id } });
                peer.ask(id, "caller_tool", params).await;
                let call = caller.next_call().await;
                assert_eq!(&*call.tool.name, name);
                let arguments: Value = serde_json::from_slice(&call.arguments.bytes).unwrap();
                assert_eq!(arguments["n"], n);
                world.answer(&caller, &call, &format!("[{n},{id}]")).await.unwrap();
                assert_eq!(peer.answer(id).await["result"], json!([n, id]));
            }
            let other = format!("tool_{}", (n + 1) % N_SESSIONS);
            let other = peer.get(9, "caller_tool", json!({ "tool": other })).await;
            assert_eq!(refused(&other), "-32000 not_found not_started");
        });
    }
    while let Some(done) = starting.join_next().await {
        done.unwrap();
    }
    std::sync::Arc::into_inner(world).unwrap().stop().await;
}

impl World {
    async fn works_for(
        &self,
        caller: &mut crate::support::Caller,
        peer: &mut crate::support::Peer,
    ) {
        peer.ask(778, "caller_tool", json!({ "tool": "x" })).await;
        let call = caller.next_call().await;
        self.answer(caller, &call, "true").await.unwrap();
        assert_eq!(peer.answer(778).await["result"], true);
    }
}
