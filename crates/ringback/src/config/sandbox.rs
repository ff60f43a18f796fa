//! `[sandbox]`: how agents are confined.

#![expect(non_snake_case, reason = "keys are spelled as their users know them")]

use std::path::PathBuf;

use ringback_broker::{DiskLimits, KeepFree};
use ringback_sandbox::{BackendChoice, DockerSettings};

use super::Environment;
use super::images::Images;
use super::section::{Raw, section};
use super::value::{Value, mismatch, text};

/// The usual variable for the socket of a container engine.
const DOCKER_HOST: &str = "DOCKER_HOST";

/// Enough for one person's projects; each may use as much memory as an agent.
const CONTAINERS_MAX: usize = 8;

section! {
    /// How agents are confined.
    pub struct Sandbox = "sandbox" {
        /// What confines agents. `auto` uses bubblewrap, or Docker if only Docker provides every
        /// layer, and refuses to start an agent if neither does; `none` runs agents unconfined.
        pub backend: SandboxBackend = SandboxBackend::Auto,
        /// Path of the program `bwrap`, if it is not in the usual place.
        pub bwrap: Option<PathBuf> = None,
        /// Socket of a container engine on this machine (Docker; Podman's service has the same
        /// interface, but is not tested), as a path or as `unix://` and a path. If not set,
        /// `DOCKER_HOST` is used, else `/var/run/docker.sock`.
        pub docker: Option<String> = None,
        /// Image for agents that a container engine confines. It must already exist: nothing is
        /// fetched.
        pub image: Option<String> = None,
        /// Extra host paths that agents can read. The agent's own program and its files are
        /// included automatically ([agents.md](agents.md#in-a-box)).
        pub readOnly: Vec<PathBuf> = Vec::new(),
        /// Memory of one agent with everything it starts, in bytes, or `none` for no limit.
        pub memory: Bound = bound(limits().memory_bytes),
        /// Maximum number of processes and threads of one agent, or `none`.
        pub processes: Bound = bound(limits().processes.map(u64::from)),
        /// Processor time of one agent, in percent of one processor, or `none`.
        pub cpu: Bound = bound(limits().cpu_percent.map(u64::from)),
        /// Largest file an agent can write, in bytes, or `none`.
        pub file: Bound = bound(limits().file_bytes),
        /// Maximum number of open files of one process of an agent, or `none`.
        pub openFiles: Bound = bound(limits().open_files),
        /// Size of an agent's `/tmp`, in bytes. Its content counts as memory.
        pub tmp: u64 = limits().tmp_bytes,
        /// Images built here for a container engine: `[sandbox.images.NAME]` with `dir`, a
        /// directory with a `Dockerfile`, and `network`, the network of its build: `none` (the
        /// default) or `host`. A project names one as its `image`.
        pub images: Images = Images::default(),
        /// Maximum number of running project containers, and likewise of commands in sandboxes of
        /// their own.
        pub containers_max: usize = CONTAINERS_MAX,
        /// Disk space of an agent, in bytes, or `none`: its workspace, the home beside it, and
        /// content that it stored. The same limit applies to the directory of a container. An agent
        /// or container over the limit is ended.
        pub workspace: Bound = bound(disk().workspace_bytes),
        /// Free space to keep on the disk of `data_dir`, in bytes; `auto` is a gigabyte, or a
        /// twentieth of the disk if that is less. Below it, no agent is started, no content of more
        /// than 256 KiB is stored, and the agent, container or command that grows fastest is ended.
        pub keepFree: Kept = Kept(disk().keep_free),
        /// Number of files to keep room for on the disk of `data_dir`; `auto` is a hundred
        /// thousand, or a twentieth of what the file system can have if that is less. Below it, the
        /// same happens as with `sandbox.keepFree`.
        pub keepFreeInodes: Kept = Kept(disk().keep_free_inodes),
        /// Size of the file `reserve` in `data_dir`, in bytes, or 0 for none. It is released when
        /// the disk is full, so that sessions can be ended and workspaces deleted, and created
        /// again when there is room.
        pub reserve: u64 = disk().reserve_bytes,
    }
}

/// The backend that confines agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SandboxBackend {
    /// The best one available.
    Auto,
    /// The program `bwrap`.
    Bubblewrap,
    /// A container engine.
    Docker,
    /// Nothing.
    None,
}

/// An optional limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound(pub Option<u64>);

/// The part of the disk to keep free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept(pub KeepFree);

impl Sandbox {
    /// Returns the disk limits of agents.
    #[must_use]
    pub fn disk(&self) -> DiskLimits {
        DiskLimits {
            workspace_bytes: self.workspace.0,
            keep_free: self.keepFree.0,
            keep_free_inodes: self.keepFreeInodes.0,
            reserve_bytes: self.reserve,
            ..disk()
        }
    }

    /// Returns the limits of an agent.
    #[must_use]
    pub fn limits(&self) -> ringback_sandbox::Limits {
        let small = |bound: Bound| bound.0.map(|bound| u32::try_from(bound).unwrap_or(u32::MAX));
        ringback_sandbox::Limits {
            memory_bytes: self.memory.0,
            processes: small(self.processes),
            cpu_percent: small(self.cpu),
            file_bytes: self.file.0,
            open_files: self.openFiles.0,
            tmp_bytes: self.tmp,
        }
    }

