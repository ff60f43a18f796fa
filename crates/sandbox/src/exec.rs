//! A further command in a running sandbox.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A command, and limits on its time and output.
#[derive(Clone)]
pub struct ExecSpec {
    /// The program, as named in the sandbox, and its arguments.
    pub command: Vec<OsString>,
    /// Environment variables in addition to those of the sandbox.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory in the sandbox; the workspace if absent.
    pub working_dir: Option<PathBuf>,
    /// How much of each output is kept. The command may write more.
    pub output_bytes_max: usize,
    /// How long it may run before it is ended.
    pub limit: Duration,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecOutput {
    /// How it ended.
    pub end: ExecEnd,
    /// Its output.
    pub stdout: CapturedOutput,
    /// Its error output.
    pub stderr: CapturedOutput,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExecEnd {
    /// It exited with this code.
    Exited(i32),
    /// Its time was up.
    TimedOut,
}

/// The start of an output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CapturedOutput {
    /// The part that was kept.
    pub bytes: Vec<u8>,
    /// Whether there was more.
    pub is_truncated: bool,
}

/// Shows the names of environment variables, not their values: one may be a key.
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
