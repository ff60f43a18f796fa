//! Probes how this machine can confine agents, without a daemon.

use ringback_sandbox::{BackendChoice, Probe, Sandbox, SandboxSettings};

use crate::config;
use crate::failure::Failure;

/// Creates a sandbox with the configured settings, in a temporary directory, to find out.
pub(crate) async fn probe(config: &config::Sandbox) -> Result<Probe, Failure> {
    let failed = |source| Failure::System { action: "create a temporary directory", source };
    let dir = tempfile::Builder::new().prefix("ringback-").tempdir().map_err(failed)?;
    let settings = SandboxSettings {
        backend: config.choice().unwrap_or(BackendChoice::Auto),
        program: config.bwrap.clone(),
        docker: config.docker(),
        ..SandboxSettings::in_dir(dir.path())
    };
    let sandbox = Sandbox::open(settings).map_err(|error| Failure::Wrong(error.to_string()))?;
    Ok(sandbox.probe(&config.limits()).await)
}
