//! A broker with a sandbox, and shortcuts to its containers.

use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use std::time::Duration;

use ringback_broker::{Config, Confinement, Credential, SandboxRules};
use ringback_proto::error::ToolError;
use ringback_proto::ids::{ProjectId, WorkspaceId};
use ringback_proto::request::{
    ContainerExecRequest, ContainerLogsRequest, ContainerLogsResponse, ContainerStartRequest,
    ContainerStateResponse, ContainerStopRequest, ExecResultResponse, ProjectGetRequest,
    ProjectResponse, SessionResponse, SessionSpawnRequest,
};
use ringback_sandbox::{BackendChoice, DockerSettings};
use ringback_testkit::{engine, until};

use crate::common::{World, result, start_with};
use crate::confinement::{Inside, rules};
use crate::sessions::{call, end, project, with_echo};

/// The process that waits in a container without a command.
const WAITS: &str = "#!/bin/sh\ntrap 'exit 0' TERM\necho waits\nwhile :; do sleep 0.05; done\n";

/// A daemon with containers of one kind.
pub(crate) struct Place {
    pub(crate) fixture: World,
    pub(crate) who: Credential,
    pub(crate) backend: BackendChoice,
}

impl Place {
    pub(crate) async fn bubblewrap() -> Self {
        Self::with(BackendChoice::Bubblewrap, |_| ()).await
    }

    /// With containers of an engine; `None` where the tests are configured to run without one.
    pub(crate) async fn docker() -> Option<Self> {
        engine::socket()?;
        Some(Self::with(BackendChoice::Docker, |_| ()).await)
    }

    pub(crate) async fn with(backend: BackendChoice, change: impl FnOnce(&mut Config)) -> Self {
        let fixture = start_with(|config| {
            with_containers(config, backend);
            change(config);
        });
        let fixture = fixture.await;
        Self { fixture, who: Credential::local(), backend }
    }

    /// The same place after a restart of the daemon, without what a test configured.
    pub(crate) async fn restarted(self) -> Self {
        let Self { fixture, who, backend } = self;
        let plain = |config: &mut Config| {
            with_containers(config, backend);
            config.containers.images.clear();
        };
        Self { fixture: fixture.restart_with(Duration::from_secs(5), plain).await, who, backend }
    }

    pub(crate) fn is_docker(&self) -> bool {
        self.backend == BackendChoice::Docker
    }

    pub(crate) async fn project(&self) -> ProjectId {
        project(&self.fixture, &self.who).await
    }

    /// A workspace that a session had.
    pub(crate) async fn workspace(&self, project: ProjectId) -> WorkspaceId {
        let spawn = SessionSpawnRequest {
            project_id: project,
            workspace_id: None,
            create_workspace: true,
            agent: None,
            context: None,
            caller_id: None,
            caller_tools: None,
            network: None,
            limits: None,
            toolchains: None,
            model: None,
            permissions: None,
        };
        let session: SessionResponse = call(&self.fixture, &self.who, spawn).await;
        end(&self.fixture, &self.who, session.session_id).await;
        session.workspace_id
    }

    /// Starts a container that runs a script.
    pub(crate) async fn start(&self, project: ProjectId, script: &str) -> ContainerStateResponse {
        call(&self.fixture, &self.who, runs(project, script)).await
    }

    pub(crate) async fn stop(&self, project: ProjectId) -> ContainerStateResponse {
        call(&self.fixture, &self.who, ContainerStopRequest { project_id: project }).await
    }

    pub(crate) async fn shown(&self, project: ProjectId) -> ProjectResponse {
        call(&self.fixture, &self.who, ProjectGetRequest { project_id: project }).await
    }

    pub(crate) async fn logs(&self, project: ProjectId) -> ContainerLogsResponse {
        let request = ContainerLogsRequest { project_id: project, lines: None };
        call(&self.fixture, &self.who, request).await
    }

    /// Waits until the container has written this text.
    pub(crate) async fn until_it_wrote(&self, project: ProjectId, text: &str) -> String {
        until("the container writes", async || {
            let logs = self.logs(project).await.text;
            logs.contains(text).then_some(logs)
        })
        .await
    }

    pub(crate) async fn exec(
        &self,
        request: ContainerExecRequest,
    ) -> Result<ExecResultResponse, ToolError> {
        let response = result(&self.fixture.broker, &self.who, request).await?;
        Ok(ExecResultResponse::try_from(response).unwrap())
    }

    /// Returns the output of a script in the container, which must succeed. Where commands run
    /// inside a container, it must be running.
    pub(crate) async fn says(&self, project: ProjectId, script: &str) -> String {
        let done = self.exec(executes(project, script)).await.unwrap();
        assert_eq!((done.exit_code, done.stderr.as_str()), (0, ""), "{done:?}");
        done.stdout
    }

    /// Returns whether a directory of this project exists.
    pub(crate) fn has_dir(&self, project: ProjectId) -> bool {
        let dir = self.fixture.dir().join("data/containers");
        dir.join(project.to_string()).exists()
    }
}

pub(crate) fn script(script: &str) -> Vec<String> {
    ["/bin/sh", "-c", script].map(str::to_owned).into()
}

pub(crate) fn runs(project: ProjectId, text: &str) -> ContainerStartRequest {
    ContainerStartRequest { project_id: project, command: Some(script(text)) }
}

pub(crate) fn executes(project: ProjectId, text: &str) -> ContainerExecRequest {
    ContainerExecRequest {
        project_id: project,
        command: script(text),
        working_dir: None,
        timeout_ms: None,
        workspace_id: None,
    }
}

/// Returns the processes of this machine with these words as their command line.
pub(crate) fn n_running(words: &[&str]) -> usize {
    let expected: String = words.iter().map(|word| format!("{word}\0")).collect();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| line == expected.as_bytes()).count()
}

/// Returns a number of seconds that no other test sleeps.
pub(crate) fn unique_seconds() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let n = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("{}", 100_000 + u64::from(std::process::id()) * 100 + u64::from(n))
}

fn with_containers(config: &mut Config, backend: BackendChoice) {
    with_echo(config);
    config.sessions.end_grace = Duration::from_millis(500);
    let mut rules = SandboxRules { backend, ..rules(config) };
    if backend == BackendChoice::Docker {
        let socket = engine::socket().unwrap_or_default().to_owned();
        rules.docker = DockerSettings { socket, image: Some(engine::IMAGE.to_owned()) };
    }
    config.sessions.confinement = Confinement::Sandbox(Box::new(rules));
    let waits = config.data_dir.with_file_name("waits");
    std::fs::write(&waits, WAITS).unwrap();
    std::fs::set_permissions(&waits, PermissionsExt::from_mode(0o755)).unwrap();
    config.sessions.inside = Some(Arc::new(Inside(waits)));
}
