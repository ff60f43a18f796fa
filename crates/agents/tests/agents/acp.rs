//! Agents with the Agent Client Protocol: the scripted one, and hostile ones.

use std::path::Path;
use std::time::Duration;

use ringback_agents::{
    AcpOptions, AgentEvent, AgentHandle, Driver, McpServer, MessageAttachment, Permissions,
    Protocol,
};
use ringback_testkit::{soon, wait_for};

use crate::scripted::SERVER;
use crate::support::{ended, spec, until};

const COMPLETION: &str = r#""type":"completion""#;
const EXITED: &str = r#""type":"agent_exited""#;

/// Starts the scripted agent in a directory, with a server of two tools.
fn scripted(cwd: &Path, resume: Option<String>, permissions: Permissions) -> (Driver, AgentHandle) {
    let server = McpServer {
        name: "tools".to_owned(),
        command: "/bin/sh".into(),
        args: vec!["-c".to_owned(), SERVER.to_owned()],
        env: Vec::new(),
    };
    let mut spec = spec(env!("CARGO_BIN_EXE_ringback-scripted-agent"), &["--acp"]);
    spec.workspace = cwd.to_owned();
    spec.home = cwd.to_owned();
    let (cwd, permissions) = (cwd.to_owned(), permissions.into());
    let options = AcpOptions { cwd, servers: vec![server], resume, permissions };
    Driver::start(spec, Protocol::Acp(options), Vec::new()).unwrap()
}

