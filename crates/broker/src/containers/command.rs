//! Commands in a running container, or in their own sandbox.

use std::sync::Arc;
use std::time::Duration;

use ringback_core::containers::{ContainerState, Place};
use ringback_proto::ids::{ProjectId, WorkspaceId};
use ringback_proto::record::ProjectRecord;
use ringback_proto::request::ExecResultResponse;
use ringback_proto::{Certainty, Error, ErrorKind, Result};
use ringback_sandbox::{
    CapturedOutput, ConfinedProgram, ExecEnd, ExecError, ExecOutput, ExecSpec, Output, Pipes,
    SandboxSpec,
};
use tokio::io::AsyncReadExt as _;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::Containers;
use super::keeper::{code, ended};
use super::lifecycle::{Interior, not_started, refused};
use crate::confinement::Boxes;
use crate::disk::BoxEnd;
use crate::failure;
use crate::handler::Context;
use crate::sync::lock;

/// Bytes kept of each output stream of a command.
const OUTPUT_BYTES_MAX: usize = 1 << 20;
/// Bytes per read.
const PIECE_BYTES: usize = 16 << 10;

/// A command to run.
#[derive(Debug)]
pub(crate) struct CommandSpec {
    /// A program and its arguments.
    pub(crate) command: Vec<String>,
    /// Its working directory in the sandbox; the workspace if absent.
    pub(crate) working_dir: Option<String>,
    /// Its time limit.
    pub(crate) limit: Duration,
    /// The workspace it runs on, in its own sandbox.
    pub(crate) workspace: Option<WorkspaceId>,
}

/// A command that counts as running until this is dropped.
struct CommandGuard {
    containers: Arc<Containers>,
    id: u64,
    stop: CancellationToken,
}

impl Drop for CommandGuard {
    fn drop(&mut self) {
        lock(&self.containers.table).command_ended(self.id);
        self.containers.command_ended.notify_waiters();
    }
}

/// The stream that a reader captured.
enum CapturedStream {
    Out(CapturedOutput),
    Err(CapturedOutput),
}

impl Containers {
    /// Runs a command and waits for its end.
    ///
    /// # Cancel safety
    /// When stopped, the command ends with all it started; the job waits for that.
    pub(crate) async fn run_command(
        self: &Arc<Self>,
        ctx: &Context,
        project: ProjectId,
        spec: CommandSpec,
    ) -> Result<ExecResultResponse> {
        let record = self.workspaces.visible_project(&ctx.principal, project).await?;
        if let Some(workspace) = spec.workspace {
            self.workspaces.workspace_of(&ctx.principal, &record, workspace).await?;
        }
        let boxes = self.sandboxes.boxes("a command").await?;
        self.sandboxes.check_boxes(&record).await?;
        let place = match spec.workspace {
            None if boxes.takes_commands() => Place::Container,
            workspace => Place::Box(workspace),
        };
        let counted = self.counted(project, place, &ctx.stop)?;
        // Check again: a deletion in between would not have waited for this command.
        let record = self.workspaces.visible_project(&ctx.principal, project).await?;
        if let Some(workspace) = spec.workspace {
            self.workspaces.files_of(&ctx.principal, project, workspace).await?;
        }
        let (limit, program) = (spec.limit, spec.command.first().cloned().unwrap_or_default());
        let containers = Arc::clone(self);
        let end = BoxEnd::by(counted.stop.clone());
        let ender = end.clone();
        let running = ctx.finishing(async move {
            let _counted = counted;
            match place {
                // The container itself is watched, with all that runs in it.
                Place::Container => containers.in_container(project, spec, &ender.stop).await,
                Place::Box(_) => containers.in_box(&boxes, &record, spec, ender).await,
            }
        });
        let Some(executed) = running.await.map_err(failure::internal)?? else {
            if ctx.stop.is_cancelled() {
                // The job was stopped, and reports that itself.
                std::future::pending::<()>().await;
            }
            let error = match end.why() {
                Some(why) => Error::new(ErrorKind::ToolFailed, format!("command stopped: {why}")),
                None => Error::cancelled("its project is being deleted"),
            };
            return Err(error.with_certainty(Certainty::Ran));
        };
        match executed.end {
            ExecEnd::Exited(exit_code) => Ok(shown(exit_code, &executed)),
            ExecEnd::TimedOut => {
                let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
                let error = Error::timeout(&format!("`{program}`"), limit_ms);
                Err(error.with_certainty(Certainty::Ran))
            }
        }
    }

    fn counted(
        self: &Arc<Self>,
        project: ProjectId,
        place: Place,
        stop: &CancellationToken,
    ) -> Result<CommandGuard> {
        let stop = stop.child_token();
        let started = lock(&self.table).begin_command(project, place, stop.clone());
        let id = started.map_err(|refusal| refused(project, refusal))?;
        Ok(CommandGuard { containers: Arc::clone(self), id, stop })
    }

