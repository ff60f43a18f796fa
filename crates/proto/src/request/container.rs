//! Containers of projects and their images: `container_*`, `image_rebuild`.

use super::wire_struct;
use crate::ids::{ProjectId, WorkspaceId};
use crate::wire_enum::wire_enum;

wire_enum! {
    /// The state of a container.
    ContainerStatus {
        /// Its program is running.
        Running = "running",
        /// It was never started, was stopped, or its program has ended.
        Stopped = "stopped",
    }
}

wire_struct! {
    /// The container to start.
    ContainerStartRequest {
        /// The id of the project.
        project_id: ProjectId,
        /// The program to run in it until it is stopped, with its arguments; a program that only
        /// waits if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<Vec<String>>,
    }

    /// The container to stop.
    ContainerStopRequest {
        /// The id of the project.
        project_id: ProjectId,
    }

    /// The state of a project's container.
    ContainerStateResponse {
        /// The id of the project.
        project_id: ProjectId,
        /// Whether it is running.
        status: ContainerStatus,
        /// Its backend: `docker` or `bubblewrap`.
        backend: String,
        /// Its image.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// When it started, or stopped running; absent if it was never started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<u64>,
        /// The exit code of its program, or 128 plus the number of the signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    }

    /// A summary of a project's container.
    ContainerInfo {
        /// Whether it is running.
        status: ContainerStatus,
        /// Its backend: `docker` or `bubblewrap`.
        backend: String,
        /// Its image.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// When it started, or stopped running.
        since: u64,
        /// The exit code of its program, or 128 plus the number of the signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    }

    /// The container whose output to read.
    ContainerLogsRequest {
        /// The id of the project.
        project_id: ProjectId,
        /// The maximum number of lines to return, from the end: default 200, at most 10000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<u32>,
    }

    /// The output of a container's program, from stdout and stderr.
    ContainerLogsResponse {
        /// The last lines of output.
        text: String,
        /// Whether earlier lines were left out.
        truncated: bool,
    }

    /// A command to run in a container.
    ContainerExecRequest {
        /// The id of the project.
        project_id: ProjectId,
        /// The program and its arguments. They are not passed through a shell.
        command: Vec<String>,
        /// The working directory, such as `/workspace/src`; `/workspace` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        working_dir: Option<String>,
        /// How long it may run, in milliseconds: default 120000, at most 3600000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// A workspace. If present, the command runs in its own sandbox with this workspace at
        /// `/workspace`, instead of in the container.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace_id: Option<WorkspaceId>,
    }

    /// The result of a command.
    ExecResultResponse {
        /// Its exit code, or 128 plus the number of the signal that ended it.
        exit_code: i32,
        /// Its standard output, up to 1 MiB.
        stdout: String,
        /// Its standard error, up to 1 MiB.
        stderr: String,
        /// Whether some output was left out.
        truncated: bool,
    }

    /// The image to rebuild. Give one of the two fields.
    #[derive(Default)]
    ImageRebuildRequest {
        /// A project whose image to rebuild.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project_id: Option<ProjectId>,
        /// The name of the image in the configuration (`sandbox.images`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
    }

    /// An image that was built.
    ImageRebuiltResponse {
        /// Its name in the configuration.
        image: String,
        /// The digest under which the engine knows its content.
        digest: String,
    }
}
