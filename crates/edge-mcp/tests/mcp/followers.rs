//! The modern era: a call that follows a session carries its events, and ends when the agent is
//! idle.

use ringback_proto::{Certainty, ErrorKind};
use serde_json::{Value, json};

use crate::agents::{
    agent_calls, agent_is_refused, error_code, legacy, next_by, next_call, project, respond,
    structured,
};
use crate::support::{Client, OpenAnswer, World};

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const INPUT: &str = r#"{"zeta":9007199254740993,"alpha":null,"huge":12345678901234567890}"#;

async fn follow(client: &Client, tool: &str, arguments: Value) -> OpenAnswer {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {LOG_LEVEL: "info"}});
    let answered = client.modern(json!(7), "tools/call", params).await;
    assert!(answered.is_stream(), "{}", answered.status);
    answered
}

fn first_message(project: &Value) -> Value {
    json!({
        "project_id": project, "message": "work", "follow": true,
        "context": {"caller_id": "myapp", "caller_tools": [{"name": "send"}]},
    })
}

/// The session that a stream is about.
async fn session_of(stream: &mut OpenAnswer) -> Value {
    next_by(stream, "oubliette.session").await.2["session_id"].clone()
}

/// REQ: REQ-CTR-001 and REQ-CTR-003 in the modern era: calls come on the stream of the message.
#[tokio::test]
async fn a_message_that_follows_brings_calls_and_its_answer_when_the_agent_rests() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let project = project(&client).await;
    let mut stream = follow(&client, "session_message", first_message(&project)).await;
    let session = session_of(&mut stream).await;
    let call = agent_calls(&world, &session, "myapp_send", INPUT);
    let (id, text, data) = next_call(&mut stream).await;
    assert!(id.is_empty(), "nothing is resumed in this era");
    assert!(text.contains(&format!(r#""arguments":{INPUT}"#)), "{text}");
    structured(&respond(&client, &session, &data["request_id"], r#""result":null"#).await);
    assert_eq!(call.end().await.unwrap(), "null");

    let rest = json!({"session_id": session, "message": "rest"});
    structured(&client.call(1, "session_message", rest).await);
    let mut said = Vec::new();
    let answer = loop {
        let message = stream.message().await.unwrap();
        if message.get("result").is_some() {
            break message;
        }
        said.push(message["params"]["data"].clone());
    };
    assert!(said.iter().any(|event| event["text"] == "I rest"), "{said:?}");
    assert_eq!(said.last().unwrap()["status"], "idle", "{said:?}");
    assert_eq!(answer["id"], 7);
    assert_eq!(structured(&answer)["session_id"], session);
    assert!(stream.message().await.is_none());
    assert_eq!(agent_is_refused(&world, &session, "myapp_send").await.kind(), ErrorKind::Gone);
}

/// Rule: the caller is available as long as its stream is open.
#[tokio::test]
async fn a_follower_that_closes_its_stream_is_gone_at_once() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let project = project(&client).await;
    let mut stream = follow(&client, "session_message", first_message(&project)).await;
    let session = session_of(&mut stream).await;
    let call = agent_calls(&world, &session, "myapp_send", "{}");
    next_call(&mut stream).await;
    drop(stream);
    let error = call.end().await.unwrap_err();
    assert_eq!((error.kind(), error.certainty()), (ErrorKind::Gone, Certainty::MayHaveRun));
}

/// Rule: `session_events` follows too, from the requested index, and answers with the final state.
#[tokio::test]
async fn events_are_followed_from_an_index_until_the_session_ends() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let project = project(&client).await;
    let mut first = first_message(&project);
    first["follow"] = json!(false);
    let told = client.call(1, "session_message", first).await;
    let session = structured(&told)["session_id"].clone();
    let events = json!({"session_id": session, "since_index": 0, "follow": true});
    let mut stream = follow(&client, "session_events", events.clone()).await;
    let (_, _, event) = next_by(&mut stream, "oubliette.session").await;
    assert_eq!(event["index"], 1);
    let call = agent_calls(&world, &session, "myapp_send", "{}");
    let (_, _, data) = next_call(&mut stream).await;
    structured(&respond(&client, &session, &data["request_id"], r#""result":3"#).await);
    assert_eq!(call.end().await.unwrap(), "3");

    structured(&client.call(2, "session_end", json!({"session_id": session})).await);
    let answer = stream.last().await;
    let page = structured(&answer);
    assert_eq!((&page["status"], &page["events"][0]["index"]), (&json!("ended"), &json!(1)));

    let over = follow(&client, "session_events", events).await.last().await;
    assert_eq!(structured(&over)["status"], "ended", "what is over needs no waiting");
}

/// Rule: no caller waits for calls that could not be delivered.
#[tokio::test]
async fn following_without_a_way_to_be_told_is_refused_before_anything_is_done() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let project = project(&client).await;
    for meta in [json!({}), json!({LOG_LEVEL: "error"})] {
        let params = json!({
            "name": "session_message", "arguments": first_message(&project), "_meta": meta,
        });
        let answer = client.modern(json!(1), "tools/call", params).await.last().await;
        assert_eq!(error_code(&answer), "invalid_params");
        assert!(answer.to_string().contains("nothing was done"), "{answer}");
    }
    let listed = client.call(2, "session_list", json!({})).await;
    assert_eq!(structured(&listed)["sessions"], json!([]));
}

/// Rule: following ends with the daemon, with its answer.
#[tokio::test]
async fn a_follower_is_answered_when_the_edge_stops() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let project = project(&client).await;
    let mut stream = follow(&client, "session_message", first_message(&project)).await;
    let session = session_of(&mut stream).await;
    world.stopping().cancel();
    assert_eq!(structured(&stream.last().await)["session_id"], session);
}
