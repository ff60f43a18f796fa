//! Containers of projects and their images: `container_*`, `image_rebuild`.

use std::time::Duration;

use ringback_proto::ids::ProjectId;
use ringback_proto::request::{
    ContainerExecRequest, ContainerInfo, ContainerLogsRequest, ContainerLogsResponse,
    ContainerStartRequest, ContainerStateResponse, ContainerStatus, ContainerStopRequest,
    ExecResultResponse, ImageRebuildRequest, ImageRebuiltResponse,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, ErrorKind, Result};

use super::Native;
use crate::containers::CommandSpec;
use crate::handler::{Context, Handler};

/// Lines of a container's output by default, and at most.
const LINES: u32 = 200;
const LINES_MAX: u32 = 10_000;
/// The default time limit of a command: as long as a caller of its class waits.
const COMMAND_MS: u64 = 120_000;
/// An hour is long for a test suite.
const COMMAND_MS_MAX: u64 = 3_600_000;
/// The words of a command, and the characters of all of them: far below the system's limits.
const WORDS_MAX: usize = 256;
const WORDS_BYTES_MAX: usize = 64 << 10;
/// The most characters of a path.
const PATH_BYTES_MAX: usize = 4096;

impl Handler<tools::ContainerStart> for Native {
    async fn handle(
        ctx: Context,
        request: ContainerStartRequest,
    ) -> Result<ContainerStateResponse> {
        let ContainerStartRequest { project_id, command } = request;
        if let Some(command) = &command {
            check_command(command)?;
        }
        let started =
            ctx.rooms.containers.start_container(&ctx.principal, project_id, command).await?;
        Ok(state(project_id, started))
    }
}

impl Handler<tools::ContainerStop> for Native {
    async fn handle(ctx: Context, request: ContainerStopRequest) -> Result<ContainerStateResponse> {
        let id = request.project_id;
        ctx.rooms.workspaces.visible_project(&ctx.principal, id).await?;
        match ctx.rooms.containers.stop_container(id).await? {
            Some(stopped) => Ok(state(id, stopped)),
            None => Ok(ContainerStateResponse {
                project_id: id,
                status: ContainerStatus::Stopped,
                backend: ctx.rooms.sandboxes.boxes("a container").await?.backend().to_owned(),
                image: None,
                since: None,
                exit_code: None,
            }),
        }
    }
}

impl Handler<tools::ContainerLogs> for Native {
    async fn handle(ctx: Context, request: ContainerLogsRequest) -> Result<ContainerLogsResponse> {
        let id = request.project_id;
        let lines = match request.lines.unwrap_or(LINES) {
            0 => return Err(Error::invalid_field("lines", "`lines` must be at least 1")),
            lines => lines.min(LINES_MAX) as usize,
        };
        ctx.rooms.workspaces.visible_project(&ctx.principal, id).await?;
        let (text, truncated) = ctx.rooms.containers.logs(id, lines).ok_or_else(|| {
            let message = format!(
                "{id} has had no container since the daemon started; start one with \
                 `container_start`"
            );
            Error::new(ErrorKind::NotFound, message)
        })?;
        Ok(ContainerLogsResponse { text, truncated })
    }
}

impl Handler<tools::ContainerExec> for Native {
    async fn handle(ctx: Context, request: ContainerExecRequest) -> Result<ExecResultResponse> {
        let ContainerExecRequest { project_id, command, working_dir, timeout_ms, workspace_id } =
            request;
        check_command(&command)?;
        if let Some(dir) = &working_dir {
            check_working_dir(dir)?;
        }
        let limit_ms = match timeout_ms.unwrap_or(COMMAND_MS) {
            0 => return Err(Error::invalid_field("timeout_ms", "`timeout_ms` must be at least 1")),
            limit_ms => limit_ms.min(COMMAND_MS_MAX),
        };
        let limit = Duration::from_millis(limit_ms);
        let spec = CommandSpec { command, working_dir, limit, workspace: workspace_id };
        ctx.rooms.containers.run_command(&ctx, project_id, spec).await
    }
}

impl Handler<tools::ImageRebuild> for Native {
    async fn handle(ctx: Context, request: ImageRebuildRequest) -> Result<ImageRebuiltResponse> {
        ctx.rooms.images.rebuild_image(&ctx, &request).await
    }
}

fn state(project_id: ProjectId, container: ContainerInfo) -> ContainerStateResponse {
    let ContainerInfo { status, backend, image, since, exit_code } = container;
    ContainerStateResponse { project_id, status, backend, image, since: Some(since), exit_code }
}

fn check_command(command: &[String]) -> Result<()> {
    let n_bytes: usize = command.iter().map(String::len).sum();
    let problem = if command.first().is_none_or(String::is_empty) {
        "a command must name a program".to_owned()
    } else if command.len() > WORDS_MAX || n_bytes > WORDS_BYTES_MAX {
        format!("a command can have at most {WORDS_MAX} words and {WORDS_BYTES_MAX} bytes")
    } else if command.iter().any(|word| word.contains('\0')) {
        "a command must not contain zero bytes".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::invalid_field("command", problem))
}

fn check_working_dir(dir: &str) -> Result<()> {
    if dir.starts_with('/') && dir.len() <= PATH_BYTES_MAX && !dir.contains('\0') {
        return Ok(());
    }
    let message = format!(
        "a working directory must be an absolute path, such as `/workspace/src`, of at most \
         {PATH_BYTES_MAX} bytes"
    );
    Err(Error::invalid_field("working_dir", message))
}
