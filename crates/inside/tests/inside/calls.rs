//! Calls and their outcomes.

use crate::support::{CONFIG, Daemon, Rig};

/// REQ: seed 001 "REQ-CTR-005: Socket protocol for caller_tool": request and response, byte for
/// byte.
#[tokio::test]
async fn arguments_and_result_pass_as_the_same_bytes() {
    let (mut rig, _listener, mut daemon) = Rig::ready().await;
    let payload =
        r#"{"z":9007199254740993,"a":[12345678901234567890,1e400,-0.0,null],"é":"\u00e9"}"#;
    rig.call(1, payload).await;
    let asked = daemon.hear().await;
    assert!(asked.contains(&format!(r#""tool":"send","arguments":{payload},"caller_id":"ant""#)));
    daemon.say(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{payload}}}"#)).await;
    let answer = rig.hear().await;
    assert!(answer.contains(&format!(r#""structuredContent":{payload}"#)), "{answer}");
    rig.call(2, "{}").await;
    daemon.hear().await;
    daemon.say(r#"{"jsonrpc":"2.0","id":2,"result":null}"#).await;
    assert!(rig.hear().await.contains(r#""text":"null""#));
}

/// REQ: seed 001 "Tool execution error response" and seed 000 "Error Cases".
#[tokio::test]
async fn errors_are_errors_with_what_they_say_to_programs() {
    let (mut rig, _listener, mut daemon) = Rig::ready().await;
    rig.call(1, "{}").await;
    daemon.hear().await;
    let data = r#"{"kind":"timeout","retryable":true,"certainty":"may_have_run","x":1}"#;
    daemon
        .say(&format!(r#"{{"id":1,"error":{{"code":-32000,"message":"too late","data":{data}}}}}"#))
        .await;
    let answer = rig.hear().await;
    assert!(answer.contains(r#""isError":true"#), "{answer}");
    assert!(answer.contains("too late (timeout: it may have been done; try again later)"));
    assert!(answer.contains(&format!(r#""ringback/error":{data}"#)), "{answer}");
}

/// Rule: a slow call never delays another.
#[tokio::test]
async fn fifty_calls_are_answered_in_the_order_of_their_answers() {
    let (mut rig, _listener, mut daemon) = Rig::ready().await;
    for id in 1..=50 {
        rig.call(id, "{}").await;
        daemon.hear().await;
    }
    for id in (1..=50).rev() {
        daemon.say(&format!(r#"{{"id":{id},"result":{id}}}"#)).await;
        let answer = rig.hear().await;
        assert!(answer.contains(&format!(r#""id":{id},"#)), "{answer}");
        assert!(answer.contains(&format!(r#""text":"{id}""#)), "{answer}");
    }
}

/// Rule: cancellation and progress pass through.
#[tokio::test]
async fn cancellation_and_progress_pass_through() {
    let (mut rig, _listener, mut daemon) = Rig::ready().await;
    rig.say(
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ant_send","_meta":{"progressToken":7}}}"#,
    )
    .await;
    daemon.hear().await;
    daemon.say(r#"{"method":"progress","params":{"id":1,"percent":25,"message":"a"}}"#).await;
    let told = rig.hear().await;
    assert!(told.contains(r#""progressToken":7,"progress":25"#), "{told}");
    rig.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#)
        .await;
    assert!(daemon.hear().await.contains(r#""method":"cancel","params":{"id":1}"#));
    daemon.say(r#"{"id":1,"result":"late"}"#).await;
    assert!(rig.ask(r#""id":2,"method":"ping""#).await.contains(r#""id":2"#));
}

/// Rule: lines of text have a limit, and one over it harms no other.
#[tokio::test]
async fn what_is_too_long_is_refused_and_the_rest_goes_on() {
    let (mut rig, _listener, mut daemon) = Rig::ready().await;
    let large = format!(r#"{{"x":"{}"}}"#, "y".repeat(10 << 20));
    rig.call(1, &large).await;
    assert!(daemon.hear().await.contains(&large), "ten megabytes pass");
    daemon.say(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":"{}"}}"#, "z".repeat(17 << 20))).await;
    let answer = rig.hear().await;
    assert!(answer.contains("too_large") && answer.contains(r#""certainty":"ran""#), "{answer}");
    rig.call(2, &format!(r#"{{"x":"{}"}}"#, "y".repeat(17 << 20))).await;
    assert!(rig.hear().await.contains("-32600"));
    rig.say("garbage").await;
    assert!(rig.hear().await.contains("-32700"));
    assert!(rig.ask(r#""id":3,"method":"ping""#).await.contains(r#""id":3"#));
}

/// Rule: answers that are on their way when the agent closes its end still arrive.
#[tokio::test]
async fn the_last_answers_arrive_and_the_program_ends() {
    let (mut rig, listener) = Rig::start(None);
    rig.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    let answering = async {
        let mut daemon = Daemon::accept(&listener).await;
        daemon.say(CONFIG).await;
        assert!(daemon.is_left().await);
    };
    let ((rest, _, status), ()) = tokio::join!(rig.end(), answering);
    assert_eq!(rest.len(), 1);
    assert!(rest[0].contains("ant_send") && status.success());
}
