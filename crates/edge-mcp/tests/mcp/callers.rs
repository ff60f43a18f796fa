//! Callers in the legacy era: the client that offers tools gets their calls on its MCP session's
//! own stream.

use std::collections::BTreeMap;
use std::time::Duration;

use ringback_proto::{Certainty, ErrorKind};
use ringback_testkit::{pass, wait_for};
use serde_json::{Value, json};

use crate::agents::{
    agent_calls, agent_is_refused, error_code, legacy, news, next_by, next_call, project, respond,
    start, structured,
};
use crate::support::World;

/// Payloads that careless code changes: integers beyond floats and beyond 64 bits, null, key order.
const INPUT: &str =
    r#"{"zeta":9007199254740993,"alpha":null,"huge":12345678901234567890,"text":"{\"a\":1}"}"#;

fn tools() -> Value {
    json!([{"name": "send", "description": "Sends."}])
}

/// REQ: REQ-CTR-003 "Tool request event format"; REQ-CTR-001 "Agent calls caller tool
/// successfully"; REQ-CTR-004 "Successful tool response". Rule: payloads pass unchanged both ways.
#[tokio::test]
async fn a_call_reaches_its_caller_and_the_answer_the_agent() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let session = start(&client, "myapp", tools()).await;
    let results = [INPUT, "null", r#""{\"a\":1}""#, "[1e2,-0.0]", "98765432109876543210"];
    for result in results {
        let call = agent_calls(&world, &session, "myapp_send", INPUT);
        let (_, text, data) = next_call(&mut stream).await;
        assert_eq!((&data["tool"], &data["session_id"]), (&json!("send"), &session));
        assert_eq!((&data["root_session_id"], &data["caller_id"]), (&session, &json!("myapp")));
        let deadline = data["deadline_ms"].as_u64().unwrap();
        assert!((50_000..=60_000).contains(&deadline), "{deadline}");
        assert_eq!(data["request_id"].as_str().unwrap().len(), 36);
        assert!(text.contains(&format!(r#""arguments":{INPUT}"#)), "{text}");
        let fields = format!(r#""result":{result},"error":null"#);
        let told = respond(&client, &session, &data["request_id"], &fields).await;
        assert_eq!(structured(&told)["type"], "ack", "{told}");
        assert_eq!(call.end().await.unwrap(), result);
    }
}

/// Rule: the client that opens a session for an agent elsewhere is its caller, like one that starts
/// a session here.
#[tokio::test]
async fn a_session_that_is_opened_rings_back_to_who_opened_it() {
    let url = Some("http://localhost".to_owned());
    let world = World::start_on(ringback_edge_mcp::Config::default(), |config| {
        config.sessions.doors.url = url
    })
    .await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let context = json!({"caller_id": "myapp", "caller_tools": tools()});
    let empty = json!({"context": context, "session_id": "", "project_id": ""});
    let opened = client.call(901, "session_open", empty).await;
    let session = structured(&opened)["session_id"].clone();
    let call = agent_calls(&world, &session, "myapp_send", INPUT);
    let (_, _, data) = next_call(&mut stream).await;
    assert_eq!((&data["session_id"], &data["root_session_id"]), (&session, &session));
    structured(&respond(&client, &session, &data["request_id"], r#""result":7"#).await);
    assert_eq!(call.end().await.unwrap(), "7");
}

/// REQ: REQ-CTR-004 "Tool execution error response".
#[tokio::test]
async fn an_error_of_the_caller_is_an_error_of_the_call() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let session = start(&client, "myapp", tools()).await;
    for (fields, message) in [
        (r#""result":null,"error":"recipient not found""#, "recipient not found"),
        (r#""error":"""#, ""),
    ] {
        let call = agent_calls(&world, &session, "myapp_send", "{}");
        let (_, _, data) = next_call(&mut stream).await;
        let both = r#""result":1,"error":"no""#;
        let refused = respond(&client, &session, &data["request_id"], both).await;
        assert_eq!(error_code(&refused), "invalid_params", "and the call still waits");
        structured(&respond(&client, &session, &data["request_id"], fields).await);
        let error = call.end().await.unwrap_err();
        assert_eq!((error.kind(), error.certainty()), (ErrorKind::ToolFailed, Certainty::Ran));
        assert_eq!(error.message(), message);
    }
}

/// REQ: REQ-CTR-001 "Caller disconnected before response". The call's own deadline is far longer
/// than the test waits.
#[tokio::test]
async fn a_caller_that_disconnects_is_gone_at_once() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let session = start(&client, "myapp", tools()).await;
    let call = agent_calls(&world, &session, "myapp_send", "{}");
    next_call(&mut stream).await;
    drop(stream);
    let error = call.end().await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::MayHaveRun));
    let error = agent_is_refused(&world, &session, "myapp_send").await;
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::NotStarted));

    let mut stream = news(&client, None).await;
    let call = agent_calls(&world, &session, "myapp_send", "{}");
    next_call(&mut stream).await;
    assert_eq!(client.send("DELETE /mcp", &[], "").await.status, 204);
    assert_eq!(call.end().await.unwrap_err().kind(), ErrorKind::Gone, "so is one that ends it");
}

/// REQ: REQ-CTR-001 "Caller tool request times out". Rule: after that no answer is taken.
#[tokio::test]
async fn a_call_that_nobody_answers_ends_at_its_time_and_is_called_off() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let session =
        start(&client, "myapp", json!([{"name": "slow_tool", "timeoutMs": 20_000}])).await;
    let call = agent_calls(&world, &session, "myapp_slow_tool", "{}");
    let (_, _, data) = next_call(&mut stream).await;
    pass(Duration::from_secs(20)).await;
    let error = call.end().await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Timeout, Certainty::MayHaveRun));
    let (_, _, cancel) = next_by(&mut stream, "oubliette.caller_tool").await;
    assert_eq!(cancel["type"], "caller_tool_cancel");
    assert_eq!(cancel["request_id"], data["request_id"]);
    let late = respond(&client, &session, &data["request_id"], r#""result":1"#).await;
    assert_eq!(error_code(&late), "not_found");
}

