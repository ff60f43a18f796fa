//! A further command in a box that runs.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A command, and how much of it is waited for and kept.
#[derive(Clone)]
pub struct ExecSpec {
    /// The program as it is named in the box, and its arguments.
    pub command: Vec<OsString>,
    /// What its environment has besides that of the box.
    pub env: Vec<(OsString, OsString)>,
    /// Where in the box it runs; the workspace if nothing is said.
    pub working_dir: Option<PathBuf>,
    /// How much of each of its outputs is kept. It may say more.
    pub output_bytes_max: usize,
    /// How long it may take; then it is ended.
    pub limit: Duration,
}

/// What became of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// How it ended.
    pub end: ExecEnd,
    /// What it said.
    pub stdout: Captured,
    /// What it complained about.
    pub stderr: Captured,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecEnd {
    /// By itself, with this code.
    Exited(i32),
    /// Its time was over.
    TimedOut,
}

/// The start of what was said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// As much as was to be kept.
    pub bytes: Vec<u8>,
    /// There was more.
    pub is_truncated: bool,
}

/// Names of the environment, not what they stand for: that may be a key.
impl fmt::Debug for ExecSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("ExecSpec")
            .field("command", &self.command)
            .field("env", &names)
            .field("working_dir", &self.working_dir)
            .field("output_bytes_max", &self.output_bytes_max)
            .field("limit", &self.limit)
            .finish()
    }
}