    /// Runs a command in the container of its project, which must be running. `None` if stopped.
    async fn in_container(
        &self,
        project: ProjectId,
        spec: CommandSpec,
        stop: &CancellationToken,
    ) -> Result<Option<ExecOutput>> {
        let found = lock(&self.table).find(project);
        let Some(ContainerState::Running(live)) = found else { return Err(not_running(project)) };
        let exec = live.handle.exec(ExecSpec {
            command: spec.command.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            working_dir: spec.working_dir.map(Into::into),
            output_bytes_max: OUTPUT_BYTES_MAX,
            limit: spec.limit,
        });
        tokio::select! {
            biased;
            executed = exec => executed.map(Some).map_err(|error| not_executed(project, &error)),
            () = stop.cancelled() => Ok(None),
        }
    }

    /// Runs a command in its own sandbox, with a workspace or the directory of the project's
    /// container. `None` if stopped.
    async fn in_box(
        self: &Arc<Self>,
        boxes: &Boxes,
        project: &ProjectRecord,
        spec: CommandSpec,
        end: BoxEnd,
    ) -> Result<Option<ExecOutput>> {
        let dir = match spec.workspace {
            Some(workspace) => self.workspaces.workspace_path(workspace),
            None => self.container_dir(project.id).await?,
        };
        let image = self.images.ready_image(boxes, project).await?;
        let CommandSpec { command, working_dir, limit, .. } = spec;
        let _watch = self.disk.watch_box(project.id, dir.clone(), end.clone()).await;
        let interior = Interior { command, dir, image, working_dir };
        let spec = self.box_spec(boxes, interior, false).await?;
        boxed(boxes, spec, limit, &end.stop).await
    }
}

/// Runs a program in its own sandbox, and ends the sandbox with it.
async fn boxed(
    boxes: &Boxes,
    spec: SandboxSpec,
    limit: Duration,
    stop: &CancellationToken,
) -> Result<Option<ExecOutput>> {
    let confined = boxes.sandbox.start(spec).await.map_err(|error| not_started(&error))?;
    let ConfinedProgram { pipes: Pipes { stdin, stdout, stderr }, mut process, hold } = confined;
    // Nothing is ever written to it.
    drop(stdin);
    let mut readers = JoinSet::new();
    readers.spawn(async move { CapturedStream::Out(captured(stdout).await) });
    readers.spawn(async move { CapturedStream::Err(captured(stderr).await) });
    let end = tokio::select! {
        biased;
        waited = process.wait() => waited.map(|status| Some(ExecEnd::Exited(code(status)))),
        () = stop.cancelled() => Ok(None),
        () = tokio::time::sleep(limit) => Ok(Some(ExecEnd::TimedOut)),
    };
    // End what it left running; only then is the output complete.
    let said = ended(hold, &mut readers).await;
    let Some(end) = end.map_err(failure::internal)? else { return Ok(None) };
    let mut executed =
        ExecOutput { end, stdout: CapturedOutput::default(), stderr: CapturedOutput::default() };
    for said in said {
        match said {
            CapturedStream::Out(captured) => executed.stdout = captured,
            CapturedStream::Err(captured) => executed.stderr = captured,
        }
    }
    Ok(Some(executed))
}

/// Reads an output to its end, and keeps the beginning.
async fn captured(mut output: Output) -> CapturedOutput {
    let mut captured = CapturedOutput::default();
    let mut piece = vec![0; PIECE_BYTES];
    // An error also ends the output.
    while let Ok(n_read @ 1..) = output.read(&mut piece).await {
        let n_kept = n_read.min(OUTPUT_BYTES_MAX - captured.bytes.len());
        captured.bytes.extend_from_slice(&piece[..n_kept]);
        captured.is_truncated |= n_kept < n_read;
    }
    captured
}

fn shown(exit_code: i32, executed: &ExecOutput) -> ExecResultResponse {
    let ExecOutput { stdout, stderr, .. } = executed;
    let text = |captured: &CapturedOutput| String::from_utf8_lossy(&captured.bytes).into_owned();
    ExecResultResponse {
        exit_code,
        stdout: text(stdout),
        stderr: text(stderr),
        truncated: stdout.is_truncated || stderr.is_truncated,
    }
}

fn not_running(project: ProjectId) -> Error {
    let message = format!(
        "the container of {project} is not running; start it with `container_start`, or set \
         `workspace_id` to run the command in its own sandbox"
    );
    Error::new(ErrorKind::Conflict, message)
}

fn not_executed(project: ProjectId, error: &ExecError) -> Error {
    match error {
        ExecError::Gone { .. } => not_running(project),
        ExecError::Empty | ExecError::NotText { .. } => {
            Error::invalid_field("command", error.to_string())
        }
        ExecError::NotPossible => Error::new(ErrorKind::Conflict, error.to_string()),
        ExecError::Engine(_) => {
            let message = format!("the command did not run: {}", failure::chain(error));
            Error::new(ErrorKind::ToolFailed, message).with_certainty(Certainty::MayHaveRun)
        }
    }
}
