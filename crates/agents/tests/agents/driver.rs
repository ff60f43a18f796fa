//! Any program as an agent, well behaved or not.

use std::time::Duration;

use ringback_agents::{Agent, AgentEvent, AgentLimits, SendError, StartError};
use ringback_testkit::soon;

use crate::support::{ended, is_running, next, rest, shell, spec};

const DONE: &str = r#"{"type":"done"}"#;

fn exited(code: i32) -> String {
    format!(r#"{{"type":"agent_exited","code":{code},"signal":null,"stderr":""}}"#)
}

/// Rule: messages reach a live agent, one after another, and its events come back in order.
#[tokio::test]
async fn messages_go_in_and_events_come_out() {
    let (mut agent, handle) = shell(
        r#"while read -r line; do printf '{"type":"log","text":"%s"}\n' "${#line}"; echo '{"type":"done"}'; done; exit 3"#,
    );
    handle.send("hello").unwrap();
    let length = r#"{"type":"message","text":"hello"}"#.len();
    assert_eq!(next(&mut agent).await.encode(), format!(r#"{{"type":"log","text":"{length}"}}"#));
    assert_eq!(next(&mut agent).await.encode(), DONE);
    handle.send("again").unwrap();
    assert_eq!(next(&mut agent).await.encode(), format!(r#"{{"type":"log","text":"{length}"}}"#));
    drop(handle);
    assert_eq!(rest(&mut agent).await, [DONE.to_owned(), exited(3)]);
    assert!(agent.next().await.is_none());
}

/// Rule: an agent sees only its own environment, and works in its workspace.
#[tokio::test]
async fn the_environment_is_what_was_given() {
    let directory = tempfile::tempdir().unwrap();
    let script = r#"printf '{"type":"log","text":"%s %s %s"}\n' "$KEY" "${HOME-none}" "$(pwd)""#;
    let mut spec = spec("/bin/sh", &["-c", script]);
    spec.env = vec![("KEY".into(), "k".into())];
    spec.workspace = directory.path().canonicalize().unwrap();
    let (mut agent, _handle) = Agent::start(&spec).unwrap();
    let expected = format!(r#"{{"type":"log","text":"k none {}"}}"#, spec.workspace.display());
    assert_eq!(next(&mut agent).await.encode(), expected);
}

/// Rule: garbage, torn lines and floods are reported, bounded, and stop nothing.
#[tokio::test]
async fn garbage_is_told_and_stops_nothing() {
    let script = r#"echo hello; echo '{"type":"done"}'; printf '\377\000\n'; printf '{"type":"agent_exited"}\n'; printf '{"type":"do'"#;
    let (mut agent, _handle) = shell(script);
    let (mut n_garbage, mut n_done) = (0, 0);
    while let Some(event) = soon(agent.next()).await {
        match &event {
            AgentEvent::AgentGarbage { lines, .. } => n_garbage += lines,
            AgentEvent::AgentExited { code, .. } => assert_eq!(*code, Some(0)),
            AgentEvent::Done => n_done += 1,
            AgentEvent::Message { .. }
            | AgentEvent::ToolCall { .. }
            | AgentEvent::ToolResult { .. }
            | AgentEvent::Log { .. }
            | AgentEvent::Error { .. }
            | AgentEvent::Thought { .. }
            | AgentEvent::Plan { .. }
            | AgentEvent::PermissionRequest { .. }
            | AgentEvent::PermissionAnswer { .. }
            | AgentEvent::Conversation { .. }
            | AgentEvent::Completion { .. } => unreachable!("{event:?}"),
        }
    }
    assert_eq!((n_garbage, n_done), (4, 1));
}

/// Rule: a line over the limit is garbage once, and the next one is read.
#[tokio::test]
async fn a_line_that_is_too_long_is_garbage() {
    let mut spec = spec(
        "/bin/sh",
        &["-c", r#"head -c 300000 /dev/zero | tr '\0' x; echo; echo '{"type":"done"}'"#],
    );
    spec.limits = AgentLimits { line_bytes_max: 1000, ..AgentLimits::default() };
    let (mut agent, handle) = Agent::start(&spec).unwrap();
    assert_eq!(handle.send("x".repeat(1000)), Err(SendError::TooLarge { line_bytes_max: 1000 }));
    let AgentEvent::AgentGarbage { lines, sample } = next(&mut agent).await else {
        unreachable!("garbage")
    };
    assert_eq!((lines, sample.len()), (1, 200));
    assert_eq!(rest(&mut agent).await, [DONE.to_owned(), exited(0)]);
}

/// Rule: a flood makes no more events than there are reads, and the end still comes.
#[tokio::test]
async fn a_flood_is_bounded() {
    let (mut agent, _handle) = shell("yes | head -n 200000");
    let (mut n_events, mut n_lines) = (0_u64, 0);
    while let Some(event) = soon(agent.next()).await {
        n_events += 1;
        if let AgentEvent::AgentGarbage { lines, .. } = event {
            n_lines += lines;
        }
    }
    assert_eq!(n_lines, 200_000);
    assert!(n_events < 20_000, "{n_events}");
}

/// Rule: an agent that does not read is busy, not waited for.
#[tokio::test]
async fn an_agent_that_does_not_read_is_busy() {
    let (mut agent, handle) = shell("exec sleep 1000");
    let text = "x".repeat(100_000);
    let mut n_taken = 0;
    let busy = loop {
        match handle.send(text.clone()) {
            Ok(()) => n_taken += 1,
            Err(error) => break error,
        }
    };
    assert_eq!((n_taken, busy), (16, SendError::Busy));
    handle.terminate(Duration::from_secs(10));
    let AgentEvent::AgentExited { signal, .. } = next(&mut agent).await else {
        unreachable!("the end")
    };
    assert_eq!(signal, Some(15));
    assert_eq!(handle.send("late"), Err(SendError::Gone));
}

/// Rule: an agent that does not end when asked is killed, with everything it started.
#[tokio::test]
async fn an_agent_that_does_not_end_is_killed_with_its_children() {
    let (mut agent, handle) = shell(
        r#"trap '' TERM; sleep 1000 & printf '{"type":"log","text":"%s"}\n' $!; while :; do wait; done"#,
    );
    let AgentEvent::Log { text: child } = next(&mut agent).await else { unreachable!("a log") };
    handle.terminate(Duration::from_millis(50));
    let AgentEvent::AgentExited { signal, .. } = next(&mut agent).await else {
        unreachable!("the end")
    };
    assert_eq!(signal, Some(9));
    ended(&child).await;
}

/// Rule: a child that keeps the output open after the agent's end does not delay the end.
#[tokio::test]
async fn children_do_not_outlive_an_agent() {
    let (mut agent, _handle) =
        shell(r#"sleep 1000 & printf '{"type":"log","text":"%s"}\n' $!; exit 0"#);
    let AgentEvent::Log { text: child } = next(&mut agent).await else { unreachable!("a log") };
    assert_eq!(rest(&mut agent).await, [exited(0)]);
    ended(&child).await;
}

/// Rule: not even a child that left the process group delays the end.
#[tokio::test]
async fn a_child_that_left_the_group_does_not_hold_up_the_end() {
    let (mut agent, handle) = shell(
        r#"setsid sh -c 'printf "{\"type\":\"log\",\"text\":\"%s\"}\n" $$; exec sleep 1000' & wait"#,
    );
    let AgentEvent::Log { text: child } = next(&mut agent).await else { unreachable!("a log") };
    handle.terminate(Duration::from_secs(10));
    let AgentEvent::AgentExited { signal, .. } = next(&mut agent).await else {
        unreachable!("the end")
    };
    assert_eq!(signal, Some(15));
    assert!(is_running(&child), "a child outside the process group goes on");
    let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

/// Rule: an agent that is dropped is ended, with everything it started.
#[tokio::test]
async fn a_dropped_agent_is_ended_with_its_children() {
    let (mut agent, handle) =
        shell(r#"sleep 1000 & printf '{"type":"log","text":"%s"}\n' $!; wait"#);
    let AgentEvent::Log { text: child } = next(&mut agent).await else { unreachable!("a log") };
    drop(agent);
    ended(&child).await;
    ended(&handle.pid().unwrap().to_string()).await;
}

/// Rule: the end of the error output is kept, and no more.
#[tokio::test]
async fn the_end_of_the_error_output_is_kept() {
    let mut spec =
        spec("/bin/sh", &["-c", "yes noise | head -c 100000 >&2; echo last >&2; exit 7"]);
    spec.limits.stderr_bytes_max = 100;
    let (mut agent, _handle) = Agent::start(&spec).unwrap();
    let AgentEvent::AgentExited { code, stderr, .. } = next(&mut agent).await else {
        unreachable!("the end")
    };
    assert_eq!(code, Some(7));
    assert!(stderr.len() == 100 && stderr.ends_with("last\n"), "{stderr}");
}

/// Rule: an agent that cannot be asked to stop is ended.
#[tokio::test]
async fn an_agent_that_cannot_be_asked_to_stop_is_ended() {
    let (mut agent, handle) = shell("exec sleep 1000");
    handle.abort().unwrap();
    let AgentEvent::AgentExited { signal, .. } = next(&mut agent).await else {
        unreachable!("the end")
    };
    assert_eq!(signal, Some(15));
    assert_eq!(handle.abort(), Err(SendError::Gone));
}

#[tokio::test]
async fn a_program_that_is_missing_is_said() {
    let error = Agent::start(&spec("/nowhere/agent", &[])).unwrap_err();
    assert!(matches!(error, StartError::Spawn { .. }));
    assert!(error.to_string().contains("/nowhere/agent"));
}
