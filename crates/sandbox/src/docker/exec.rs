//! Further commands in a running container.

use std::ffi::OsStr;
use std::pin::Pin;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::exec::{StartExecOptions, StartExecResults};
use bollard::models::ExecConfig;
use futures_util::{Stream, StreamExt as _};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::{Instant, timeout};

use super::engine::{Engine, is_gone};
use super::worker::WorkerHandle;
use crate::error::{EngineError, ExecError};
use crate::exec::{CapturedOutput, ExecEnd, ExecOutput, ExecSpec};
use crate::spec::places;

/// How long to wait for a command to start so that it can be killed.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often to look for it.
const LOOK_EVERY: Duration = Duration::from_millis(50);

type OutputStream = Pin<Box<dyn Stream<Item = Result<LogOutput, Error>> + Send>>;

/// Ends a command when dropped: the engine has no API for that.
struct Guard {
    engine: Engine,
    handle: WorkerHandle,
    /// `None` once the command has ended.
    exec: Option<String>,
}

pub(super) async fn exec(
    engine: Engine,
    handle: WorkerHandle,
    name: &str,
    spec: ExecSpec,
) -> Result<ExecOutput, ExecError> {
    let config = config(&spec)?;
    let created = engine.client().create_exec(name, config).await;
    let id = created.map_err(|error| gone_or(&engine, name, error))?.id;
    let mut guard = Guard { engine: engine.clone(), handle, exec: Some(id.clone()) };
    let options = StartExecOptions { detach: false, tty: false, output_capacity: None };
    let started = engine.client().start_exec(&id, Some(options)).await;
    let started = started.map_err(|error| gone_or(&engine, name, error))?;
    let StartExecResults::Attached { output, input } = started else {
        let said = "it detached from a command that was to be attached".to_owned();
        return Err(EngineError::Refused { action: "run a command", said }.into());
    };
    let (mut stdout, mut stderr) = (CapturedOutput::default(), CapturedOutput::default());
    let listened =
        timeout(spec.limit, listen(output, spec.output_bytes_max, &mut stdout, &mut stderr));
    let in_time = listened.await;
    drop(input);
    let end = match in_time {
        Err(_) => ExecEnd::TimedOut,
        Ok(said) => {
            said.map_err(engine.told("relay the output of a command"))?;
            let ended = engine.client().inspect_exec(&id).await;
            let ended = ended.map_err(|error| gone_or(&engine, name, error))?;
            guard.exec = None;
            let code = ended.exit_code.and_then(|code| i32::try_from(code).ok());
            ExecEnd::Exited(code.ok_or_else(|| ExecError::Gone { name: name.to_owned() })?)
        }
    };
    Ok(ExecOutput { end, stdout, stderr })
}

fn config(spec: &ExecSpec) -> Result<ExecConfig, ExecError> {
    if spec.command.is_empty() {
        return Err(ExecError::Empty);
    }
    let text = |what: &'static str, text: &OsStr| {
        text.to_str().map(str::to_owned).ok_or(ExecError::NotText { what })
    };
    let command = spec.command.iter().map(|part| text("the command", part));
    let env = spec.env.iter().map(|(name, value)| {
        let what = "the environment";
        Ok(format!("{}={}", text(what, name)?, text(what, value)?))
    });
    let dir = spec.working_dir.as_ref().map(|dir| text("the directory", dir.as_os_str()));
    Ok(ExecConfig {
        cmd: Some(command.collect::<Result<_, _>>()?),
        env: Some(env.collect::<Result<_, ExecError>>()?),
        working_dir: Some(dir.transpose()?.unwrap_or_else(|| places::WORKSPACE.to_owned())),
        attach_stdin: Some(false),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        tty: Some(false),
        privileged: Some(false),
        ..ExecConfig::default()
    })
}

/// Reads to the end, and keeps the start.
async fn listen(
    mut said: OutputStream,
    bytes_max: usize,
    stdout: &mut CapturedOutput,
    stderr: &mut CapturedOutput,
) -> Result<(), Error> {
    while let Some(said) = said.next().await {
        match said? {
            LogOutput::StdErr { message } => stderr.push(&message, bytes_max),
            LogOutput::StdOut { message }
            | LogOutput::StdIn { message }
            | LogOutput::Console { message } => stdout.push(&message, bytes_max),
        }
    }
    Ok(())
}

impl CapturedOutput {
    fn push(&mut self, said: &[u8], bytes_max: usize) {
        let room = bytes_max.saturating_sub(self.bytes.len());
        let n_kept = said.len().min(room);
        self.bytes.extend_from_slice(&said[..n_kept]);
        self.is_truncated |= n_kept < said.len();
    }
}

fn gone_or(engine: &Engine, name: &str, error: Error) -> ExecError {
    if is_gone(&error) {
        return ExecError::Gone { name: name.to_owned() };
    }
    engine.told("run a command")(error).into()
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(exec) = self.exec.take() {
            let engine = self.engine.clone();
            self.handle.hand_over(async move { end(&engine, &exec).await });
        }
    }
}

/// Ends a command and its descendants, except those that have left its session: they end with the
/// sandbox.
async fn end(engine: &Engine, exec: &str) {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let Ok(found) = engine.client().inspect_exec(exec).await else { return };
        if found.exit_code.is_some() {
            return;
        }
        if let (Some(pid), Some(container)) = (process(found.pid), found.container_id) {
            return kill(pid, &container);
        }
        // The engine was asked to start it, and does not report when it has.
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn process(pid: Option<i64>) -> Option<Pid> {
    pid.and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
}

/// Kills a process by the engine's number, which is valid on this machine only if that process is
/// in the container.
fn kill(pid: Pid, container: &str) {
    let path = format!("/proc/{}/cgroup", pid.as_raw_nonzero());
    let is_ours = std::fs::read_to_string(path).is_ok_and(|groups| groups.contains(container));
    if !is_ours || kill_process_group(pid, Signal::KILL).is_err() {
        tracing::warn!(
            container,
            "cannot end a command in a container; it ends with the container"
        );
    }
}
