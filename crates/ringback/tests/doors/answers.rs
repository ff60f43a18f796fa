//! Which answers are accepted, and that they pass unchanged.

use serde_json::json;

use crate::agent::Door;
use crate::callers::failed;
use crate::support::World;

/// REQ: seed 001 "Tool execution error response"; seed 000 "Tool execution failed".
/// Rule: an error arrives as an error, and a success that has a field `error` as a success.
#[tokio::test]
async fn an_error_stays_an_error_and_a_success_a_success() {
    let world = World::start().await;
    for door in Door::ALL {
        let session = world.open(r#"[{"name":"x"}]"#).await;
        let mut caller = world.caller(session.id);
        let mut agent = world.agent(door, &session).await;
        agent.ask(1, "ant_x", "{}").await;
        let call = caller.next_call().await;
        world.answer(&caller, &call, r#""error":"recipient not found""#).await.unwrap();
        let answer = agent.answer(1).await;
        assert_eq!(failed(&answer), "tool_failed ran", "{door:?}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("recipient not found"), "{door:?}: {text}");
        agent.ask(2, "ant_x", "{}").await;
        let call = caller.next_call().await;
        world.answer(&caller, &call, r#""result":{"error":"x"}"#).await.unwrap();
        let answer = agent.answer(2).await;
        assert!(answer["result"]["isError"] != true, "{door:?}: {answer}");
        assert_eq!(answer["result"]["structuredContent"], json!({ "error": "x" }));
    }
    world.stop().await;
}

/// Rule: payloads pass as the same bytes: null, 2^53 + 1, 20 digits, key order, unknown fields.
#[tokio::test]
async fn payloads_pass_unchanged_both_ways() {
    let world = World::start().await;
    for door in Door::ALL {
        let session = world.open(r#"[{"name":"x"}]"#).await;
        let mut caller = world.caller(session.id);
        let mut agent = world.agent(door, &session).await;
        let payloads = [
            r#"{"n":null}"#,
            r#"{"n":9007199254740993}"#,
            r#"{"z":12345678901234567890,"a":{"n":null,"f":1.0,"e":1e2},"":[],"\u0061b":"\u00e9\n"}"#,
            "{}",
        ];
        for (id, payload) in (1..).zip(payloads) {
            agent.ask(id, "ant_x", payload).await;
            let call = caller.next_call().await;
            assert_eq!(call.arguments.bytes, payload, "{door:?}");
            world.answer(&caller, &call, &format!(r#""result":{payload}"#)).await.unwrap();
            let answer = agent.answer_text(id).await;
            let structured = format!(r#""structuredContent":{payload}"#);
            assert!(answer.contains(&structured), "{door:?}: {answer}");
        }
        agent.ask(20, "ant_x", "{}").await;
        let call = caller.next_call().await;
        world.answer(&caller, &call, r#""result":null"#).await.unwrap();
        let answer = agent.answer(20).await;
        assert_eq!(answer["result"]["content"][0]["text"], "null", "{door:?}: {answer}");
    }
    world.stop().await;
}

/// Rule: an answer from another principal or for another session is not accepted, nor a second one.
#[tokio::test]
async fn only_the_first_answer_of_its_own_caller_counts() {
    let world = World::start().await;
    let (_, stranger) = world.token("admin").await;
    for door in Door::ALL {
        let session = world.open(r#"[{"name":"x"}]"#).await;
        let other = world.open(r#"[{"name":"x"}]"#).await;
        let mut caller = world.caller(session.id);
        let mut agent = world.agent(door, &session).await;
        agent.ask(1, "ant_x", "{}").await;
        let call = caller.next_call().await;
        let answer = |of: &str| {
            let id = &call.request_id;
            format!(r#"{{"session_id":"{of}","request_id":"{id}","result":{{"forged":true}}}}"#)
        };
        let (own, another) = (session.id.to_string(), other.id.to_string());
        let forged = world.call_text(&stranger, "caller_tool_response", &answer(&own)).await;
        assert!(forged.is_err(), "{door:?}");
        let forged = world.call_text(&world.who, "caller_tool_response", &answer(&another)).await;
        assert!(forged.is_err(), "{door:?}");
        world.answer(&caller, &call, r#""result":{"n":1}"#).await.unwrap();
        assert!(world.answer(&caller, &call, r#""result":{"n":2}"#).await.is_err(), "{door:?}");
        let answer = agent.answer(1).await;
        assert_eq!(answer["result"]["structuredContent"], json!({ "n": 1 }), "{door:?}");
    }
    world.stop().await;
}
