//! `[sandbox]`: how agents are confined.

use std::path::PathBuf;

use ringback_broker::{DiskLimits, DiskReserve};
use ringback_sandbox::{BackendChoice, DockerSettings};

use super::Environment;
use super::images::Images;
use super::quantity::{Auto, ByteSize, OptionalLimit, Percent};
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
        pub read_only: Vec<PathBuf> = Vec::new(),
        /// Memory of one agent with everything it starts, or `none` for no limit.
        pub memory: OptionalLimit<ByteSize> = OptionalLimit(limits().memory_bytes.map(ByteSize)),
        /// Maximum number of processes and threads of one agent, or `none`.
        pub processes: OptionalLimit<u64> = OptionalLimit(limits().processes.map(u64::from)),
        /// Processor time of one agent, in percent of one processor, or `none`.
        pub cpu: OptionalLimit<Percent> = OptionalLimit(limits().cpu_percent.map(|cpu| Percent(cpu.into()))),
        /// Largest file an agent can write, or `none`.
        pub file: OptionalLimit<ByteSize> = OptionalLimit(limits().file_bytes.map(ByteSize)),
        /// Maximum number of open files of one process of an agent, or `none`.
        pub open_files: OptionalLimit<u64> = OptionalLimit(limits().open_files),
        /// Size of an agent's `/tmp`. Its content counts as memory.
        pub tmp: ByteSize = ByteSize(limits().tmp_bytes),
        /// Images built here for a container engine: `[sandbox.images.NAME]` with `dir`, a
        /// directory with a `Dockerfile`, and `network`, the network of its build: `none` (the
        /// default) or `host`. A project names one as its `image`.
        pub images: Images = Images::default(),
        /// Maximum number of running project containers, and likewise of commands in sandboxes of
        /// their own.
        pub containers_max: usize = CONTAINERS_MAX,
        /// Disk space of an agent, or `none`: its workspace, the home beside it, and content that it
        /// stored. The same limit applies to the directory of a container. An agent or container
        /// over the limit is ended.
        pub workspace: OptionalLimit<ByteSize> = OptionalLimit(disk().workspace_bytes.map(ByteSize)),
        /// Free space to keep on the disk of `data_dir`; `auto` is a gigabyte, or a twentieth of
        /// the disk if that is less. Below it, no agent is started, no content of more than 256 KiB
        /// is stored, and the agent, container or command that grows fastest is ended.
        pub keep_free: Auto<ByteSize> = Auto(None),
        /// Number of files to keep room for on the disk of `data_dir`; `auto` is a hundred
        /// thousand, or a twentieth of what the file system can have if that is less. Below it, the
        /// same happens as with `sandbox.keep_free`.
        pub keep_free_inodes: Auto<u64> = Auto(None),
        /// Size of the file `reserve` in `data_dir`, or 0 for none. It is released when the disk is
        /// full, so that sessions can be ended and workspaces deleted, and created again when there
        /// is room.
        pub reserve: ByteSize = ByteSize(disk().reserve_bytes),
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

impl Sandbox {
    /// Returns the disk limits of agents.
    #[must_use]
    pub fn disk(&self) -> DiskLimits {
        let keep = |number: Option<u64>| number.map_or(DiskReserve::Usual, DiskReserve::Bytes);
        DiskLimits {
            workspace_bytes: bytes(self.workspace),
            keep_free: keep(self.keep_free.0.map(|size| size.0)),
            keep_free_inodes: keep(self.keep_free_inodes.0),
            reserve_bytes: self.reserve.0,
            ..disk()
        }
    }

    /// Returns the limits of an agent.
    #[must_use]
    pub fn limits(&self) -> ringback_sandbox::Limits {
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        ringback_sandbox::Limits {
            memory_bytes: bytes(self.memory),
            processes: self.processes.0.map(small),
            cpu_percent: self.cpu.0.map(|cpu| small(cpu.0)),
            file_bytes: bytes(self.file),
            open_files: self.open_files.0,
            tmp_bytes: self.tmp.0,
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
            Self::Auto => "auto",
            Self::Bubblewrap => "bubblewrap",
            Self::Docker => "docker",
            Self::None => "none",
        }
    }
}

fn limits() -> ringback_sandbox::Limits {
    ringback_sandbox::Limits::default()
}

fn disk() -> DiskLimits {
    DiskLimits::default()
}

fn bytes(bound: OptionalLimit<ByteSize>) -> Option<u64> {
    bound.0.map(|size| size.0)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a limit is lifted only explicitly.
    #[test]
    fn a_limit_is_a_number_or_none_in_words() {
        for (text, expected) in
            [("none", Some(None)), ("7", Some(Some(7))), ("0", None), ("", None)]
        {
            let parsed = OptionalLimit::<u64>::parse(Raw::Text(text)).ok().map(|bound| bound.0);
            assert_eq!(parsed, expected, "{text}");
        }
        for (text, expected) in
            [("auto", Some(DiskReserve::Usual)), ("0", Some(DiskReserve::Bytes(0))), ("none", None)]
        {
            let kept = Auto::<ByteSize>::parse(Raw::Text(text))
                .ok()
                .map(|keep_free| Sandbox { keep_free, ..Sandbox::default() }.disk().keep_free);
            assert_eq!(kept, expected, "{text}");
        }
        let sandbox = Sandbox {
            memory: OptionalLimit(None),
            processes: OptionalLimit(Some(9)),
            ..Sandbox::default()
        };
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
        let (shown, usual) = (Sandbox::default().disk(), disk());
        assert_eq!(
            (shown.keep_free, shown.keep_free_inodes),
            (usual.keep_free, usual.keep_free_inodes)
        );
        assert!(SandboxBackend::parse(Raw::Text("")).is_err());
    }
}
