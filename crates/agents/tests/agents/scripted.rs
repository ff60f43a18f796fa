//! The scripted agent with a small MCP server.

use std::process::Stdio;

use ringback_agents::{Agent, AgentEvent};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::support::{next, soon, spec};

/// A server of two tools: `echo` gives its request back as text, `slow` never answers.
const SERVER: &str = r#"
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

const PROGRAM: &str = env!("CARGO_BIN_EXE_ringback-scripted-agent");

/// What the agent writes when it is told one thing, and the code it ends with.
async fn told(args: &[&str], message: &str) -> (Vec<String>, Option<i32>) {
    let mut child = Command::new(PROGRAM)
        .args(args)
        .args(["--", "/bin/sh", "-c", SERVER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let text = serde_json::to_string(message).unwrap();
    let line = format!("{{\"type\":\"message\",\"text\":{text}}}\n");
    child.stdin.take().unwrap().write_all(line.as_bytes()).await.unwrap();
    let output = soon(child.wait_with_output()).await.unwrap();
    let lines = String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    (lines, output.status.code())
}

#[track_caller]
fn assert_told((lines, code): &(Vec<String>, Option<i32>), ends_with: i32, expected: &[&str]) {
    assert_eq!(*code, Some(ends_with), "{lines:#?}");
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
        0,
        &[
            r#"{"type":"message","text":"hello"}"#,
            r#"{"type":"log","text":"tools: echo, slow, session_message"}"#,
            r#"{"type":"tool_call","id":1,"tool":"echo","arguments":{"n":12345678901234567890}}"#,
            r#""tool":"echo","text":"done","is_error":false,"result":{"content""#,
            r#"{"type":"message","text":"done"}"#,
            r#"{"type":"done"}"#,
        ],
    );
}

#[tokio::test]
async fn it_speaks_the_modern_era_too() {
    let script = r#"{"call":{"tool":"echo","arguments":{"a":1}}}"#;
    let told = told(&["--modern"], script).await;
    assert_told(&told, 0, &["tool_call", r#"{"got":{"a":1}}"#, "done"]);
}

/// Rule: calls are concurrent, and one that is cancelled is told to the server.
#[tokio::test]
async fn calls_run_together_and_can_be_cancelled() {
    let script = r#"{"together":[{"tool":"slow","cancel_after_ms":50},{"tool":"echo"}]}
{"wait_change":{}}
{"call":{"tool":"fail"}}
{"expect":{"is_error":true}}"#;
    assert_told(
        &told(&[], script).await,
        0,
        &[
            r#""tool":"slow""#,
            r#""tool":"echo""#,
            "the call was cancelled",
            r#""tool":"echo","text":"done","is_error":false"#,
            r#""tool":"fail""#,
            r#""text":"no","is_error":true"#,
            "done",
        ],
    );
}

#[tokio::test]
async fn a_child_session_is_started_with_the_tool_that_is_there() {
    assert_told(
        &told(&[], r#"{"child":{"message":"go"}}"#).await,
        0,
        &[
            r#""tool":"session_message","arguments":{"message":"go"}"#,
            r#"{"got":{"message":"go"}}"#,
            "done",
        ],
    );
}

/// Rule: what is not as expected ends the agent with an error; a wrong script does not.
#[tokio::test]
async fn what_is_not_as_expected_ends_the_agent() {
    let script = "{\"call\":{\"tool\":\"fail\"}}\n{\"expect\":{\"is_error\":false}}";
    assert_told(&told(&[], script).await, 1, &["tool_call", "tool_result"]);
    assert_told(&told(&[], "{\"end\":{\"code\":9}}\n{\"say\":\"never\"}").await, 9, &[]);
    let wrong = told(&[], "{\"dance\":{}}").await;
    assert_told(&wrong, 0, &["line 1 of the script is no step", "done"]);
}

/// Rule: follow-up messages reach a live agent, and the driver understands what it says.
#[tokio::test]
async fn a_script_of_a_file_runs_for_each_message() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script");
    let script = "{\"say\":\"you said $message\"}\n{\"call\":{\"tool\":\"echo\"}}\n";
    std::fs::write(&path, script).unwrap();
    let mut spec = spec(&[PROGRAM, "--script", path.to_str().unwrap()]);
    let server = serde_json::to_string(&["/bin/sh", "-c", SERVER]).unwrap();
    spec.env.insert("RINGBACK_INSIDE".to_owned(), server);
    let mut agent = Agent::start(spec).unwrap();
    for text in ["one", "two"] {
        agent.send(text).unwrap();
        let text = format!("you said {text}");
        assert_eq!(next(&mut agent).await, Some(AgentEvent::Message { text }));
        let tool = "echo".to_owned();
        assert_eq!(next(&mut agent).await, Some(AgentEvent::ToolCall { tool: tool.clone() }));
        let result = AgentEvent::ToolResult { tool, text: "done".to_owned(), is_error: false };
        assert_eq!(next(&mut agent).await, Some(result));
        assert_eq!(next(&mut agent).await, Some(AgentEvent::Done { text: None }));
    }
    assert!(soon(agent.exited()).await.success);
}

#[tokio::test]
async fn without_a_server_or_a_script_there_is_an_error_and_an_end() {
    for (args, reason) in [
        (&["--", "/nowhere/server"][..], "cannot start /nowhere/server"),
        (&["--script", "/nowhere/script"], "cannot read the script"),
        (&["--dance"], "--dance"),
    ] {
        let command: Vec<_> = [PROGRAM].iter().chain(args).copied().collect();
        let mut agent = Agent::start(spec(&command)).unwrap();
        assert_eq!(next(&mut agent).await, None);
        let exit = soon(agent.exited()).await;
        assert!(!exit.success && exit.text.contains(reason), "{exit:?}");
    }
}
