//! Callers whose streams break: neither what they have nor what is over is sent again.

use serde_json::{Value, json};

use crate::agents::{agent_calls, legacy, news, next_by, next_call, respond, start, structured};
use crate::support::World;

fn tools() -> Value {
    json!([{"name": "send"}])
}

/// Rule: a reader that names its last event gets the rest, and no call twice.
#[tokio::test]
async fn a_caller_that_resumes_gets_what_it_has_not_read() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let session = start(&client, "myapp", tools()).await;
    let calls =
        [1, 2].map(|n| agent_calls(&world, &session, "myapp_send", &format!(r#"{{"n":{n}}}"#)));
    let (first_id, _, first) = next_call(&mut stream).await;
    let (second_id, _, second) = next_call(&mut stream).await;

    let mut resumed = news(&client, Some(&first_id)).await;
    let (id, _, again) = next_call(&mut resumed).await;
    assert_eq!((&id, &again["request_id"]), (&second_id, &second["request_id"]));
    // The earlier reader is replaced. Events until then may still be in its stream.
    while let Some(message) = stream.message().await {
        assert_ne!(message["params"]["logger"], "oubliette.caller_tool", "{message}");
    }

    let mut resumed = news(&client, Some(&second_id)).await;
    let third = agent_calls(&world, &session, "myapp_send", r#"{"n":3}"#);
    let (_, _, data) = next_call(&mut resumed).await;
    assert_eq!(data["arguments"]["n"], 3, "what was read is not sent again");
    for (call, id) in calls.into_iter().zip([&first["request_id"], &second["request_id"]]) {
        structured(&respond(&client, &session, id, r#""result":{}"#).await);
        assert_eq!(call.end().await.unwrap(), "{}", "and taking over ends no call");
    }

    let mut resumed = news(&client, Some(&first_id)).await;
    let (_, _, again) = next_call(&mut resumed).await;
    assert_eq!(again["request_id"], data["request_id"], "what is answered is not sent again");
    structured(&respond(&client, &session, &data["request_id"], r#""result":{}"#).await);
    assert_eq!(third.end().await.unwrap(), "{}");
}

/// Rule: calls that failed when their caller left are not run when it comes back.
#[tokio::test]
async fn a_caller_that_left_is_not_told_of_calls_that_have_failed() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let session = start(&client, "myapp", tools()).await;
    let (before, _, _) = next_by(&mut stream, "oubliette.session").await;
    let call = agent_calls(&world, &session, "myapp_send", r#"{"n":1}"#);
    next_call(&mut stream).await;
    drop(stream);
    call.end().await.unwrap_err();
    let mut resumed = news(&client, Some(&before)).await;
    let call = agent_calls(&world, &session, "myapp_send", r#"{"n":2}"#);
    let (_, _, data) = next_call(&mut resumed).await;
    assert_eq!(data["arguments"]["n"], 2);
    structured(&respond(&client, &session, &data["request_id"], r#""result":{}"#).await);
    assert_eq!(call.end().await.unwrap(), "{}");
}

/// Rule: a reader that starts from scratch gets the unanswered calls, under the same ids.
#[tokio::test]
async fn a_caller_that_starts_over_learns_what_still_waits() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let mut stream = news(&client, None).await;
    let session = start(&client, "myapp", tools()).await;
    let call = agent_calls(&world, &session, "myapp_send", "{}");
    let (_, _, data) = next_call(&mut stream).await;
    let mut reopened = news(&client, None).await;
    let (_, _, again) = next_call(&mut reopened).await;
    assert_eq!(again["request_id"], data["request_id"]);
    structured(&respond(&client, &session, &data["request_id"], r#""result":{}"#).await);
    assert_eq!(call.end().await.unwrap(), "{}");
}

/// Rule: events of a session without a reader are delivered to the next reader.
#[tokio::test]
async fn what_a_session_says_is_not_lost_between_two_readers() {
    let world = World::start().await;
    let client = legacy(&world).await;
    let session = start(&client, "myapp", tools()).await;
    let rest = json!({"session_id": session, "message": "rest"});
    structured(&client.call(1, "session_message", rest).await);
    let mut indices = Vec::new();
    let mut stream = news(&client, None).await;
    let mut last;
    loop {
        let (id, _, data) = next_by(&mut stream, "oubliette.session").await;
        indices.push(data["index"].as_u64().unwrap());
        last = id;
        // Every second event is the last one its reader gets.
        if indices.len() % 2 == 0 {
            stream = news(&client, Some(&last)).await;
        }
        if data["status"] == "idle" {
            break;
        }
    }
    let all: Vec<_> = (indices[0]..indices[0] + indices.len() as u64).collect();
    assert_eq!(indices, all);
    assert!(indices.len() >= 4, "{indices:?}");
    drop(last);
}
