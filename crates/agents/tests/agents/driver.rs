//! Any program as an agent, well behaved or not.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::Utf8PathBuf;
use ringback_agents::{Agent, AgentEvent, AgentSpec, NotTaken, StartAgentError};

use crate::support::{ended, is_running, logged, next, rest, shell, soon, spec};

const DONE: AgentEvent = AgentEvent::Done { text: None };

/// Rule: messages reach a live agent, one after another, and its events come back in order.
#[tokio::test]
async fn messages_go_in_and_events_come_out() {
    let mut agent = shell(
        r#"while read -r line; do printf '{"type":"log","text":"%s"}\n' "${#line}"; echo '{"type":"done"}'; done; exit 3"#,
    );
    let length = r#"{"type":"message","text":"hello"}"#.len().to_string();
    for text in ["hello", "again"] {
        agent.send(text).unwrap();
        assert_eq!(logged(&mut agent).await, length);
        assert_eq!(next(&mut agent).await, Some(DONE));
    }
    let exit = soon(agent.exited()).await;
    assert!(!exit.success && exit.text.contains("exit status: 3"), "{exit:?}");
}

/// Rule: an agent sees no environment but its own, and works in its workspace.
#[tokio::test]
async fn the_environment_is_what_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let workspace = directory.path().canonicalize().unwrap();
    let workspace = Utf8PathBuf::from_path_buf(workspace).unwrap();
    let script = r#"printf '{"type":"log","text":"%s %s"}\n' "$PWD" "$(env | cut -d= -f1 | sort | tr '\n' ' ')""#;
    let env = BTreeMap::from([("GIVEN".to_owned(), "yes".to_owned())]);
    let spec = AgentSpec { env, workspace, ..spec(&["/bin/sh", "-c", script]) };
    let mut agent = Agent::start(spec.clone()).unwrap();
    let text = logged(&mut agent).await;
    let words: Vec<_> = text.split_whitespace().filter(|word| *word != "_").collect();
    assert_eq!(words, [spec.workspace.as_str(), "GIVEN", "HOME", "LANG", "PATH", "PWD"]);
}

