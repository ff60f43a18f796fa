//! Permission requests of agents, as forms for clients of both eras.

use serde_json::{Value, json};

use crate::agents::{error_code, legacy, news, next_by, project, structured};
use crate::support::{Client, OpenAnswer, World};

const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A client with an MCP session and support for forms.
async fn with_forms(world: &World, version: &str) -> Client {
    let mut client = world.client();
    client.initialize_with(version, json!({"elicitation": {}})).await;
    client
}

fn message(project: &Value) -> Value {
    json!({"project_id": project, "agent": "asker", "message": "go on"})
}

async fn begin(client: &Client) -> Value {
    let project = project(client).await;
    let told = client.call(1, "session_message", message(&project)).await;
    structured(&told)["session_id"].clone()
}

/// The next message of a stream with this method.
async fn next_of(stream: &mut OpenAnswer, method: &str) -> Value {
    loop {
        let message = stream.message().await.expect("the stream goes on");
        if message["method"] == method {
            return message;
        }
    }
}

async fn asked(stream: &mut OpenAnswer) -> Value {
    next_of(stream, "elicitation/create").await
}

/// The agent's next message.
async fn said(stream: &mut OpenAnswer) -> String {
    loop {
        let (_, _, event) = next_by(stream, "oubliette.session").await;
        if event["role"] == "assistant" {
            return event["text"].as_str().unwrap().to_owned();
        }
    }
}

async fn reply(client: &Client, id: &Value, result: Value) {
    let reply = json!({"jsonrpc": "2.0", "id": id, "result": result});
    assert_eq!(client.post(&reply).await.status, 202);
}

fn accepted(answer: &str) -> Value {
    json!({"action": "accept", "content": {"answer": answer}})
}

/// REQ: "Permission requests go to the caller as elicitation": accepting answers, declining says
/// no, cancelling takes the question back.
#[tokio::test]
async fn a_client_with_forms_is_asked_and_its_answer_counts() {
    let world = World::start().await;
    for (version, result, expected) in [
        ("2025-06-18", accepted("yes"), "answered yes"),
        ("2025-11-25", accepted("no"), "answered no"),
        ("2025-11-25", json!({"action": "decline"}), "answered no"),
        ("2025-06-18", json!({"action": "cancel"}), "answered nothing"),
    ] {
        let client = with_forms(&world, version).await;
        let mut stream = news(&client, None).await;
        begin(&client).await;
        let question = asked(&mut stream).await;
        let params = &question["params"];
        assert!(params["message"].as_str().unwrap().contains("rm -rf"), "{question}");
        let field = &params["requestedSchema"]["properties"]["answer"];
        if version == "2025-06-18" {
            assert_eq!(field["enum"], json!(["yes", "no"]), "{question}");
        } else {
            assert_eq!(field["oneOf"][0], json!({"const": "yes", "title": "Yes, once"}));
        }
        reply(&client, &question["id"], result).await;
        assert_eq!(said(&mut stream).await, expected);
    }
}

/// Rule: only a client that declared forms is asked; others rely on events.
#[tokio::test]
async fn a_client_without_forms_is_told_by_events_alone() {
    let world = World::start().await;
    for capabilities in [json!({}), json!({"elicitation": {"url": {}}})] {
        let mut client = world.client();
        client.initialize_with("2025-11-25", capabilities).await;
        let mut stream = news(&client, None).await;
        let session = begin(&client).await;
        let event = loop {
            let told = stream.message().await.unwrap();
            assert_eq!(told["method"], "notifications/message", "{told}");
            if told["params"]["data"]["type"] == "permission_request" {
                break told["params"]["data"].clone();
            }
        };
        let answer = json!({"request_id": event["request_id"], "option": "yes"});
        let answer = json!({"session_id": session, "answer": answer});
        structured(&client.call(2, "session_message", answer).await);
        assert_eq!(said(&mut stream).await, "answered yes");
    }
}

/// Rule: the first answer counts, however it arrives, and every other client that was asked is
/// notified.
#[tokio::test]
async fn the_first_answer_counts_and_the_others_are_told() {
    let world = World::start().await;
    let (one, two) =
        (with_forms(&world, "2025-11-25").await, with_forms(&world, "2025-06-18").await);
    let (mut first, mut second) = (news(&one, None).await, news(&two, None).await);
    let session = begin(&one).await;
    let heard = json!({"session_id": session, "message": "and then"});
    structured(&two.call(2, "session_message", heard).await);
    let question = asked(&mut first).await;
    // The other client follows the session from now on, and reads events from its message.
    let answer = json!({"session_id": session, "answer": {"request_id": "p0-0", "option": "yes"}});
    assert_eq!(error_code(&two.call(3, "session_message", answer).await), "conflict");
    reply(&one, &question["id"], accepted("yes")).await;
    assert_eq!(said(&mut first).await, "answered yes");

    // The second message asks again, and both are asked.
    let again = asked(&mut first).await;
    // It may have seen the first question as well.
    while asked(&mut second).await["id"] != again["id"] {}
    reply(&two, &again["id"], json!({"action": "decline"})).await;
    assert_eq!(said(&mut second).await, "answered no");
    let cancelled = next_of(&mut first, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], again["id"]);
    reply(&one, &again["id"], accepted("yes")).await;
}