/// REQ: "Attachments arrive as files in the workspace or content blocks": an agent that takes them is
/// shown what is in them.
#[tokio::test]
async fn what_comes_with_a_message_is_shown_to_an_agent_that_takes_it() {
    let directory = tempfile::tempdir().unwrap();
    let (mut driver, handle) = scripted(directory.path(), None, Permissions::Ask);
    let attached = |name: &str, mime: Option<&str>, data: &'static [u8]| MessageAttachment {
        name: name.to_owned(),
        mime_type: mime.map(ToOwned::to_owned),
        size: data.len(),
        data: Some(data.into()),
    };
    let files = vec![
        attached("pixel.png", Some("image/png"), b"\x89PNG"),
        attached("tune.wav", Some("audio/wav"), b"RIFF"),
        attached("notes.txt", Some("text/plain"), b"remember"),
        attached("data.bin", None, b"\0\xff"),
    ];
    handle.send_with(r#"{"attached":{}}"#, files).unwrap();
    let told = until(&mut driver, "completion").await.join("\n");
    for part in ["image/png", "iVBORw==", "audio/wav", "remember", "resource_link", "data.bin"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let many = vec![attached("big.txt", None, &[b'x'; 2 << 20])];
    handle.send_with(r#"{"attached":{}}"#, many).unwrap();
    let told = until(&mut driver, "completion").await.join("\n");
    assert!(told.contains("resource_link") && told.contains("2097152"), "{}", told.len());
}

/// Starts a shell as an agent of the protocol.
fn shell(script: &str, opening: Duration, aborting: Duration) -> (Driver, AgentHandle) {
    let mut spec = spec("/bin/sh", &["-c", script]);
    (spec.limits.opening, spec.limits.aborting) = (opening, aborting);
    let options = AcpOptions { cwd: "/".into(), ..AcpOptions::default() };
    Driver::start(spec, Protocol::Acp(options), Vec::new()).unwrap()
}

const LONG: Duration = Duration::from_secs(60);
/// A shell that has started a conversation when the rest of its script runs.
const HANDSHAKE: &str = r#"
read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
read -r line; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
"#;

fn assert_has(lines: &[String], parts: &[&str]) {
    let mut lines_left = lines.iter();
    for part in parts {
        assert!(lines_left.any(|line| line.contains(part)), "{part} in {lines:#?}");
    }
}

/// REQ: "One ACP agent is driven through two turns, a permission request, an abort and a resume."
#[tokio::test]
async fn an_agent_is_driven_through_turns_questions_an_abort_and_a_resume() {
    let directory = tempfile::tempdir().unwrap();
    let (mut driver, handle) = scripted(directory.path(), None, Permissions::Ask);

    handle
        .send(
            r#"{"think":"hm"}
{"plan":["one"]}
{"call":{"tool":"echo","arguments":{"n":12345678901234567890}}}
{"say":"first"}"#,
        )
        .unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert_has(
        &told,
        &[
            r#""type":"conversation""#,
            r#"{"type":"thought","text":"hm"}"#,
            r#""type":"plan""#,
            r#""type":"tool_call","id":"1","tool":"echo","arguments":{"n":12345678901234567890}"#,
            r#""type":"tool_result","id":"1","tool":"echo","is_error":false"#,
            r#"{"type":"message","text":"first"}"#,
            r#"{"type":"completion","stop":"end_turn","usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}"#,
        ],
    );
    let conversation = conversation(&told);

    handle.send("{\"ask\":{\"tool\":\"rm\"}}\n{\"print\":{}}").unwrap();
    let asked = until(&mut driver, "permission_request").await;
    let question: serde_json::Value = serde_json::from_str(asked.last().unwrap()).unwrap();
    assert_eq!(question["tool"], "rm");
    handle.answer(question["id"].as_str().unwrap(), Some("once".to_owned())).unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert_has(&told, &[r#""by":"caller""#, r#""text":"\"once\"""#]);

    handle.send("{\"say\":\"waiting\"}\n{\"sleep_ms\":1000000}").unwrap();
    until(&mut driver, "waiting").await;
    handle.send("never seen").unwrap();
    handle.abort().unwrap();
    handle.send("said after the abort").unwrap();
    let mut told = until(&mut driver, r#""stop":"cancelled""#).await;
    told.extend(until(&mut driver, r#""stop":"cancelled""#).await);
    told.extend(until(&mut driver, r#""stop":"end_turn""#).await);
    assert!(!told.concat().contains("never seen"), "{told:#?}");
    assert_has(&told, &["said after the abort"]);

    handle.terminate(LONG);
    until(&mut driver, EXITED).await;
    assert!(soon(driver.next()).await.is_none());

    let (mut driver, handle) = scripted(directory.path(), Some(conversation), Permissions::Ask);
    handle.send(r#"{"recall":{}}"#).unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert_has(&told, &[r#""is_resumed":true"#, "waiting"]);
    // The history is not reported again.
    let n_said = told.iter().filter(|line| line.contains(r#""type":"message""#)).count();
    assert_eq!(n_said, 1, "{told:#?}");
}

fn conversation(told: &[String]) -> String {
    let line = told.iter().find(|line| line.contains(r#""type":"conversation""#)).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    line["id"].as_str().unwrap().to_owned()
}

/// Rule: an abort reaches an agent in the middle of a turn, and the conversation goes on.
#[tokio::test]
async fn an_abort_ends_the_turn_and_not_the_conversation() {
    let directory = tempfile::tempdir().unwrap();
    let (mut driver, handle) = scripted(directory.path(), None, Permissions::Ask);
    handle.send("{\"ask\":{\"tool\":\"rm\"}}\n{\"sleep_ms\":1000000}").unwrap();
    until(&mut driver, "permission_request").await;
    handle.abort().unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert_has(&told, &[r#""option":null,"by":"abort""#, r#""stop":"cancelled""#]);
    handle.send("again").unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert_has(&told, &[r#"{"type":"message","text":"again"}"#, r#""stop":"end_turn""#]);
}

/// Rule: a policy answers without the caller.
#[tokio::test]
async fn a_policy_allows_and_denies() {
    let directory = tempfile::tempdir().unwrap();
    for (permissions, answer) in [(Permissions::Allow, "once"), (Permissions::Deny, "no")] {
        let (mut driver, handle) = scripted(directory.path(), None, permissions);
        handle.send("{\"ask\":{\"tool\":\"rm\"}}\n{\"print\":{}}").unwrap();
        let told = until(&mut driver, COMPLETION).await;
        let said = format!(r#""text":"\"{answer}\"""#);
        assert_has(&told, &["permission_request", r#""by":"policy""#, &said]);
    }
}

/// Rule: if a conversation cannot be resumed, a new one starts, and that is reported.
#[tokio::test]
async fn a_conversation_that_is_gone_is_started_again() {
    let directory = tempfile::tempdir().unwrap();
    let gone = Some("gone".to_owned());
    let (mut driver, handle) = scripted(directory.path(), gone, Permissions::Ask);
    handle.send("hello").unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert_has(&told, &["unknown conversation", r#""is_resumed":false"#, "hello"]);
}

/// Rule: garbage is reported and stops nothing, even in the middle of a turn.
#[tokio::test]
async fn garbage_between_lines_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let (mut driver, handle) = scripted(directory.path(), None, Permissions::Ask);
    handle.send("{\"garbage\":{\"text\":\"boo\",\"times\":3}}\n{\"say\":\"fine\"}").unwrap();
    let told = until(&mut driver, COMPLETION).await;
    assert_has(&told, &[r#""sample":"boo""#]);
    assert_has(&told, &["fine"]);
}

/// Rule: an agent that stops in the middle of a line, or never writes anything, is ended in time.
#[tokio::test]
async fn an_agent_that_stops_mid_line_is_given_up() {
    for script in ["printf '{\"jsonrpc\":\"2.0\",\"id\":1,'; exec sleep 1000", "exec sleep 1000"] {
        let (mut driver, handle) = shell(script, Duration::from_millis(100), LONG);
        handle.send("hello").unwrap();
        let told = until(&mut driver, EXITED).await;
        assert_has(&told, &["did not open a conversation", EXITED]);
        assert_eq!(told.iter().filter(|line| line.contains(EXITED)).count(), 1);
    }
}

/// Rule: an agent that does not stop when asked to is ended.
#[tokio::test]
async fn an_agent_that_does_not_stop_is_ended() {
    let script = format!("{HANDSHAKE} exec sleep 1000");
    let (mut driver, handle) = shell(&script, LONG, Duration::from_millis(100));
    until(&mut driver, "conversation").await;
    handle.send("hello").unwrap();
    let (mut is_told, pid) = (false, handle.pid().unwrap());
    // The message has to be queued before it can be taken back.
    let told = soon(async {
        loop {
            tokio::select! {
                biased;
                event = driver.next() => break event,
                () = tokio::task::yield_now(), if !is_told => {
                    is_told = true;
                    handle.abort().unwrap();
                }
            }
        }
    })
    .await;
    assert!(
        matches!(told, Some(AgentEvent::Error { .. } | AgentEvent::Completion { .. })),
        "{told:?}"
    );
    handle.terminate(LONG);
    until(&mut driver, EXITED).await;
    ended(&pid.to_string()).await;
}

/// Rule: a flood of unexpected requests is not stored; the agent is slowed down, not its owner.
#[tokio::test]
async fn a_flood_of_requests_is_bounded_and_the_end_comes() {
    let flood = r#"yes '{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{}}'"#;
    let over = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"over"}}}}"#;
    // It reads its answers, so its flood has an end, and nothing is reported before that.
    let script = format!(
        "{HANDSHAKE} read -r line; ({flood} | head -n 20000; echo '{over}') & exec cat >/dev/null"
    );
    let (mut driver, handle) = shell(&script, LONG, LONG);
    until(&mut driver, "conversation").await;
    handle.send("go").unwrap();
    let told = until(&mut driver, "over").await;
    assert_eq!(told.len(), 1, "{told:?}");
    handle.terminate(LONG);
    until(&mut driver, EXITED).await;

    // It reads nothing: nothing accumulates, and it is ended all the same.
    let dir = tempfile::tempdir().unwrap();
    let flooded = dir.path().join("flooded");
    let script =
        format!("{HANDSHAKE} {flood} | head -n 300; touch {}; exec {flood}", flooded.display());
    let (mut driver, handle) = shell(&script, LONG, LONG);
    until(&mut driver, "conversation").await;
    tokio::select! {
        told = driver.next() => panic!("{told:?}"),
        () = wait_for("it floods", async || flooded.exists()) => {}
    }
    handle.terminate(LONG);
    until(&mut driver, EXITED).await;
}

/// Rule: a flood of updates becomes a bounded number of events, and the end still comes.
#[tokio::test]
async fn a_flood_of_updates_is_put_together() {
    let update = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}"#;
    let (mut driver, handle) = shell(
        &format!("{HANDSHAKE} read -r line; yes '{update}' | head -n 100000; exit 0"),
        LONG,
        LONG,
    );
    handle.send("go").unwrap();
    let (mut n_events, mut n_chars) = (0, 0);
    while let Some(event) = soon(driver.next()).await {
        n_events += 1;
        if let AgentEvent::Message { text } = event {
            n_chars += text.len();
        }
    }
    assert_eq!(n_chars, 100_000);
    assert!(n_events < 100, "{n_events}");
}

/// Rule: the end comes whatever the agent was doing, exactly once.
#[tokio::test]
async fn an_agent_that_ends_in_a_turn_has_ended() {
    let script = format!("{HANDSHAKE} read -r line; echo oh >&2; exit 3");
    let (mut driver, handle) = shell(&script, LONG, LONG);
    handle.send("go").unwrap();
    let told = until(&mut driver, EXITED).await;
    assert_has(&told, &[r#""code":3"#]);
    assert!(soon(driver.next()).await.is_none());
}
