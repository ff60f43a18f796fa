//! Agents whose processes are started by a launcher.

use std::error::Error;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use ringback_agents::{
    Agent, AgentEvent, AgentProcess, AgentSpec, ExitFuture, LaunchedProcess, Launcher,
};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

use crate::support::{next, rest, spec};

/// Starts the agent, and another process that signals go to.
#[derive(Debug)]
struct SplitLauncher;

#[derive(Debug)]
struct Process {
    child: Child,
    group: Pid,
}

#[derive(Debug)]
struct RefusingLauncher;

impl Launcher for SplitLauncher {
    fn launch(&self, spec: &AgentSpec) -> Result<LaunchedProcess, Box<dyn Error + Send + Sync>> {
        let mut command = tokio::process::Command::new(&spec.command);
        command.args(&spec.args).process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        Ok(LaunchedProcess {
            stdin: Box::new(child.stdin.take().ok_or("it has no input")?),
            stdout: Box::new(child.stdout.take().ok_or("it has no output")?),
            stderr: Box::new(child.stderr.take().ok_or("it has no error output")?),
            process: Box::new(Process { child, group: pid.ok_or("it has ended")? }),
        })
    }
}

impl AgentProcess for Process {
    fn id(&self) -> Option<u32> {
        self.child.id()
    }

    fn wait(&mut self) -> ExitFuture<'_> {
        Box::pin(self.child.wait())
    }

    fn terminate(&self) {
        kill_process_group(self.group, Signal::TERM).unwrap_or_default();
    }

    fn kill(&self) {
        kill_process_group(self.group, Signal::KILL).unwrap_or_default();
    }
}

impl Launcher for RefusingLauncher {
    fn launch(&self, _: &AgentSpec) -> Result<LaunchedProcess, Box<dyn Error + Send + Sync>> {
        Err("no room for the agent".into())
    }
}

/// Rule: an agent started by a launcher is driven and ended like any other.
#[tokio::test]
async fn an_agent_from_a_launcher_is_talked_to_and_ended() {
    let script = r#"trap 'echo "{\"type\":\"log\",\"text\":\"asked\"}"; exit 4' TERM
        read -r line; echo '{"type":"done"}'; while :; do sleep 0.02; done"#;
    let spec =
        AgentSpec { launcher: Some(Arc::new(SplitLauncher)), ..spec("/bin/sh", &["-c", script]) };
    let (mut agent, handle) = Agent::start(&spec).unwrap();
    handle.send("go").unwrap();
    assert!(matches!(next(&mut agent).await, AgentEvent::Done));
    handle.terminate(Duration::from_secs(20));
    let told = rest(&mut agent).await.join(" ");
    assert!(told.contains("asked") && told.contains("\"code\":4"), "{told}");
}

/// Rule: a launcher's error is reported.
#[tokio::test]
async fn what_a_launcher_refuses_is_told() {
    let spec = AgentSpec { launcher: Some(Arc::new(RefusingLauncher)), ..spec("/bin/agent", &[]) };
    let error = Agent::start(&spec).unwrap_err();
    assert!(error.to_string().contains("/bin/agent"), "{error}");
    assert_eq!(error.source().unwrap().to_string(), "no room for the agent");
}
