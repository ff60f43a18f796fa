//! What to run in a box, and how far it may go.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

/// Where things are in a box.
pub mod places {
    /// The workspace, which can be written.
    pub const WORKSPACE: &str = "/workspace";
    /// The home, which can be written as well.
    pub const HOME: &str = "/home/agent";
    /// The directory of the session.
    pub const SESSION: &str = "/mcp";
    /// The program that speaks MCP to the agent.
    pub const INSIDE: &str = "/mcp/bin/ringback-inside";
    /// The same, below the directory of the session.
    pub(crate) const INSIDE_BELOW: &str = "bin/ringback-inside";
}

/// A program and the box it runs in.
#[derive(Clone)]
pub struct SandboxSpec {
    /// The program, as it is named in the box.
    pub program: PathBuf,
    /// Its arguments. Everybody on this machine can see them.
    pub args: Vec<OsString>,
    /// All of its environment.
    pub env: Vec<(OsString, OsString)>,
    /// What it works on, at [`places::WORKSPACE`].
    pub workspace: Workspace,
    /// Where in the box it starts; in the workspace if nothing is said.
    pub working_dir: Option<PathBuf>,
    /// What it keeps for itself, at [`places::HOME`]. It can write there.
    pub home: Option<PathBuf>,
    /// The directory of its session, at [`places::SESSION`].
    pub session_dir: Option<PathBuf>,
    /// The program that speaks MCP to it, at [`places::INSIDE`].
    pub inside: Option<PathBuf>,
    /// What else of this machine it can read.
    pub read_only: Vec<ReadOnly>,
    /// How far it may go.
    pub limits: Limits,
    /// What it reaches.
    pub network: Network,
    /// The image that its system comes from, if not the default one. Only containers have one.
    pub image: Option<String>,
}

/// What a program works on, and how.
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

/// A file or directory that can be read in a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadOnly {
    /// Where it is on this machine.
    pub host: PathBuf,
    /// Where it is in the box.
    pub inside: PathBuf,
}

/// What a box reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Network {
    /// A loopback of its own, with nobody else on it.
    #[default]
    None,
}

/// How far a program may go. `None` is no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Memory of all its processes, with its files in `/tmp`.
    pub memory_bytes: Option<u64>,
    /// Processes and threads at a time.
    pub processes: Option<u32>,
    /// Time on processors: 100 is one of them, all the time.
    pub cpu_percent: Option<u32>,
    /// The longest file.
    pub file_bytes: Option<u64>,
    /// Files that one process has open.
    pub open_files: Option<u64>,
    /// The size of `/tmp`, and of `/dev/shm`.
    pub tmp_bytes: u64,
}

impl Workspace {
    /// Where it is on this machine.
    #[must_use]
    pub fn host(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::Read(host) | Self::Write(host) => Some(host),
        }
    }
}

impl ReadOnly {
    /// At the same path in the box.
    #[must_use]
    pub fn same(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { inside: path.clone(), host: path }
    }
}

impl Limits {
    /// No limit but on what is kept in memory as files.
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
            // Something is left for the daemon on most machines.
            cpu_percent: Some(200),
            // A large archive.
            file_bytes: Some(2 << 30),
            // What programs for Node expect to have.
            open_files: Some(4096),
            ..Self::none()
        }
    }
}

/// Names of the environment, not what they stand for: that may be a key.
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
            network: Network::None,
            image: None,
        };
        let shown = format!("{spec:?}");
        assert!(shown.contains("OUBLIETTE_API_KEY") && !shown.contains("secret"), "{shown}");
    }
}
