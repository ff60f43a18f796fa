//! The scripted agent with a small MCP server.

use std::path::Path;

use ringback_agents::{Agent, AgentHandle};

use crate::support::{next, rest, spec};

/// A server of two tools: `echo` returns its request as text, `slow` never answers.
pub(crate) const SERVER: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"method":"server/discover"'*) result='{"resultType":"complete"}' ;;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"echo"},{"name":"slow"},{"name":"session_message"}]}' ;;
    *'"name":"slow"'*) continue ;;
    *'"name":"fail"'*) result='{"content":[{"type":"text","text":"no"}],"isError":true}' ;;
    *'notifications/cancelled'*) printf '{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n'; continue ;;
    *'notifications/'*|*'subscriptions/'*) continue ;;
    *) arguments=${line#*\"arguments\":}; result="{\"content\":[{\"type\":\"text\",\"text\":\"done\"}],\"structuredContent\":{\"got\":${arguments%\}\}}}}" ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

fn start(args: &[&str]) -> (Agent, AgentHandle) {
    let args: Vec<_> = args.iter().copied().chain(["--", "/bin/sh", "-c", SERVER]).collect();
    Agent::start(&spec(env!("CARGO_BIN_EXE_ringback-scripted-agent"), &args)).unwrap()
}

async fn told(args: &[&str], message: &str) -> Vec<String> {
    let (mut agent, handle) = start(args);
    handle.send(message).unwrap();
    drop(handle);
    rest(&mut agent).await
}

#[track_caller]
fn assert_told(lines: &[String], expected: &[&str]) {
    assert_eq!(lines.len(), expected.len(), "{lines:#?}");
    for (line, part) in lines.iter().zip(expected) {
        assert!(line.contains(part), "{part} in {line}");
    }
}

/// REQ: design "agents": a small program that reads a script of tool calls and speaks real MCP.
#[tokio::test]
async fn a_script_says_lists_calls_and_prints() {
    let script = r#"{"say":"hello"}
{"list":{}}
{"call":{"tool":"echo","arguments":{"n":12345678901234567890}}}
{"expect":{"is_error":false,"contains":"12345678901234567890"}}
{"print":{}}"#;
    assert_told(
        &told(&[], script).await,
        &[
            r#"{"type":"message","text":"hello"}"#,
            "tools: echo, slow, session_message",
            r#"{"type":"tool_call","id":"1","tool":"echo","arguments":{"n":12345678901234567890}}"#,
            r#""is_error":false,"result":{"content""#,
            r#"{"type":"message","text":"done"}"#,
            r#"{"type":"done"}"#,
            r#""code":0"#,
        ],
    );
}

#[tokio::test]
async fn it_speaks_the_modern_era_too() {
    let script = r#"{"call":{"tool":"echo","arguments":{"a":1}}}"#;
    let lines = told(&["--modern"], script).await;
    assert_told(&lines, &["tool_call", r#"{"got":{"a":1}}"#, "done", r#""code":0"#]);
}

/// Rule: calls are concurrent, and a cancellation reaches the server.
#[tokio::test]
async fn calls_run_together_and_can_be_cancelled() {
    let script = r#"{"together":[{"tool":"slow","cancel_after_ms":50},{"tool":"echo"}]}
{"wait_change":{}}
{"call":{"tool":"fail"}}
{"expect":{"is_error":true}}"#;
    let lines = told(&[], script).await;
    assert_told(
        &lines,
        &[
            r#""tool":"slow""#,
            r#""tool":"echo""#,
            "the call was cancelled",
            r#""tool":"echo","is_error":false"#,
            r#""tool":"fail""#,
            r#""is_error":true"#,
            "done",
            r#""code":0"#,
        ],
    );
}

#[tokio::test]
async fn a_child_session_is_started_with_the_tool_that_is_there() {
    let lines = told(&[], r#"{"child":{"message":"go"}}"#).await;
    assert_told(
        &lines,
        &[
            r#""tool":"session_message","arguments":{"message":"go"}"#,
            r#"{"got":{"message":"go"}}"#,
            "done",
            r#""code":0"#,
        ],
    );
}

/// Rule: a failed `expect` ends the agent with an error.
#[tokio::test]
async fn what_is_not_as_expected_ends_the_agent() {
    let lines =
        told(&[], "{\"call\":{\"tool\":\"fail\"}}\n{\"expect\":{\"is_error\":false}}").await;
    assert_told(&lines, &["tool_call", "tool_result", "not as expected", r#""code":1"#]);
    let lines = told(&[], "{\"end\":{\"code\":9}}\n{\"say\":\"never\"}").await;
    assert_told(&lines, &[r#""code":9"#]);
    let lines = told(&[], "{\"dance\":{}}").await;
    assert_told(&lines, &["line 1 of the script is not a valid step", "done", r#""code":0"#]);
}

/// Rule: follow-up messages reach a live agent.
#[tokio::test]
async fn a_script_of_a_file_runs_for_each_message() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    std::fs::write(&path, "{\"say\":\"you said $message\"}\n").unwrap();
    let (mut agent, handle) = start(&["--script", path.to_str().unwrap()]);
    for text in ["one", "two"] {
        handle.send(text).unwrap();
        let said = next(&mut agent).await.encode();
        assert_eq!(said, format!(r#"{{"type":"message","text":"you said {text}"}}"#));
        assert_eq!(next(&mut agent).await.encode(), r#"{"type":"done"}"#);
    }
}

#[tokio::test]
async fn without_a_server_or_a_script_there_is_an_error_and_an_end() {
    let program = env!("CARGO_BIN_EXE_ringback-scripted-agent");
    for args in [&["--", "/nowhere/server"][..], &["--script", "/nowhere/script"], &["--dance"]] {
        assert!(!Path::new(args[args.len() - 1]).exists());
        let (mut agent, _handle) = Agent::start(&spec(program, args)).unwrap();
        let lines = rest(&mut agent).await;
        let last = lines.last().unwrap();
        assert!(last.contains("agent_exited") && !last.contains(r#""code":0"#), "{lines:?}");
    }
}
