//! A conversation, line by line.

use super::*;
use crate::Permissions;

fn told(text: &str) -> QueuedMessage {
    QueuedMessage { text: text.to_owned(), attached: Vec::new(), room: 1 << 20, n_aborts: 0 }
}

/// Returns what is written and reported when the agent writes these lines, after a conversation has
/// started and the first message was sent.
fn said(lines: &[&str]) -> (Vec<String>, Vec<String>) {
    let (mut conversation, mut out) = open(Permissions::Ask);
    conversation.prompt(&told("go"), &mut out);
    out = Effects::default();
    for line in lines {
        assert!(conversation.hear(line.as_bytes(), &mut out), "{line}");
    }
    conversation.pause(false, &mut out);
    seen(&mut out)
}

fn open(permissions: Permissions) -> (Conversation, Effects) {
    let mut out = Effects::default();
    let options =
        AcpOptions { cwd: "/w".into(), permissions: permissions.into(), ..AcpOptions::default() };
    let mut conversation = Conversation::begin(options, "p7", &mut out);
    for line in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#,
        r#"{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}"#,
    ] {
        assert!(conversation.hear(line.as_bytes(), &mut out), "{line}");
    }
    assert!(conversation.is_ready());
    (conversation, out)
}

fn seen(out: &mut Effects) -> (Vec<String>, Vec<String>) {
    let written = String::from_utf8(std::mem::take(&mut out.bytes)).unwrap();
    let told = out.events.drain(..).map(|event| event.encode()).collect();
    (written.lines().map(ToOwned::to_owned).collect(), told)
}

fn update(update: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
    )
}

