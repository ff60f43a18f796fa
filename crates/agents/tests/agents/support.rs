//! Starts agents and collects their events.

use std::path::Path;

use ringback_agents::{Agent, AgentEvent, AgentHandle, AgentLimits, AgentSpec, Driver};
use ringback_testkit::{soon, wait_for};

pub(crate) fn spec(command: &str, args: &[&str]) -> AgentSpec {
    AgentSpec {
        command: command.into(),
        args: args.iter().map(Into::into).collect(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        workspace: std::env::temp_dir(),
        home: std::env::temp_dir(),
        limits: AgentLimits::default(),
        launcher: None,
    }
}

/// Starts a shell as an agent.
pub(crate) fn shell(script: &str) -> (Agent, AgentHandle) {
    Agent::start(&spec("/bin/sh", &["-c", script])).unwrap()
}

pub(crate) async fn next(agent: &mut Agent) -> AgentEvent {
    soon(agent.next()).await.expect("an event")
}

/// Returns all remaining events of an agent, as lines of text.
pub(crate) async fn rest(agent: &mut Agent) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(event) = soon(agent.next()).await {
        lines.push(event.encode());
    }
    lines
}

/// Returns the events up to one that contains `part`, as lines of text.
pub(crate) async fn until(driver: &mut Driver, part: &str) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let Some(event) = soon(driver.next()).await else {
            panic!("no {part} in {lines:#?}");
        };
        lines.push(event.encode());
        if lines.last().is_some_and(|line| line.contains(part)) {
            return lines;
        }
    }
}

/// Returns whether a process exists and has not ended.
pub(crate) fn is_running(pid: &str) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until a process has ended.
pub(crate) async fn ended(pid: &str) {
    wait_for("it ends", async || !is_running(pid)).await;
}
