//! Real processes, driven.

use std::collections::BTreeMap;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_agents::{Agent, AgentEvent, AgentSpec, StartAgentError};

fn shell(dir: &Utf8Path, script: &str) -> AgentSpec {
    AgentSpec {
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        env: BTreeMap::from([("GIVEN".to_owned(), "yes".to_owned())]),
        workspace: dir.to_owned(),
    }
}

fn dir() -> (tempfile::TempDir, Utf8PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8PathBuf::from_path_buf(dir.path().to_owned()).unwrap();
    (dir, path)
}

async fn message(agent: &mut Agent) -> String {
    match agent.next().await {
        Some(AgentEvent::Message { text }) => text,
        other => panic!("not a message: {other:?}"),
    }
}

/// Rule: an agent gets messages on its input and is heard on its output, in its own directory.
#[tokio::test]
async fn an_agent_is_told_and_heard() {
    let (_guard, dir) = dir();
    let script = r#"read line; printf '{"type":"message","text":"%s"}\n' "$PWD $GIVEN";
        case "$line" in *hello*) echo '{"type":"done","text":"bye"}';; esac"#;
    let mut agent = Agent::start(shell(&dir, script)).unwrap();
    agent.send("hello").unwrap();
    assert_eq!(message(&mut agent).await, format!("{dir} yes"));
    assert_eq!(agent.next().await, Some(AgentEvent::Done { text: Some("bye".to_owned()) }));
    assert_eq!(agent.next().await, None);
    assert!(agent.exited().await.success);
}

/// Rule: nothing of the daemon's environment reaches an agent.
#[tokio::test]
async fn the_environment_is_cleared() {
    let (_guard, dir) = dir();
    let script =
        r#"printf '{"type":"message","text":"%s"}\n' "$(env | cut -d= -f1 | sort | tr '\n' ' ')""#;
    let mut agent = Agent::start(shell(&dir, script)).unwrap();
    let names = message(&mut agent).await;
    let names: Vec<_> = names.split_whitespace().filter(|name| *name != "_").collect();
    assert_eq!(names, ["GIVEN", "HOME", "LANG", "PATH", "PWD"]);
    assert!(agent.exited().await.success);
}

/// Rule: an agent that speaks garbage, stops in the middle of a line or floods wedges nobody.
#[tokio::test]
async fn garbage_and_floods_are_bounded() {
    let (_guard, dir) = dir();
    let script = r#"echo not json; yes '{"type":"log","text":"flood"}' | head -n 20000;
        head -c 5000000 /dev/zero | tr '\0' x; echo; printf '{"type":"message","te'"#;
    let mut agent = Agent::start(shell(&dir, script)).unwrap();
    let (mut n_logs, mut n_garbage) = (0, 0);
    while let Some(event) = agent.next().await {
        match event {
            AgentEvent::Log { .. } => n_logs += 1,
            AgentEvent::Garbage { text } => {
                n_garbage += 1;
                assert!(text.len() <= 200);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((n_logs, n_garbage), (20_000, 3));
    assert!(agent.exited().await.success);
}

/// Rule: a child that ignores SIGTERM, or was started behind the agent's back, does not survive.
#[tokio::test]
async fn ending_an_agent_ends_everything_it_started() {
    let (_guard, dir) = dir();
    let script = r#"trap '' TERM; (trap '' TERM; sleep 1000) & printf '{"type":"message","text":"%s %s"}\n' $$ $!; wait"#;
    let mut agent = Agent::start(shell(&dir, script)).unwrap();
    let pids = message(&mut agent).await;
    agent.terminate(Duration::from_millis(50)).await;
    for pid in pids.split(' ') {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let state = stat.rsplit(')').next().unwrap_or_default().trim().chars().next();
        assert!(matches!(state, None | Some('Z')), "process {pid} is left: {stat}");
    }
}

/// Rule: an agent that fails says why, with the last it wrote to standard error.
#[tokio::test]
async fn a_failure_tells_its_last_words() {
    let (_guard, dir) = dir();
    let mut agent = Agent::start(shell(&dir, "echo no model configured >&2; exit 3")).unwrap();
    assert_eq!(agent.next().await, None);
    let exit = agent.exited().await;
    assert!(!exit.success);
    assert!(exit.text.contains("exit status: 3") && exit.text.contains("no model configured"));
}

#[tokio::test]
async fn what_cannot_be_started_says_what() {
    let (_guard, dir) = dir();
    let nothing = AgentSpec { command: Vec::new(), ..shell(&dir, "") };
    assert!(matches!(Agent::start(nothing), Err(StartAgentError::NoCommand)));
    let missing = AgentSpec { command: vec!["/nowhere/agent".to_owned()], ..shell(&dir, "") };
    let error = Agent::start(missing).unwrap_err();
    assert!(error.to_string().contains("/nowhere/agent"));
}
