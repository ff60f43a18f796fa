//! A temporary daemon that lives as long as a command, in a temporary directory.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use metrics_exporter_prometheus::PrometheusBuilder;
use ringback_proto::secret::Secret;

use crate::config::{Config, Environment, ServeFlags};
use crate::daemon::{Daemon, DaemonAddresses};
use crate::failure::Failure;

/// A daemon in this process, on free ports.
pub(super) struct TemporaryDaemon {
    daemon: Daemon,
    dir: tempfile::TempDir,
}

impl TemporaryDaemon {
    /// Starts a daemon. It ignores this user's environment and configuration, so that it is the
    /// same everywhere; `change` edits the defaults.
    pub(super) async fn start(
        purpose: &str,
        change: impl FnOnce(&mut Config),
    ) -> Result<Self, Failure> {
        let action = "create a temporary directory";
        let dir = tempfile::Builder::new()
            .prefix(&format!("ringback-{purpose}-"))
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .map_err(|source| Failure::System { action, source })?;
        let any = "tcp://127.0.0.1:0".to_owned();
        let flags = ServeFlags {
            data_dir: Some(dir.path().display().to_string()),
            http: Some("127.0.0.1:0".to_owned()),
            hoot: Some(any.clone()),
            iopub: Some(any),
            ..ServeFlags::default()
        };
        let mut config = Config::load(&flags, &Environment::default())?;
        change(&mut config);
        let metrics = PrometheusBuilder::new().build_recorder().handle();
        let daemon = Daemon::start(&config, false, metrics).await?;
        Ok(Self { daemon, dir })
    }

    pub(super) const fn listening(&self) -> &DaemonAddresses {
        self.daemon.listening()
    }

    /// Reads the token that the first start created.
    pub(super) fn token(&self) -> Result<Secret, Failure> {
        let path = self.listening().token_file.clone().unwrap_or_default();
        let text = std::fs::read_to_string(&path)
            .map_err(|source| Failure::TokenFile { path: path.clone(), source })?;
        Ok(Secret::new(text.trim().to_owned()))
    }

    /// Stops the daemon and removes its directory.
    pub(super) async fn close(self) -> Result<(), Failure> {
        self.daemon.stop().await;
        let path = self.dir.path().to_owned();
        self.dir.close().map_err(|source| Failure::File { action: "remove", path, source })
    }
}
