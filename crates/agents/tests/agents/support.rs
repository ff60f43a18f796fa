//! Agents that are started, and what they tell.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use camino::Utf8PathBuf;
use ringback_agents::{Agent, AgentEvent, AgentSpec};

/// A wait that is longer than this is a failure.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

pub(crate) fn spec(command: &[&str]) -> AgentSpec {
    AgentSpec {
        command: command.iter().map(|&word| word.to_owned()).collect(),
        env: BTreeMap::new(),
        workspace: Utf8PathBuf::from_path_buf(std::env::temp_dir()).unwrap(),
    }
}

/// A shell as an agent.
pub(crate) fn shell(script: &str) -> Agent {
    Agent::start(spec(&["/bin/sh", "-c", script])).unwrap()
}

pub(crate) async fn next(agent: &mut Agent) -> Option<AgentEvent> {
    soon(agent.next()).await
}

/// The text of a log line, which is next.
pub(crate) async fn logged(agent: &mut Agent) -> String {
    match next(agent).await {
        Some(AgentEvent::Log { text }) => text,
        other => unreachable!("not a log line: {other:?}"),
    }
}

/// Everything that an agent still tells.
pub(crate) async fn rest(agent: &mut Agent) -> Vec<AgentEvent> {
    let mut events = Vec::new();
    while let Some(event) = next(agent).await {
        events.push(event);
    }
    events
}

/// Whether a process is there and has not ended.
pub(crate) fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until a process has ended.
pub(crate) async fn ended(pid: &str) {
    soon(async {
        while is_running(pid) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
