//! Whose answers count, and that they pass unchanged.

use ringback_broker::Credential;
use ringback_proto::ids::SessionId;
use serde_json::{Value, json};

use crate::support::{World, refused, tool};

fn response(session: SessionId, request_id: &str, result: &Value) -> Value {
    json!({ "session_id": session.to_string(), "request_id": request_id, "result": result })
}

/// Rule: an answer from another principal is refused, even from an administrator.
#[tokio::test]
async fn an_answer_from_another_principal_is_not_taken() {
    let world = World::start().await;
    let (_, owner) = world.token("write").await;
    let session = world.session(&owner, json!([tool("x")])).await;
    let mut caller = world.caller(&owner, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    let call = caller.next_call().await;
    let forged = response(session, &call.request_id, &json!("forged"));
    for scope in ["write", "admin", "read"] {
        let (_, stranger) = world.token(scope).await;
        let refusal =
            world.call(&stranger, "caller_tool_response", forged.clone()).await.unwrap_err();
        assert!(
            matches!(refusal.code.as_str(), "not_found" | "permission_denied"),
            "{scope}: {refusal:?}"
        );
    }
    world.answer(&caller, &call, "\"true\"").await.unwrap();
    assert_eq!(peer.answer(1).await["result"], "true");
    world.stop().await;
}

/// Rule: an answer for another session, or for a call to another caller of the session, does not
/// count.
#[tokio::test]
async fn an_answer_for_another_session_is_not_taken() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let other = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    let call = caller.next_call().await;
    let wrong = response(other, &call.request_id, &json!(0));
    let refusal = world.call(&who, "caller_tool_response", wrong).await.unwrap_err();
    assert_eq!(refusal.code, "not_found");
    world.answer(&caller, &call, "1").await.unwrap();
    assert_eq!(peer.answer(1).await["result"], 1);
    world.stop().await;
}

/// Rule: an answer from another `caller_id` is refused: each caller gets only its own calls, and a
/// `caller_id` belongs to the client that declared it.
#[tokio::test]
async fn a_call_goes_to_its_own_caller_alone() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    world.declare(&who, session, "bee", json!([tool("x")])).await.unwrap();
    let mut peer = world.connect(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x", "caller_id": "bee" })).await;
    let polled = |caller_id: &'static str, wait_ms: u64| {
        let id = session.to_string();
        let ask = json!({ "session_id": id, "caller_id": caller_id, "wait_ms": wait_ms });
        world.call(&who, "caller_tool_requests", ask)
    };
    let bees = polled("bee", 20_000).await.unwrap();
    assert_eq!(bees["requests"].as_array().unwrap().len(), 1);
    assert_eq!(polled("ant", 0).await.unwrap()["requests"], json!([]), "it was delivered already");
    let (_, stranger) = world.token("admin").await;
    assert!(world.declare(&stranger, session, "bee", json!([tool("x")])).await.is_err());
    drop(peer);
    world.stop().await;
}

/// Rule: a second answer does not count.
#[tokio::test]
async fn a_second_answer_is_not_taken() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    let call = caller.next_call().await;
    world.answer(&caller, &call, "1").await.unwrap();
    assert_eq!(world.answer(&caller, &call, "2").await.unwrap_err().code, "not_found");
    assert_eq!(peer.answer(1).await["result"], 1);
    let after = peer.get(2, "nothing", json!({})).await;
    assert_eq!(refused(&after), "-32601 not_found not_started", "no second answer before it");
    world.stop().await;
}

/// REQ: seed 001 "Tool execution error response"; seed 000 "Tool execution failed".
/// Rule: an error arrives as an error, and a success that has a field `error` as a success.
#[tokio::test]
async fn an_error_stays_an_error_and_a_success_a_success() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    for text in ["recipient not found", ""] {
        peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
        let call = caller.next_call().await;
        let failed = json!({
            "session_id": session.to_string(), "request_id": &*call.request_id, "error": text,
        });
        world.call(&who, "caller_tool_response", failed).await.unwrap();
        let answer = peer.answer(1).await;
        assert_eq!(refused(&answer), "-32000 tool_failed ran");
        assert_eq!(answer["error"]["message"], text);
        assert!(answer.get("result").is_none());
    }
    peer.ask(2, "caller_tool", json!({ "tool": "x" })).await;
    let call = caller.next_call().await;
    world.answer(&caller, &call, r#"{"error":"x"}"#).await.unwrap();
    assert_eq!(peer.answer(2).await["result"], json!({ "error": "x" }));
    world.stop().await;
}

/// Rule: payloads pass unchanged: null, 2^53 + 1, 20 digits, key order, unknown fields.
#[tokio::test]
async fn payloads_pass_unchanged_both_ways() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    for (n, payload) in [
        "null",
        "9007199254740993",
        "12345678901234567890",
        r#"{"z":12345678901234567890,"a":{"n":null,"f":1.0,"e":1e2},"":[],"\u0061b":"\u00e9\n"}"#,
        r#""text""#,
        "[]",
        "{}",
        "false",
        "-0.0",
    ]
    .into_iter()
    .enumerate()
    {
        let arguments = format!(r#"{{"payload": {payload}}}"#);
        peer.send(&format!(
            r#"{{"id":{n},"method":"caller_tool","params":{{"tool":"x","arguments":{arguments}}}}}"#
        ))
        .await;
        let call = caller.next_call().await;
        assert_eq!(call.arguments.bytes, arguments.as_bytes());
        world.answer(&caller, &call, payload).await.unwrap();
        let line = peer.answer_line(&n.to_string()).await;
        assert_eq!(line, format!(r#"{{"jsonrpc":"2.0","id":{n},"result":{payload}}}"#));
    }
    world.stop().await;
}

/// Rule: whitespace between tokens is removed where it would break a line; tokens never change.
#[tokio::test]
async fn a_result_with_line_breaks_is_one_line() {
    let world = World::start().await;
    let who = Credential::local();
    let session = world.session(&who, json!([tool("x")])).await;
    let mut caller = world.caller(&who, session);
    let mut peer = world.settled(session).await;
    peer.ask(1, "caller_tool", json!({ "tool": "x" })).await;
    let call = caller.next_call().await;
    world
        .answer(&caller, &call, "{\n  \"n\" : 12345678901234567890,\r\n\t\"s\": \"a b\"\n}")
        .await
        .unwrap();
    let line = peer.answer_line("1").await;
    assert_eq!(line, r#"{"jsonrpc":"2.0","id":1,"result":{"n":12345678901234567890,"s":"a b"}}"#);
    world.stop().await;
}