/// Rule: garbage, torn lines and lines that are too long are told, and stop nothing.
#[tokio::test]
async fn garbage_is_told_and_stops_nothing() {
    let mut agent = shell(
        r#"echo not json; echo '{"type":"done"}'; head -c 5000000 /dev/zero | tr '\0' x; echo; echo '{"type":"done"}'; printf '{"type":"do'"#,
    );
    let events = rest(&mut agent).await;
    let texts: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::Garbage { text } => Some(text.as_str()),
            AgentEvent::Message { .. }
            | AgentEvent::ToolCall { .. }
            | AgentEvent::ToolResult { .. }
            | AgentEvent::Log { .. }
            | AgentEvent::Done { .. } => None,
        })
        .collect();
    assert_eq!(texts, ["not json", &"x".repeat(200), r#"{"type":"do"#]);
    assert_eq!(events.iter().filter(|event| **event == DONE).count(), 2);
    assert!(soon(agent.exited()).await.success);
}

/// Rule: a flood is no more events than there are reads, and the end still comes.
#[tokio::test]
async fn a_flood_is_bounded() {
    let mut agent = shell("yes | head -n 200000; yes '{\"type\":\"done\"}' | head -n 20000");
    let events = rest(&mut agent).await;
    assert_eq!(events.iter().filter(|event| **event == DONE).count(), 20_000);
    assert!(events.len() < 30_000, "{}", events.len());
    assert!(soon(agent.exited()).await.success);
}

/// Rule: an agent that does not read is not waited for.
#[tokio::test]
async fn an_agent_that_does_not_read_takes_no_more() {
    let mut agent = shell("exec sleep 1000");
    let n_taken = (0..1000).take_while(|_| agent.send("hello") == Ok(())).count();
    assert_eq!(n_taken, 64);
    assert_eq!(agent.send(&"x".repeat(5_000_000)), Err(NotTaken));
    // Driving it writes some of them into the pipe, and then there is room again.
    assert!(tokio::time::timeout(Duration::from_millis(50), agent.next()).await.is_err());
    assert_eq!(agent.send("hello"), Ok(()));
    let exit = soon(agent.terminate(Duration::from_secs(10))).await;
    assert!(exit.text.contains("signal: 15"), "{exit:?}");
}

/// Rule: what does not end when asked is ended, with all that it started.
#[tokio::test]
async fn an_agent_that_does_not_end_is_killed_with_its_children() {
    let mut agent = shell(
        r#"trap '' TERM; (trap '' TERM; sleep 1000) & printf '{"type":"log","text":"%s"}\n' $!; while :; do wait; done"#,
    );
    let child = logged(&mut agent).await;
    let exit = soon(agent.terminate(Duration::from_millis(50))).await;
    assert!(exit.text.contains("signal: 9"), "{exit:?}");
    ended(&child).await;
}

/// Rule: a child that holds the output open after the agent's end does not hold up the end.
#[tokio::test]
async fn children_do_not_outlive_an_agent() {
    let mut agent = shell(r#"sleep 1000 & printf '{"type":"log","text":"%s"}\n' $!; exit 0"#);
    let child = logged(&mut agent).await;
    assert_eq!(next(&mut agent).await, None);
    assert!(soon(agent.exited()).await.success);
    ended(&child).await;
}

/// Rule: not even a child that left the group holds up the end.
#[tokio::test]
async fn a_child_that_left_the_group_does_not_hold_up_the_end() {
    let mut agent = shell(
        r#"setsid sh -c 'printf "{\"type\":\"log\",\"text\":\"%s\"}\n" $$; exec sleep 1000' & wait"#,
    );
    let child = logged(&mut agent).await;
    let exit = soon(agent.terminate(Duration::from_secs(10))).await;
    assert!(!exit.success);
    assert!(is_running(&child), "it is somebody else's to end");
    let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Rule: an agent that closes its output and stays is ended.
#[tokio::test]
async fn an_agent_that_closes_its_output_and_stays_is_ended() {
    let mut agent =
        shell(r#"printf '{"type":"log","text":"%s"}\n' $$; exec sleep 1000 >/dev/null 2>&1"#);
    let pid = logged(&mut agent).await;
    assert_eq!(next(&mut agent).await, None);
    assert!(is_running(&pid));
    assert!(!soon(agent.exited()).await.success);
    assert!(!is_running(&pid));
}

/// Rule: an agent that is dropped is ended, with all that it started.
#[tokio::test]
async fn a_dropped_agent_is_ended_with_its_children() {
    let mut agent = shell(r#"sleep 1000 & printf '{"type":"log","text":"%s %s"}\n' $! $$; wait"#);
    let pids = logged(&mut agent).await;
    drop(agent);
    for pid in pids.split(' ') {
        ended(pid).await;
    }
}

/// Rule: an agent that fails says why, with the end of its error output.
#[tokio::test]
async fn a_failure_tells_its_last_words() {
    let mut agent = shell("yes noise | head -c 100000 >&2; echo no model configured >&2; exit 7");
    assert_eq!(next(&mut agent).await, None);
    assert_eq!(agent.send("late"), Err(NotTaken));
    let exit = soon(agent.exited()).await;
    assert!(!exit.success && exit.text.contains("exit status: 7"), "{exit:?}");
    assert!(exit.text.len() < 20_000 && exit.text.ends_with("no model configured"));
}

#[tokio::test]
async fn what_cannot_be_started_says_what() {
    assert!(matches!(Agent::start(spec(&[])), Err(StartAgentError::NoCommand)));
    let error = Agent::start(spec(&["/nowhere/agent"])).unwrap_err();
    assert!(error.to_string().contains("/nowhere/agent"));
}