    /// Returns the backend for sandboxes; `None` if agents run unconfined.
    #[must_use]
    pub const fn choice(&self) -> Option<BackendChoice> {
        match self.backend {
            SandboxBackend::Auto => Some(BackendChoice::Auto),
            SandboxBackend::Bubblewrap => Some(BackendChoice::Bubblewrap),
            SandboxBackend::Docker => Some(BackendChoice::Docker),
            SandboxBackend::None => None,
        }
    }

    /// Returns the socket of the container engine, and the image for agents.
    #[must_use]
    pub fn docker(&self) -> DockerSettings {
        let usual = DockerSettings::default();
        let socket = self.docker.clone().unwrap_or(usual.socket);
        DockerSettings { socket, image: self.image.clone() }
    }

    /// Fills in settings from the environment that the configuration does not set.
    pub(super) fn resolve(&mut self, environment: &Environment) {
        let said = || environment.get(DOCKER_HOST)?.to_str().map(str::to_owned);
        self.docker = self.docker.take().or_else(said);
    }
}

impl SandboxBackend {
    const ALL: [Self; 4] = [Self::Auto, Self::Bubblewrap, Self::Docker, Self::None];

    /// Its name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => AUTO,
            Self::Bubblewrap => "bubblewrap",
            Self::Docker => "docker",
            Self::None => NONE,
        }
    }
}

const NONE: &str = "none";
const AUTO: &str = "auto";

fn limits() -> ringback_sandbox::Limits {
    ringback_sandbox::Limits::default()
}

fn disk() -> DiskLimits {
    DiskLimits::default()
}

const fn bound(limit: Option<u64>) -> Bound {
    Bound(limit)
}

impl Value for SandboxBackend {
    const KIND: &'static str = "`auto`, `bubblewrap`, `docker` or `none`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        let mut known = Self::ALL.into_iter();
        known
            .find(|backend| text(raw) == Some(backend.name()))
            .ok_or_else(|| mismatch(Self::KIND, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        Some(self.name().into())
    }
}

impl Value for Kept {
    const KIND: &'static str = "whole number or `auto`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        if text(raw) == Some(AUTO) {
            return Ok(Self(KeepFree::Usual));
        }
        let bytes = u64::parse(raw).map_err(|_| mismatch(Self::KIND, raw))?;
        Ok(Self(KeepFree::Bytes(bytes)))
    }

    fn show(&self) -> Option<toml::Value> {
        match self.0 {
            KeepFree::Usual => Some(AUTO.into()),
            KeepFree::Bytes(bytes) => u64::show(&bytes),
        }
    }
}

impl Value for Bound {
    const KIND: &'static str = "whole number or `none`";

    fn parse(raw: Raw<'_>) -> Result<Self, String> {
        if text(raw) == Some(NONE) {
            return Ok(Self(None));
        }
        let number = u64::parse(raw).ok().filter(|number| *number > 0);
        number.map(|number| Self(Some(number))).ok_or_else(|| mismatch(Self::KIND, raw))
    }

    fn show(&self) -> Option<toml::Value> {
        match self.0 {
            Some(number) => u64::show(&number),
            None => Some(NONE.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a limit is lifted only explicitly.
    #[test]
    fn a_limit_is_a_number_or_none_in_words() {
        for (text, expected) in
            [("none", Some(None)), ("7", Some(Some(7))), ("0", None), ("", None)]
        {
            let parsed = Bound::parse(Raw::Text(text)).ok().map(|bound| bound.0);
            assert_eq!(parsed, expected, "{text}");
        }
        for (text, expected) in
            [("auto", Some(KeepFree::Usual)), ("0", Some(KeepFree::Bytes(0))), ("none", None)]
        {
            assert_eq!(Kept::parse(Raw::Text(text)).ok().map(|kept| kept.0), expected, "{text}");
        }
        let sandbox =
            Sandbox { memory: Bound(None), processes: Bound(Some(9)), ..Sandbox::default() };
        assert_eq!((sandbox.limits().memory_bytes, sandbox.limits().processes), (None, Some(9)));
    }

    /// Rule: the socket of the container engine comes from the configuration, then `DOCKER_HOST`,
    /// then the usual path.
    #[test]
    fn the_socket_of_the_engine_is_asked_of_docker_host_too() {
        let environment: Environment =
            [(DOCKER_HOST, "unix:///run/user/1/docker.sock")].into_iter().collect();
        for (set, environment, expected) in [
            (Some("/a.sock"), environment.clone(), "/a.sock"),
            (None, environment, "unix:///run/user/1/docker.sock"),
            (None, Environment::default(), "/var/run/docker.sock"),
        ] {
            let mut sandbox = Sandbox { docker: set.map(str::to_owned), ..Sandbox::default() };
            sandbox.resolve(&environment);
            assert_eq!(sandbox.docker().socket, expected);
        }
    }

    /// Rule: agents are confined unless the configuration explicitly says otherwise.
    #[test]
    fn agents_are_confined_by_default() {
        assert_eq!(Sandbox::default().backend, SandboxBackend::Auto);
        assert_eq!(Sandbox::default().limits(), ringback_sandbox::Limits::default());
        assert!(SandboxBackend::parse(Raw::Text("")).is_err());
    }
}
