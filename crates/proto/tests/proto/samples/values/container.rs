//! Samples of the tools for containers and images.

use super::*;

sample!(
    ContainerStartRequest,
    Self { project_id: project(), command: None },
    Self { project_id: project(), command: Some(vec![awkward(), String::new()]) }
);
sample!(ContainerStopRequest, Self { project_id: project() });
sample!(
    ContainerStateResponse,
    Self {
        project_id: project(),
        status: ContainerStatus::Stopped,
        backend: String::new(),
        image: None,
        since: None,
        exit_code: None,
    },
    Self {
        project_id: project(),
        status: ContainerStatus::Running,
        backend: "bubblewrap".into(),
        image: Some(awkward()),
        since: Some(TWO_TO_THE_63),
        exit_code: Some(137),
    }
);
sample!(
    ContainerLogsRequest,
    Self { project_id: project(), lines: None },
    Self { project_id: project(), lines: Some(u32::MAX) }
);
sample!(
    ContainerLogsResponse,
    Self { text: String::new(), truncated: false },
    Self { text: awkward(), truncated: true }
);
sample!(
    ContainerExecRequest,
    Self {
        project_id: project(),
        command: vec![],
        working_dir: None,
        timeout_ms: None,
        workspace_id: None,
    },
    Self {
        project_id: project(),
        command: vec!["sh".into(), "-c".into(), awkward()],
        working_dir: Some(awkward()),
        timeout_ms: Some(u64::MAX),
        workspace_id: Some(WorkspaceId::from_random([0x55; 16])),
    }
);
sample!(
    ExecResultResponse,
    Self { exit_code: 0, stdout: String::new(), stderr: String::new(), truncated: false },
    Self { exit_code: i32::MIN, stdout: awkward(), stderr: awkward(), truncated: true }
);
sample!(
    ImageRebuildRequest,
    Self::default(),
    Self { project_id: Some(project()), image: Some(awkward()) }
);
sample!(
    ImageRebuiltResponse,
    Self { image: String::new(), digest: String::new() },
    Self { image: awkward(), digest: format!("sha256:{}", "ab".repeat(32)) }
);
