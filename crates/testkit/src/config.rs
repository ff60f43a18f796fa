//! The configuration of a test's broker.

use std::sync::Arc;
use std::time::Duration;

use camino::Utf8Path;
use ringback_broker::studio::NoStudio;
use ringback_broker::{
    AgentCommand, Config, ConfigView, ContainerSettings, LineSettings, NoGardenProcess,
    SessionSettings,
};
use ringback_proto::value::Value;

/// The time for agents to end on their own: those of tests have nothing to save.
const END_GRACE: Duration = Duration::from_millis(50);

/// The script of an agent that is busy until it gets `rest`: tests make its calls themselves.
pub const IDLER: &str = r#"while read -r line; do
    case "$line" in *rest*) echo '{"type":"message","text":"I rest"}'
        echo '{"type":"done"}'; echo '{"type":"done"}';; esac
done"#;

/// An empty configuration, as tools see it.
#[derive(Debug)]
pub struct NoConfig;

impl ConfigView for NoConfig {
    fn get(&self, section: Option<&str>, _: Option<&str>) -> Option<Value> {
        section.is_none().then(|| Value::Map(Vec::new()))
    }
}

/// Returns the configuration of a broker below `root`, with room for everything. Its data is in
/// `data`, its sockets are in `run`.
#[must_use]
pub fn broker_config(root: &Utf8Path) -> Config {
    let mut sessions = SessionSettings::in_dir(root.join("run"));
    sessions.end_grace = END_GRACE;
    Config {
        data_dir: root.join("data"),
        file_roots: Vec::new(),
        version: "test".to_owned(),
        view: Arc::new(NoConfig),
        calls_per_principal_max: 2000,
        jobs_running_max: 2000,
        jobs_live_max: 10_000,
        jobs_per_principal_max: 10_000,
        events_kept_max: 10_000,
        uploads_open_max: 64,
        upload_bytes_max: 4 << 30,
        call_ms_max: 3_600_000,
        lines: LineSettings::default(),
        studio: Arc::new(NoStudio),
        garden: Arc::new(NoGardenProcess),
        sessions,
        containers: ContainerSettings::default(),
    }
}

/// Returns an agent that is a shell script.
#[must_use]
pub fn shell_agent(script: &str) -> AgentCommand {
    let command = ["/bin/sh", "-c", script].map(str::to_owned).to_vec();
    AgentCommand { command, ..AgentCommand::default() }
}
