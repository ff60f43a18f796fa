//! A container engine that answers, and what it says about itself.

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

/// How long the engine may take for anything but a build, also on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(60);
/// What containers of ours are known by: which daemon's they are, which of its runs', and which box.
const INSTANCE_LABEL: &str = "ringback.instance";
const RUN_LABEL: &str = "ringback.run";
const BOX_LABEL: &str = "ringback.box";
/// What the engine says where there is no such container or image,
const NOT_FOUND: u16 = 404;
/// and where a container does not run, or is already being removed.
const CONFLICT: u16 = 409;

/// An engine. A handle: clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    client: Docker,
    socket: Arc<Path>,
    owner: Arc<Owner>,
    pub(crate) facts: Arc<Facts>,
}

/// Whose containers these are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owner {
    /// The daemon, also after a restart.
    pub(crate) instance: String,
    /// This run of it.
    pub(crate) run: String,
}

/// What an engine can give.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) version: String,
    pub(crate) is_podman: bool,
    /// Its root is this user to the kernel.
    pub(crate) is_rootless: bool,
    /// Users in containers are others to the kernel.
    pub(crate) maps_users: bool,
    pub(crate) has_seccomp: bool,
    pub(crate) limits_memory: bool,
    pub(crate) limits_processes: bool,
    pub(crate) limits_cpu: bool,
}

impl Engine {
    /// Says hello, and agrees on a version.
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
        let (client, facts) = attempt.await.map_err(told(&socket, "say what it can do"))?;
        Ok(Self { client, socket: socket.into(), owner, facts: Arc::new(facts) })
    }

    pub(crate) const fn client(&self) -> &Docker {
        &self.client
    }

    /// What containers of ours are known by.
    pub(crate) fn labels(&self, name: &str) -> HashMap<String, String> {
        let Owner { instance, run } = &*self.owner;
        let labels = [(INSTANCE_LABEL, instance.as_str()), (RUN_LABEL, run), (BOX_LABEL, name)];
        labels.map(|(label, value)| (label.to_owned(), value.to_owned())).into()
    }

    /// Turns what the client says into what we say.
    pub(crate) fn told(&self, action: &'static str) -> impl FnOnce(Error) -> EngineError {
        told(&self.socket, action)
    }

    /// `None` if there is no such image.
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

    /// Sends a signal to the first process of a container. One that is not there any more, or does
    /// not run, has what was wanted.
    pub(crate) async fn kill(&self, name: &str, signal: &str) -> Result<(), EngineError> {
        let options = KillContainerOptions { signal: signal.to_owned() };
        let killed = self.client.kill_container(name, Some(options)).await;
        unless_gone(killed).map_err(self.told("signal a container"))
    }

    /// Ends and removes a container, with all that it has.
    pub(crate) async fn remove(&self, name: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptions { force: true, v: true, link: false };
        let removed = self.client.remove_container(name, Some(options)).await;
        unless_gone(removed).map_err(self.told("remove a container"))
    }

    /// Ends and removes what an earlier run left; says how many there were.
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

/// A name that is nothing but a name: it becomes a part of a path of the engine's API.
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

/// Whether there is no such container, or it does not run.
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

/// What the system said, below everything that was said about it.
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

    /// Rule: a name of an image reaches nothing else of the engine.
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

    /// Rule: what an engine does not say that it gives, it does not give.
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
