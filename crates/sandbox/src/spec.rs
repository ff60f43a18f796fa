//! What to run in a sandbox, and its limits.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Paths in a sandbox.
pub mod places {
    /// The workspace, which is writable.
    pub const WORKSPACE: &str = "/workspace";
    /// The home, which is writable as well.
    pub const HOME: &str = "/home/agent";
    /// The directory of the session.
    pub const SESSION: &str = "/mcp";
    /// Caches of its package managers, which are writable as well.
    pub const CACHE: &str = "/cache";
    /// The program that speaks MCP to the agent.
    pub const INSIDE: &str = "/mcp/bin/ringback-inside";
    /// The same, relative to the directory of the session.
    pub(crate) const INSIDE_BELOW: &str = "bin/ringback-inside";
}

/// A program and its sandbox.
#[derive(Clone)]
pub struct SandboxSpec {
    /// The program, as named in the sandbox.
    pub program: PathBuf,
    /// Its arguments. Every user of this machine can see them.
    pub args: Vec<OsString>,
    /// Its whole environment.
    pub env: Vec<(OsString, OsString)>,
    /// Its workspace, at [`places::WORKSPACE`].
    pub workspace: Workspace,
    /// Its working directory in the sandbox; the workspace if absent.
    pub working_dir: Option<PathBuf>,
    /// Its own files, at [`places::HOME`]. Writable.
    pub home: Option<PathBuf>,
    /// The directory of its session, at [`places::SESSION`].
    pub session_dir: Option<PathBuf>,
    /// The program that speaks MCP to it, at [`places::INSIDE`].
    pub inside: Option<PathBuf>,
    /// Further paths of this machine that it can read.
    pub read_only: Vec<ReadOnly>,
    /// Paths in the sandbox, within those, that are covered: empty, and not writable.
    pub masked: Vec<PathBuf>,
    /// Caches that outlive it, at [`places::CACHE`]. Writable.
    pub cache: Option<PathBuf>,
    /// Its limits.
    pub limits: Limits,
    /// Its network access.
    pub network: Network,
    /// The image of its system, if not the default one. For containers only.
    pub image: Option<String>,
}

/// A program's workspace, and its access to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Workspace {
    /// Nothing.
    #[default]
    None,
    /// A directory that it can read.
    Read(PathBuf),
    /// A directory that it can read and write.
    Write(PathBuf),
}

/// A read-only path in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOnly {
    /// Its path on this machine.
    pub host: PathBuf,
    /// Its path in the sandbox.
    pub inside: PathBuf,
}

/// The network access of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// A loopback interface of its own, with nothing else on it.
    #[default]
    None,
}

/// The limits of a program. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all its processes, with its files in `/tmp`.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at a time.
    pub processes: Option<u32>,
    /// Processor time: 100 is one processor, all the time.
    pub cpu_percent: Option<u32>,
    /// The size of the largest file.
    pub file_bytes: Option<u64>,
    /// Open files of one process.
    pub open_files: Option<u64>,
    /// The size of `/tmp`, and of `/dev/shm`.
    pub tmp_bytes: u64,
}

impl Workspace {
    /// Returns its path on this machine.
    #[must_use]
    pub fn host(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::Read(host) | Self::Write(host) => Some(host),
        }
    }
}

impl ReadOnly {
    /// Returns an entry with the same path in the sandbox.
    #[must_use]
    pub fn same(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { inside: path.clone(), host: path }
    }
}

impl Limits {
    /// Returns no limits except on files in memory.
    #[must_use]
    pub const fn none() -> Self {
        Self {
            memory_bytes: None,
            processes: None,
            cpu_percent: None,
            file_bytes: None,
            open_files: None,
            tmp_bytes: 1 << 30,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A compiler, or a program for Node and what it starts.
            memory_bytes: Some(4 << 30),
            // Threads count, and a parallel build has many.
            processes: Some(1024),
            // Leaves something for the daemon on most machines.
            cpu_percent: Some(200),
            // A large archive.
            file_bytes: Some(2 << 30),
            // What programs for Node expect.
            open_files: Some(4096),
            ..Self::none()
        }
    }
}

/// Shows the names of environment variables, not their values: one may be a key.
impl fmt::Debug for SandboxSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("SandboxSpec")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names)
            .field("workspace", &self.workspace)
            .field("working_dir", &self.working_dir)
            .field("home", &self.home)
            .field("session_dir", &self.session_dir)
            .field("inside", &self.inside)
            .field("read_only", &self.read_only)
            .field("masked", &self.masked)
            .field("cache", &self.cache)
            .field("limits", &self.limits)
            .field("network", &self.network)
            .field("image", &self.image)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: secrets are never in logs.
    #[test]
    fn the_environment_is_shown_by_name_only() {
        let spec = SandboxSpec {
            program: "a".into(),
            args: Vec::new(),
            env: vec![("OUBLIETTE_API_KEY".into(), "oub_secret".into())],
            workspace: Workspace::Write("w".into()),
            working_dir: None,
            home: None,
            session_dir: None,
            inside: None,
            read_only: Vec::new(),
            limits: Limits::default(),
            masked: Vec::new(),
            cache: None,
            network: Network::None,
            image: None,
        };
        let shown = format!("{spec:?}");
        assert!(shown.contains("OUBLIETTE_API_KEY") && !shown.contains("secret"), "{shown}");
    }
}
