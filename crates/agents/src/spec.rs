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

/// The program of an agent and what it gets.
#[derive(Clone)]
pub struct AgentSpec {
    /// The program.
    pub command: PathBuf,
    /// Its arguments. They are for everybody to see.
    pub args: Vec<OsString>,
    /// All of its environment: nothing of this process's own is passed on.
    pub env: Vec<(OsString, OsString)>,
    /// The directory it works in.
    pub workspace: PathBuf,
    /// Where it keeps things for itself, and finds its files.
    pub home: PathBuf,
    /// Its limits.
    pub limits: AgentLimits,
    /// Who starts its processes, if not the driver itself as plain children.
    pub launcher: Option<Arc<dyn Launcher>>,
}

/// Starts the processes of an agent in a place of their own, such as a sandbox.
pub trait Launcher: fmt::Debug + Send + Sync {
    /// Starts the program of `spec` with its three pipes. May block, and is called within a runtime.
    ///
    /// # Errors
    /// When it does not run. The text is for whoever wanted the agent.
    fn launch(&self, spec: &AgentSpec) -> Result<Launched, Box<dyn Error + Send + Sync>>;
}

/// A process that a [`Launcher`] has started.
pub struct Launched {
    /// What it reads. Dropping it is the end of its input.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// What it says.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// What it complains about.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// What is waited for and signalled.
    pub process: Box<dyn AgentProcess>,
}

/// The process of an agent with all that it started. Dropping it ends it.
pub trait AgentProcess: fmt::Debug + Send {
    /// Its number, if it has one on this machine.
    fn id(&self) -> Option<u32>;

    /// Waits for its end. Nothing is lost when that is given up and tried again.
    fn wait(&mut self) -> Exiting<'_>;

    /// Asks it to end. One that is not there any more has what was wanted.
    fn terminate(&self);

    /// Ends it, with all that it started.
    fn kill(&self);

    /// Why it was ended, if whoever keeps it did that by itself.
    fn ended_because(&self) -> Option<String> {
        None
    }
}

/// The end of a process, when it comes.
pub type Exiting<'a> = Pin<Box<dyn Future<Output = io::Result<ExitStatus>> + Send + 'a>>;

/// How much an agent may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgentLimits {
    /// The longest line, either way.
    pub line_bytes_max: usize,
    /// How much of the end of its error output is kept.
    pub stderr_bytes_max: usize,
    /// How long its output may stay open after its end.
    pub drain: Duration,
    /// How long it may take until a conversation can begin.
    pub opening: Duration,
    /// How long it may take to stop what it does.
    pub aborting: Duration,
}

/// Why an agent was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such program, or it may not be run, or the workspace is missing.
    #[error("cannot start the agent `{command}` in `{workspace}`")]
    Spawn {
        /// The program.
        command: PathBuf,
        /// The directory.
        workspace: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Its launcher did not start it.
    #[error("cannot start the agent `{command}`")]
    Launch {
        /// The program.
        command: PathBuf,
        /// Why.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The system gave the child no pipes.
    #[error("the agent `{command}` was started without its pipes")]
    NoPipes {
        /// The program.
        command: PathBuf,
    },
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            // Room for what people and models write; results of tools are not told in full.
            line_bytes_max: 1024 * 1024,
            // A panic with its backtrace.
            stderr_bytes_max: 16 * 1024,
            // Its last words are in the pipe already.
            drain: Duration::from_millis(500),
            // The slowest agent known takes ten seconds on a busy machine.
            opening: Duration::from_secs(60),
            // Longer than an agent needs to end a request to its model.
            aborting: Duration::from_secs(10),
        }
    }
}

impl fmt::Debug for Launched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched").field("process", &self.process).finish_non_exhaustive()
    }
}

/// Names of the environment, not what they stand for: that may be a key.
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
