//! Which agent to start, and how.

use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};

/// The program of an agent and its surroundings.
#[derive(Clone)]
pub struct AgentSpec {
    /// The program.
    pub command: PathBuf,
    /// Its arguments. Every user can see them.
    pub args: Vec<OsString>,
    /// Its whole environment: nothing of this process's own is passed on.
    pub env: Vec<(OsString, OsString)>,
    /// Its working directory.
    pub workspace: PathBuf,
    /// The directory for its own files and its configuration.
    pub home: PathBuf,
    /// Its limits.
    pub limits: AgentLimits,
    /// Starts its processes; without one the driver starts plain children.
    pub launcher: Option<Arc<dyn Launcher>>,
}

/// Starts the processes of an agent elsewhere, such as in a sandbox.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// Starts the program of `spec` with its three pipes. May block, and is called within a
    /// runtime.
    ///
    /// # Errors
    /// If it does not run. The text is shown to the user.
    fn launch(&self, spec: &AgentSpec) -> Result<LaunchedProcess, Box<dyn Error + Send + Sync>>;
}

/// A process that a [`Launcher`] has started.
pub struct LaunchedProcess {
    /// Its input. Dropping it closes the input.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its output.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Its error output.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// The process, to wait for and to signal.
    pub process: Box<dyn AgentProcess>,
}

/// The process of an agent with everything it started. Dropping it ends it.
pub trait AgentProcess: fmt::Debug + Send {
    /// Its number, if it has one on this machine.
    fn id(&self) -> Option<u32>;

    /// Waits for its end. Nothing is lost if the future is dropped and wait is called again.
    fn wait(&mut self) -> ExitFuture<'_>;

    /// Asks it to end. A process that has ended is fine.
    fn terminate(&self);

    /// Ends it, with everything it started.
    fn kill(&self);

    /// Returns why it was ended, if the launcher ended it on its own.
    fn ended_because(&self) -> Option<String> {
        None
    }
}

/// The end of a process, when it comes.
pub type ExitFuture<'a> = Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + 'a>>;

/// Limits on an agent's output and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// The longest line of text, either way.
    pub line_bytes_max: usize,
    /// How much of the end of its error output is kept.
    pub stderr_bytes_max: usize,
    /// How long its output may stay open after its end.
    pub drain: Duration,
    /// How long it may take to open a conversation.
    pub opening: Duration,
    /// How long it may take to stop its turn.
    pub aborting: Duration,
}

/// Why an agent was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program does not exist or may not be run, or the workspace is missing.
    #[error("cannot start the agent `{command}` in `{workspace}`")]
    Spawn {
        /// The program.
        command: PathBuf,
        /// The directory.
        workspace: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// Its launcher did not start it.
    #[error("cannot start the agent `{command}`")]
    Launch {
        /// The program.
        command: PathBuf,
        /// The cause.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The system provided no pipes.
    #[error("the agent `{command}` was started without its pipes")]
    NoPipes {
        /// The program.
        command: PathBuf,
    },
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            // Room for what people and models write; tool results are not reported in full.
            line_bytes_max: 1024 * 1024,
            // A panic with its backtrace.
            stderr_bytes_max: 16 * 1024,
            // Its last output is in the pipe already.
            drain: Duration::from_millis(500),
            // The slowest known agent takes ten seconds on a busy machine.
            opening: Duration::from_secs(60),
            // Longer than an agent needs to end a request to its model.
            aborting: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for LaunchedProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LaunchedProcess").field("process", &self.process).finish_non_exhaustive()
    }
}

/// Shows the names of environment variables, not their values: one may be a key.
impl fmt::Debug for AgentSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("AgentSpec")
            .field("command", &self.command)
            .field("args", &self.args)
            .field("env", &names)
            .field("workspace", &self.workspace)
            .field("home", &self.home)
            .field("limits", &self.limits)
            .field("launcher", &self.launcher)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: secrets are never in logs.
    #[test]
    fn the_environment_is_shown_by_name_only() {
        let spec = AgentSpec {
            command: "a".into(),
            args: Vec::new(),
            env: vec![("OUBLIETTE_API_KEY".into(), "oub_secret".into())],
            workspace: "w".into(),
            home: "h".into(),
            limits: AgentLimits::default(),
            launcher: None,
        };
        let shown = format!("{spec:?}");
        assert!(shown.contains("OUBLIETTE_API_KEY") && !shown.contains("secret"), "{shown}");
    }
}