/// Rule: an answer cannot be forged: another token's does not count, and leaves the question open.
/// So do a result without an answer and a client that goes away; the next reader is asked again.
#[tokio::test]
async fn a_question_stays_open_until_somebody_who_may_has_answered() {
    let world = World::start().await;
    let client = with_forms(&world, "2025-11-25").await;
    let mut stream = news(&client, None).await;
    let session = begin(&client).await;
    let question = asked(&mut stream).await;
    let mut stranger = world.client_as(&world.token("write").await.0);
    stranger.initialize_with("2025-11-25", json!({"elicitation": {}})).await;
    reply(&stranger, &question["id"], accepted("yes")).await;
    drop(stream);
    let mut stream = news(&client, None).await;
    let again = asked(&mut stream).await;
    assert_eq!(again, question, "the same question, under the same id");
    let failed =
        json!({"jsonrpc": "2.0", "id": again["id"], "error": {"code": -1, "message": "no"}});
    assert_eq!(client.post(&failed).await.status, 202);
    let id = question["id"].as_str().unwrap().split_once('/').unwrap().1;
    let answer = json!({"session_id": session, "answer": {"request_id": id, "option": "yes"}});
    structured(&client.call(2, "session_message", answer).await);
    assert_eq!(said(&mut stream).await, "answered yes");
}

/// Rule: a question ends with its session, and the client that was asked is notified.
#[tokio::test]
async fn a_question_ends_with_its_session() {
    let world = World::start().await;
    let client = with_forms(&world, "2025-11-25").await;
    let mut stream = news(&client, None).await;
    let session = begin(&client).await;
    let question = asked(&mut stream).await;
    structured(&client.call(2, "session_end", json!({"session_id": session})).await);
    let cancelled = next_of(&mut stream, "notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], question["id"]);
}

/// A modern call that follows, of a client with support for forms.
async fn follow(client: &Client, arguments: &Value, more: Value) -> OpenAnswer {
    let mut params = json!({
        "name": "session_message", "arguments": arguments,
        "_meta": {LOG_LEVEL: "info", CAPABILITIES: {"elicitation": {"form": {}}}},
    });
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    client.modern(json!(7), "tools/call", params).await
}

fn to_follow(project: &Value) -> Value {
    let mut message = message(project);
    message["follow"] = json!(true);
    message
}

/// REQ: the same in the modern era: the call is answered with the question, and continues with the
/// answer.
#[tokio::test]
async fn a_modern_call_is_answered_with_the_question_and_goes_on_with_the_answer() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let arguments = to_follow(&project(&client).await);
    let required = follow(&client, &arguments, json!({})).await.last().await;
    let result = &required["result"];
    assert_eq!(result["resultType"], "input_required", "{required}");
    let (key, request) = result["inputRequests"].as_object().unwrap().iter().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    assert!(request["params"]["message"].as_str().unwrap().contains("rm -rf"), "{required}");

    // Without an answer the question is repeated, under another name.
    let state = json!({"requestState": result["requestState"]});
    let again = follow(&client, &arguments, state.clone()).await.last().await;
    assert_eq!(again["result"]["inputRequests"], result["inputRequests"]);
    let used = follow(&client, &arguments, state).await.last().await;
    assert_eq!(used["error"]["code"], -32602, "{used}");

    // No other client can continue it.
    let state = &again["result"]["requestState"];
    let answer = json!({"requestState": state, "inputResponses": {key: accepted("yes")}});
    let stranger = world.client_as(&world.token("admin").await.0);
    let refused = follow(&stranger, &arguments, answer.clone()).await.last().await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");

    let mut stream = follow(&client, &arguments, answer).await;
    assert_eq!(said(&mut stream).await, "answered yes");
    let end = stream.last().await;
    assert_eq!((&end["id"], &end["result"]["resultType"]), (&json!(7), &json!("complete")));
    let session = structured(&end)["session_id"].clone();
    let page = client.call(2, "session_events", json!({"session_id": session})).await;
    let events = structured(&page)["events"].as_array().unwrap().clone();
    let told = events.iter().filter(|event| event["role"] == "user");
    assert_eq!(told.count(), 1, "the message was said once: {events:?}");
}

/// Rule: a modern client without forms follows as before.
#[tokio::test]
async fn a_modern_client_without_forms_is_told_by_events_alone() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let arguments = to_follow(&project(&client).await);
    let meta = json!({"_meta": {LOG_LEVEL: "info"}});
    let mut stream = follow(&client, &arguments, meta).await;
    let (session, id) = loop {
        let (_, _, event) = next_by(&mut stream, "oubliette.session").await;
        if event["type"] == "permission_request" {
            break (event["session_id"].clone(), event["request_id"].clone());
        }
    };
    let answer = json!({"session_id": session, "answer": {"request_id": id, "option": "no"}});
    structured(&client.call(2, "session_message", answer).await);
    assert_eq!(said(&mut stream).await, "answered no");
    assert_eq!(stream.last().await["result"]["resultType"], "complete");
}
