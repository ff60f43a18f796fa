//! A container engine that answers, and its capabilities.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::{ImageInspect, SystemInfo};
use bollard::query_parameters::{
    KillContainerOptions, ListContainersOptions, RemoveContainerOptions,
};
use bollard::{API_DEFAULT_VERSION, Docker};

use crate::error::EngineError;

/// How long the engine may take for anything but a build, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The labels of our containers: the daemon, its run, and the sandbox.
const INSTANCE_LABEL: &str = "ringback.instance";
const RUN_LABEL: &str = "ringback.run";
const BOX_LABEL: &str = "ringback.box";
/// The engine's status for an unknown container or image,
const NOT_FOUND: u16 = 404;
/// and for a container that is not running or is already being removed.
const CONFLICT: u16 = 409;

/// An engine. A handle: clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    client: Docker,
    socket: Arc<Path>,
    owner: Arc<Owner>,
    pub(crate) facts: Arc<Facts>,
}

/// The owner of containers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The daemon, across restarts.
    pub(crate) instance: String,
    /// The current run.
    pub(crate) run: String,
}

/// The capabilities of an engine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) version: String,
    pub(crate) is_podman: bool,
    /// Its root is this user to the kernel.
    pub(crate) is_rootless: bool,
    /// Users in containers have other IDs to the kernel.
    pub(crate) maps_users: bool,
    pub(crate) has_seccomp: bool,
    pub(crate) limits_memory: bool,
    pub(crate) limits_processes: bool,
    pub(crate) limits_cpu: bool,
}

impl Engine {
    /// Connects, and negotiates a version.
    pub(crate) async fn connect(socket: PathBuf, owner: Arc<Owner>) -> Result<Self, EngineError> {
        let attempt = async {
            let path = socket.to_str().unwrap_or_default();
            let client = Docker::connect_with_unix(path, PATIENCE.as_secs(), API_DEFAULT_VERSION)?;
            let client = client.negotiate_version().await?;
            let version = client.version().await?;
            let is_podman = version
                .components
                .iter()
                .flatten()
                .any(|component| component.name.to_lowercase().contains("podman"));
            let facts = Facts { is_podman, ..Facts::of(&client.info().await?) };
            Ok((client, facts))
        };
        let (client, facts) = attempt.await.map_err(told(&socket, "report its capabilities"))?;
        Ok(Self { client, socket: socket.into(), owner, facts: Arc::new(facts) })
    }

    pub(crate) const fn client(&self) -> &Docker {
        &self.client
    }

    /// Returns the labels that identify our containers.
    pub(crate) fn labels(&self, name: &str) -> HashMap<String, String> {
        let Owner { instance, run } = &*self.owner;
        let labels = [(INSTANCE_LABEL, instance.as_str()), (RUN_LABEL, run), (BOX_LABEL, name)];
        labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into()
    }

    /// Converts an error of the client into one of ours.
    pub(crate) fn told(&self, action: &'static str) -> impl FnOnce(Error) -> EngineError {
        told(&self.socket, action)
    }

    /// Returns an image, or `None` if it does not exist.
    pub(crate) async fn image(&self, name: &str) -> Result<Option<ImageInspect>, EngineError> {
        if !is_image_name(name) {
            return Ok(None);
        }
        match self.client.inspect_image(name).await {
            Ok(image) => Ok(Some(image)),
            Err(Error::DockerResponseServerError { status_code: NOT_FOUND, .. }) => Ok(None),
            Err(error) => Err(self.told("look for an image")(error)),
        }
    }

    /// Sends a signal to the first process of a container. A container that is gone or not running
    /// is not an error.
    pub(crate) async fn kill(&self, name: &str, signal: &str) -> Result<(), EngineError> {
        let options = KillContainerOptions { signal: signal.to_owned() };
        let killed = self.client.kill_container(name, Some(options)).await;
        unless_gone(killed).map_err(self.told("signal a container"))
    }