fn chunk(kind: &str, text: &str) -> String {
    update(&format!(r#"{{"sessionUpdate":"{kind}","content":{{"type":"text","text":"{text}"}}}}"#))
}

const END: &str = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":2,"totalTokens":3}}}"#;
const ASK: &str = r#"{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"c","title":"rm"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}]}}"#;

/// REQ: "`mcpServers` of `session/new` carries `inside`".
#[test]
fn a_conversation_begins_with_the_server_of_its_tools() {
    let mut out = Effects::default();
    let server = McpServer {
        name: "ringback".to_owned(),
        command: "/mcp/bin/inside".into(),
        args: vec!["--session-tools".to_owned()],
        env: vec![("RINGBACK_SOCKET".to_owned(), "/mcp/relay.sock".to_owned())],
    };
    let options = AcpOptions { cwd: "/w".into(), servers: vec![server], ..AcpOptions::default() };
    let mut conversation = Conversation::begin(options, "p7", &mut out);
    let (written, _) = seen(&mut out);
    assert!(written[0].contains(r#""method":"initialize","params":{"protocolVersion":1,"#));
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}"#;
    assert!(conversation.hear(answer.as_bytes(), &mut out));
    let (written, _) = seen(&mut out);
    assert_eq!(
        written,
        [concat!(
            r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/w","#,
            r#""mcpServers":[{"name":"ringback","command":"/mcp/bin/inside","#,
            r#""args":["--session-tools"],"#,
            r#""env":[{"name":"RINGBACK_SOCKET","value":"/mcp/relay.sock"}]}]}}"#
        )]
    );
}

/// Rule: chunks of one message are one event, and events keep their order.
#[test]
fn pieces_are_put_together_until_something_else_happens() {
    let (_, told) = said(&[
        &chunk("agent_thought_chunk", "a"),
        &chunk("agent_thought_chunk", "b"),
        &chunk("agent_message_chunk", "c"),
        &chunk("agent_message_chunk", "d"),
        &update(r#"{"sessionUpdate":"plan","entries":[{"content":"e","status":"pending"}]}"#),
        &chunk("agent_message_chunk", "f"),
        END,
    ]);
    assert_eq!(
        told,
        [
            r#"{"type":"thought","text":"ab"}"#,
            r#"{"type":"message","text":"cd"}"#,
            r#"{"type":"plan","entries":[{"text":"e","status":"pending"}]}"#,
            r#"{"type":"message","text":"f"}"#,
            r#"{"type":"completion","stop":"end_turn","usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}"#,
        ]
    );
}

/// Rule: a call is reported once, when its arguments are known, and so is its end.
#[test]
fn a_call_is_told_with_its_arguments_and_its_end() {
    let (_, told) = said(&[
        &update(
            r#"{"sessionUpdate":"tool_call","toolCallId":"1","title":"ant_x","status":"pending","rawInput":{}}"#,
        ),
        &update(
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress","title":"Sends","rawInput":{"n":12345678901234567890123}}"#,
        ),
        &update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress"}"#),
        &update(
            r#"{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed","rawOutput":"no"}"#,
        ),
        &update(r#"{"sessionUpdate":"tool_call","toolCallId":"2","title":"bare"}"#),
        END,
    ]);
    assert_eq!(
        told[..3],
        [
            r#"{"type":"tool_call","id":"1","tool":"ant_x","arguments":{"n":12345678901234567890123}}"#,
            r#"{"type":"tool_result","id":"1","tool":"ant_x","is_error":true,"result":"no"}"#,
            r#"{"type":"tool_call","id":"2","tool":"bare","arguments":null}"#,
        ]
    );
    assert_eq!(told.len(), 4);
}

/// Rule: calls that never end do not accumulate.
#[test]
fn calls_that_never_end_are_bounded() {
    let lines: Vec<_> = (0..1000)
        .map(|n| {
            let call = format!(r#"{{"sessionUpdate":"tool_call","toolCallId":"{n}","title":"t"}}"#);
            update(&call)
        })
        .collect();
    let lines: Vec<_> = lines.iter().map(String::as_str).collect();
    let (_, told) = said(&lines);
    assert_eq!(told.len(), 1000 - 256);
}

/// Rule: updates of another conversation, or of an unknown kind, are ignored.
#[test]
fn what_is_not_known_is_passed_over() {
    let (written, told) = said(&[
        &update(r#"{"sessionUpdate":"of_tomorrow","x":1}"#),
        &update(r#"{"sessionUpdate":"usage_update","used":1,"size":2}"#),
        &chunk("agent_message_chunk", "x").replace(r#""sessionId":"s""#, r#""sessionId":"o""#),
        r#"{"jsonrpc":"2.0","method":"of/tomorrow"}"#,
    ]);
    assert!(written.is_empty() && told.is_empty(), "{written:?} {told:?}");
    let (written, _) = said(&[
        r#"{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{"path":"/etc/passwd"}}"#,
    ]);
    assert!(written[0].starts_with(r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32601,"#));
}

/// REQ: "Permission requests go to the caller ... or follow a per-project policy".
#[test]
fn a_question_waits_for_its_answer_and_takes_no_other() {
    let (mut conversation, mut out) = open(Permissions::Ask);
    conversation.prompt(&told("go"), &mut out);
    out = Effects::default();
    conversation.hear(ASK.as_bytes(), &mut out);
    let (written, told) = seen(&mut out);
    assert!(written.is_empty());
    assert_eq!(
        told,
        [concat!(
            r#"{"type":"permission_request","id":"p7-1","call":"c","tool":"rm","options":["#,
            r#"{"id":"y","name":"Yes","kind":"allow_once"},"#,
            r#"{"id":"n","name":"No","kind":"reject_once"}]}"#
        )]
    );
    for (id, option) in [("p7-2", "y"), ("p7-1", "always")] {
        conversation.answer(id, Some(option), &mut out);
        let (written, told) = seen(&mut out);
        assert!(written.is_empty() && told[0].contains(r#""type":"log""#), "{told:?}");
    }
    conversation.answer("p7-1", Some("y"), &mut out);
    let (written, told) = seen(&mut out);
    assert_eq!(
        written,
        [
            r#"{"jsonrpc":"2.0","id":"q","result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#
        ]
    );
    assert_eq!(told, [r#"{"type":"permission_answer","id":"p7-1","option":"y","by":"caller"}"#]);
}

#[test]
fn a_policy_answers_by_itself() {
    for (permissions, option) in [(Permissions::Allow, "y"), (Permissions::Deny, "n")] {
        let (mut conversation, mut out) = open(permissions);
        conversation.prompt(&told("go"), &mut out);
        out = Effects::default();
        conversation.hear(ASK.as_bytes(), &mut out);
        let (written, told) = seen(&mut out);
        assert!(written[0].contains(&format!(r#""optionId":"{option}""#)), "{written:?}");
        assert!(told[1].contains(r#""by":"policy""#), "{told:?}");
    }
}

/// Rule: an abort cancels every open request, and the turn ends as cancelled.
#[test]
fn an_abort_takes_questions_back() {
    let (mut conversation, mut out) = open(Permissions::Ask);
    conversation.abort(&mut out);
    conversation.prompt(&told("go"), &mut out);
    conversation.hear(ASK.as_bytes(), &mut out);
    out = Effects::default();
    conversation.abort(&mut out);
    conversation.abort(&mut out);
    let (written, _) = seen(&mut out);
    assert_eq!(
        written,
        [
            r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#,
            r#"{"jsonrpc":"2.0","id":"q","result":{"outcome":{"outcome":"cancelled"}}}"#,
        ]
    );
    assert_eq!(conversation.wait(), Some(Wait::Aborting));
    // Further requests are cancelled immediately.
    conversation.hear(ASK.as_bytes(), &mut out);
    assert_eq!(seen(&mut out).0.len(), 1);
    let error = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"aborted"}}"#;
    conversation.hear(error.as_bytes(), &mut out);
    assert_eq!(seen(&mut out).1, [r#"{"type":"completion","stop":"cancelled","usage":null}"#]);
    assert!(conversation.is_ready());
}

#[test]
fn what_goes_wrong_is_told_in_the_words_of_the_agent() {
    let (_, told) = said(&[
        r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"log in first","data":{"a":1}}}"#,
    ]);
    assert_eq!(told, [r#"{"type":"error","text":"log in first ({\"a\":1})"}"#]);
}

/// Rule: an answer without a request is garbage.
#[test]
fn an_answer_to_nothing_is_garbage() {
    let (mut conversation, mut out) = open(Permissions::Ask);
    for line in ["", "hello", "[]", "{}", r#"{"jsonrpc":"2.0","id":99,"result":{}}"#, END] {
        assert!(!conversation.hear(line.as_bytes(), &mut out), "{line}");
    }
}

/// Rule: an agent with an unusable protocol is ended.
#[test]
fn another_version_is_given_up() {
    for answer in [
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2}}"#,
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
    ] {
        let mut out = Effects::default();
        let mut conversation = Conversation::begin(AcpOptions::default(), "p7", &mut out);
        assert!(conversation.hear(answer.as_bytes(), &mut out));
        assert!(out.is_over && out.events[0].encode().contains("error"), "{answer}");
        assert_eq!(conversation.wait(), None);
    }
}
