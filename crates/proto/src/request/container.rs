//! Containers of projects and their images: `container_*`, `image_rebuild`.

use super::wire_struct;
use crate::ids::{ProjectId, WorkspaceId};

/// Whether a container runs.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    serde::Serialize,
    serde::Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ContainerStatus {
    /// Its program runs.
    Running,
    /// It was never started, was stopped, or its program has ended.
    Stopped,
}

impl ContainerStatus {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Stopped => "stopped",
        }
    }
}

wire_struct! {
    /// Whose container to start.
    ContainerStartRequest {
        /// The project.
        project_id: ProjectId,
        /// What runs in it until it is stopped: a program and its arguments. Something that waits if
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        command: Option<Vec<String>>,
    }

    /// Whose container to stop.
    ContainerStopRequest {
        /// The project.
        project_id: ProjectId,
    }

    /// How the container of a project is.
    ContainerStateResponse {
        /// The project.
        project_id: ProjectId,
        /// Whether it runs.
        status: ContainerStatus,
        /// What makes it: `docker` or `bubblewrap`.
        backend: String,
        /// The image it is made of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// Since when it runs, or does not; absent if it was never started.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<u64>,
        /// How its program ended: its exit code, or 128 and the number of the signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    }

    /// The container of a project, in short.
    ContainerInfo {
        /// Whether it runs.
        status: ContainerStatus,
        /// What makes it: `docker` or `bubblewrap`.
        backend: String,
        /// The image it is made of.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
        /// Since when it runs, or does not.
        since: u64,
        /// How its program ended: its exit code, or 128 and the number of the signal that ended it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i32>,
    }

    /// Whose container's output.
    ContainerLogsRequest {
        /// The project.
        project_id: ProjectId,
        /// At most so many lines, the last ones: 200 if absent, 10000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        lines: Option<u32>,
    }

    /// What the program of a container wrote, to standard output and error.
    ContainerLogsResponse {
        /// The last lines.
        text: String,
        /// Whether there was more before them.
        truncated: bool,
    }

    /// A command to run in a container.
    ContainerExecRequest {
        /// The project.
        project_id: ProjectId,
        /// A program and its arguments. No shell reads them.
        command: Vec<String>,
        /// Where it starts, such as `/workspace/src`; `/workspace` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        working_dir: Option<String>,
        /// After how long it is ended: 120000 if absent, 3600000 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        timeout_ms: Option<u64>,
        /// Run it in a box of its own with this workspace at `/workspace`, in place of the container.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        workspace_id: Option<WorkspaceId>,
    }

    /// How a command ended.
    ExecResultResponse {
        /// Its exit code, or 128 and the number of the signal that ended it.
        exit_code: i32,
        /// What it wrote to standard output, up to 1 MiB.
        stdout: String,
        /// What it wrote to standard error, up to 1 MiB.
        stderr: String,
        /// Whether it wrote more than is here.
        truncated: bool,
    }

    /// Which image to build anew: one of these.
    #[derive(Default)]
    ImageRebuildRequest {
        /// The image of this project.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project_id: Option<ProjectId>,
        /// The image of this name in the configuration (`sandbox.images`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<String>,
    }

    /// An image that was built.
    ImageRebuiltResponse {
        /// Its name in the configuration.
        image: String,
        /// What the engine knows its content by.
        digest: String,
    }
}