/// Rule: only the principal that offers the tools answers, in that session, and once.
#[tokio::test]
async fn answers_of_others_elsewhere_and_again_change_nothing() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let session = start(&client, "myapp", tools()).await;
    let other_session = start(&client, "myapp", tools()).await;
    let call = agent_calls(&world, &session, "myapp_send", "{}");
    let (_, _, data) = next_call(&mut stream).await;
    let id = &data["request_id"];
    for level in ["write", "admin"] {
        let mut stranger = world.client_as(&world.token(level).await.0);
        stranger.initialize("2025-11-25").await;
        let forged = respond(&stranger, &session, id, r#""result":"forged""#).await;
        assert_eq!(error_code(&forged), "not_found");
    }
    let reader = world.token("read").await.0;
    let mut reader = world.client_as(&reader);
    reader.initialize("2025-11-25").await;
    let forged = respond(&reader, &session, id, r#""result":"forged""#).await;
    assert_eq!(error_code(&forged), "permission_denied");
    let elsewhere = respond(&client, &other_session, id, r#""result":"elsewhere""#).await;
    assert_eq!(error_code(&elsewhere), "not_found");
    let unknown = respond(&client, &session, &json!("x"), r#""result":1"#).await;
    assert_eq!(error_code(&unknown), "not_found");
    structured(&respond(&client, &session, id, r#""result":"true""#).await);
    let second = respond(&client, &session, id, r#""result":"second""#).await;
    assert_eq!(error_code(&second), "not_found");
    assert_eq!(call.end().await.unwrap(), r#""true""#);
}

/// Rule: offering tools subscribes to their calls, whatever the log level; other session events
/// depend on the level.
#[tokio::test]
async fn calls_need_no_level_and_what_sessions_say_goes_by_it() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let session = start(&client, "myapp", tools()).await;
    let (_, text, data) = next_by(&mut stream, "oubliette.session").await;
    assert_eq!((&data["session_id"], data["index"].is_u64()), (&session, true), "{text}");

    let level = json!({"level": "error"});
    assert!(client.ask(1, "logging/setLevel", level).await.json().await["result"].is_object());
    let rest = json!({"session_id": session, "message": "rest"});
    structured(&client.call(2, "session_message", rest).await);
    let id = session.as_str().unwrap().parse().unwrap();
    let is_idle = async || world.broker.session_view(id).unwrap().status.as_str() == "idle";
    wait_for("the agent rests", is_idle).await;
    let call = agent_calls(&world, &session, "myapp_send", "{}");
    loop {
        let message = stream.message().await.unwrap();
        let data = &message["params"]["data"];
        if data["type"] == "caller_tool_request" {
            structured(&respond(&client, &session, &data["request_id"], r#""result":1"#).await);
            break;
        }
        assert_ne!(data["text"], "I rest", "sent in spite of the level: {message}");
    }
    assert_eq!(call.end().await.unwrap(), "1");
}

/// Rule: callers with different names get only their own calls, even in one session and of one
/// principal.
#[tokio::test]
async fn each_of_two_callers_gets_its_own_calls() {
    let world = World::start().await;
    let (ant, bee) = (legacy(&world).await, legacy(&world).await);
    let (mut ants, mut bees) = (news(&ant, None).await, news(&bee, None).await);
    let session = start(&ant, "ant", tools()).await;
    let join = json!({
        "session_id": session, "message": "more", "caller_id": "bee", "caller_tools": tools(),
    });
    structured(&bee.call(1, "session_message", join).await);
    for round in 0..8 {
        let names = if round % 2 == 0 { ["ant", "bee"] } else { ["bee", "ant"] };
        let calls = names.map(|name| {
            agent_calls(&world, &session, &format!("{name}_send"), &format!(r#"{{"to":"{name}"}}"#))
        });
        for (client, stream, name) in [(&ant, &mut ants, "ant"), (&bee, &mut bees, "bee")] {
            let (_, _, data) = next_call(stream).await;
            assert_eq!(
                (&data["caller_id"], &data["arguments"]["to"]),
                (&json!(name), &json!(name))
            );
            let result = format!(r#""result":"{name}""#);
            structured(&respond(client, &session, &data["request_id"], &result).await);
        }
        for (call, name) in calls.into_iter().zip(names) {
            assert_eq!(call.end().await.unwrap(), format!("\"{name}\""));
        }
    }
    drop(bees);
    assert_eq!(agent_is_refused(&world, &session, "bee_send").await.kind(), ErrorKind::Gone);
    let call = agent_calls(&world, &session, "ant_send", "{}");
    let (_, _, data) = next_call(&mut ants).await;
    structured(&respond(&ant, &session, &data["request_id"], r#""result":0"#).await);
    assert_eq!(call.end().await.unwrap(), "0", "the other is still there");
}

/// Rule: a burst larger than what a stream keeps loses no call, and repeats none.
#[tokio::test]
async fn every_call_of_a_burst_is_told_once() {
    const N_CALLS: usize = 60;
    let world = World::start().await;
    let client = legacy(&world).await;
    let session = start(&client, "myapp", tools()).await;
    let calls: Vec<_> = (0..N_CALLS)
        .map(|n| agent_calls(&world, &session, "myapp_send", &format!(r#"{{"n":{n}}}"#)))
        .collect();
    let mut stream = news(&client, None).await;
    let mut told = BTreeMap::new();
    for _ in 0..N_CALLS {
        let (_, _, data) = next_call(&mut stream).await;
        told.insert(data["arguments"]["n"].as_u64().unwrap(), data["request_id"].clone());
    }
    assert_eq!(told.len(), N_CALLS);
    for (call, (n, id)) in calls.into_iter().zip(told) {
        structured(&respond(&client, &session, &id, &format!(r#""result":{n}"#)).await);
        assert_eq!(call.end().await.unwrap(), n.to_string());
    }
}

/// Rule: a caller that cannot hold a stream polls, and is available while it does.
#[tokio::test]
async fn a_caller_without_a_stream_polls() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let session = start(&client, "myapp", tools()).await;
    let poll = json!({"session_id": session, "wait_ms": 20_000});
    let call = agent_calls(&world, &session, "myapp_send", INPUT);
    let polled = client.call(1, "caller_tool_requests", poll.clone()).await;
    let requests = structured(&polled)["requests"].clone();
    assert_eq!(requests.as_array().unwrap().len(), 1, "{polled}");
    assert_eq!(requests[0]["type"], "caller_tool_request");
    let again = client.call(2, "caller_tool_requests", poll).await;
    assert_eq!(structured(&again)["requests"][0]["request_id"], requests[0]["request_id"]);
    structured(&respond(&client, &session, &requests[0]["request_id"], r#""result":1"#).await);
    assert_eq!(call.end().await.unwrap(), "1");
}

/// REQ: REQ-CTR-002 "Caller declares tools at session start", with `session_spawn` and at the top
/// level. Rule: tools that are taken back are not callable any more.
#[tokio::test]
async fn tools_are_offered_at_the_start_changed_and_taken_back() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let project = project(&client).await;
    let spawn =
        json!({"project_id": project, "caller_id": "myapp", "caller_tools": [{"name": "old"}]});
    let spawned = client.call(1, "session_spawn", spawn).await;
    let session = structured(&spawned)["session_id"].clone();
    let call = agent_calls(&world, &session, "myapp_old", "{}");
    let (_, _, data) = next_call(&mut stream).await;
    structured(&respond(&client, &session, &data["request_id"], r#""result":1"#).await);
    assert_eq!(call.end().await.unwrap(), "1");

    let again = json!({
        "session_id": session, "message": "work",
        "context": {"caller_id": "myapp", "caller_tools": [{"name": "new"}]},
    });
    structured(&client.call(2, "session_message", again.clone()).await);
    assert_eq!(agent_is_refused(&world, &session, "myapp_old").await.kind(), ErrorKind::NotFound);
    let call = agent_calls(&world, &session, "myapp_new", "{}");
    let (_, _, data) = next_call(&mut stream).await;
    structured(&respond(&client, &session, &data["request_id"], r#""result":2"#).await);
    assert_eq!(call.end().await.unwrap(), "2");

    let none = json!({
        "session_id": session, "message": "work", "caller_id": "myapp", "caller_tools": [],
    });
    structured(&client.call(3, "session_message", none).await);
    assert_eq!(agent_is_refused(&world, &session, "myapp_new").await.kind(), ErrorKind::NotFound);
    structured(&client.call(4, "session_message", again).await);
    let call = agent_calls(&world, &session, "myapp_new", "{}");
    next_call(&mut stream).await;
    structured(&client.call(5, "session_end", json!({"session_id": session})).await);
    assert_eq!(call.end().await.unwrap_err().kind(), ErrorKind::Gone, "the end of it ends all");
}