    /// Ends and removes a container with everything in it.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptions { force: true, v: true, link: false };
        let removed = self.client.remove_container(name, Some(options)).await;
        unless_gone(removed).map_err(self.told("remove a container"))
    }

    /// Ends and removes leftovers of an earlier run, and returns their number.
    pub(crate) async fn sweep(&self) -> Result<usize, EngineError> {
        let Owner { instance, run } = &*self.owner;
        let label = format!("{INSTANCE_LABEL}={instance}");
        let filters = Some([("label".to_owned(), vec![label])].into());
        let options = ListContainersOptions { all: true, filters, ..Default::default() };
        let listed = self.client.list_containers(Some(options)).await;
        let mut left = listed.map_err(self.told("list containers"))?;
        left.retain(|container| {
            container.labels.as_ref().and_then(|labels| labels.get(RUN_LABEL)) != Some(run)
        });
        for id in left.iter().filter_map(|container| container.id.as_deref()) {
            self.remove(id).await?;
        }
        Ok(left.len())
    }
}

impl Facts {
    fn of(info: &SystemInfo) -> Self {
        let has = |option: &str| {
            let options = info.security_options.iter().flatten();
            let mut names = options.map(|option| option.trim_start_matches("name="));
            names.any(|name| name.split(',').next() == Some(option))
        };
        let is = |fact: Option<bool>| fact.unwrap_or(false);
        Self {
            version: info.server_version.clone().unwrap_or_default(),
            is_podman: false,
            is_rootless: has("rootless"),
            maps_users: has("userns"),
            has_seccomp: has("seccomp"),
            limits_memory: is(info.memory_limit),
            limits_processes: is(info.pids_limit),
            limits_cpu: is(info.cpu_cfs_quota),
        }
    }
}

/// Returns whether a name is safe to become a part of a path of the engine's API.
pub(crate) fn is_image_name(name: &str) -> bool {
    let is_allowed =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@');
    let parts = || name.split('/');
    !name.is_empty()
        && name.chars().all(is_allowed)
        && parts().all(|part| !part.is_empty() && !part.starts_with('.'))
}

fn unless_gone(done: Result<(), Error>) -> Result<(), Error> {
    match done {
        Err(error) if is_gone(&error) => Ok(()),
        done => done,
    }
}

/// Returns whether the container does not exist or is not running.
pub(crate) const fn is_gone(error: &Error) -> bool {
    matches!(error, Error::DockerResponseServerError { status_code: NOT_FOUND | CONFLICT, .. })
}

fn told(socket: &Path, action: &'static str) -> impl FnOnce(Error) -> EngineError {
    let socket = socket.to_owned();
    move |error| {
        if matches!(error, Error::SocketNotFoundError(_)) {
            return EngineError::Absent { socket };
        }
        if matches!(error, Error::RequestTimeoutError) {
            return EngineError::TooSlow { action, limit: PATIENCE };
        }
        if let Error::DockerResponseServerError { message, .. } = error {
            return EngineError::Refused { action, said: message };
        }
        match io_kind(&error) {
            Some(io::ErrorKind::PermissionDenied) => EngineError::Denied { socket },
            Some(io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
                EngineError::Absent { socket }
            }
            Some(_) | None => EngineError::Refused { action, said: error.to_string() },
        }
    }
}

/// Returns the system's error at the root of the chain.
fn io_kind(error: &Error) -> Option<io::ErrorKind> {
    let mut cause: Option<&(dyn StdError + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return Some(error.kind());
        }
        cause = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: an image name cannot reach any other part of the engine's API.
    #[test]
    fn a_name_of_an_image_is_not_a_path() {
        for name in ["agents", "agents:1.0", "ringback/agents:latest", "r.example:5000/a@sha256:ab"]
        {
            assert!(is_image_name(name), "{name}");
        }
        for name in
            ["", "../containers", "a/../../containers/x", "a/", "a?b", "a b", "a%2f..", "/a"]
        {
            assert!(!is_image_name(name), "{name}");
        }
    }

    /// Rule: a capability that an engine does not report is missing.
    #[test]
    fn an_engine_gives_only_what_it_says() {
        let options = ["name=seccomp,profile=default", "name=rootless"].map(str::to_owned).to_vec();
        let info = SystemInfo {
            security_options: Some(options),
            memory_limit: Some(true),
            pids_limit: Some(false),
            ..SystemInfo::default()
        };
        let expected =
            Facts { is_rootless: true, has_seccomp: true, limits_memory: true, ..Facts::default() };
        assert_eq!(Facts::of(&info), expected);
    }
}
