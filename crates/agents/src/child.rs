//! An agent as a plain child of this process, in a process group of its own.

use std::io;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, Command};

use crate::spec::{AgentProcess, AgentSpec, ExitFuture, LaunchedProcess, StartError};

/// A child and its group.
#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) child: Child,
    /// The target of signals, if it has a group of its own.
    pub(crate) group: Option<Pid>,
}

/// Starts the program of a spec as a plain child, in a process group of its own.
///
/// # Errors
/// If the program or the directory does not exist.
pub fn spawn(spec: &AgentSpec) -> Result<LaunchedProcess, StartError> {
    let mut child = command(spec).spawn().map_err(|source: io::Error| StartError::Spawn {
        command: spec.command.clone(),
        workspace: spec.workspace.clone(),
        source,
    })?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(StartError::NoPipes { command: spec.command.clone() });
    };
    let group = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
    Ok(LaunchedProcess {
        stdin: Box::new(stdin),
        stdout: Box::new(stdout),
        stderr: Box::new(stderr),
        process: Box::new(Plain { child, group }),
    })
}

fn command(spec: &AgentSpec) -> Command {
    let mut command = Command::new(&spec.command);
    command
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.workspace)
        .process_group(0)
        .kill_on_drop(true)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

impl Plain {
    fn signal(&self, signal: Signal) {
        if let Some(group) = self.group {
            kill_process_group(group, signal).unwrap_or_default();
        }
    }
}

impl AgentProcess for Plain {
    fn id(&self) -> Option<u32> {
        self.child.id()
    }

    fn wait(&mut self) -> ExitFuture<'_> {
        Box::pin(self.child.wait())
    }

    fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    fn kill(&self) {
        self.signal(Signal::KILL);
    }
}
