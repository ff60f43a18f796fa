//! Which agent to start, and how.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::process::Stdio;

use camino::Utf8PathBuf;
use tokio::process::{Child, Command};

/// What an agent finds programs by.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// How an agent is started.
#[derive(Clone)]
pub struct AgentSpec {
    /// The program and its arguments. They are for everybody to see.
    pub command: Vec<String>,
    /// Its whole environment, but for `PATH`, `HOME` and `LANG` where they are not in it.
    pub env: BTreeMap<String, String>,
    /// Where it works; its home.
    pub workspace: Utf8PathBuf,
}

/// Why an agent was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartAgentError {
    /// There is no program to start.
    #[error("its command is empty; give the agent a command in the configuration")]
    NoCommand,
    /// The program cannot be started.
    #[error("`{program}` cannot be started")]
    Spawn {
        /// Which.
        program: String,
        /// Why.
        source: io::Error,
    },
}

impl AgentSpec {
    /// Starts the program, in a process group of its own.
    pub(crate) fn spawn(mut self) -> Result<Child, StartAgentError> {
        let Some((program, args)) = self.command.split_first() else {
            return Err(StartAgentError::NoCommand);
        };
        self.env.entry("PATH".to_owned()).or_insert_with(|| PATH.to_owned());
        self.env.entry("HOME".to_owned()).or_insert_with(|| self.workspace.to_string());
        self.env.entry("LANG".to_owned()).or_insert_with(|| "C.UTF-8".to_owned());
        Command::new(program)
            .args(args)
            .env_clear()
            .envs(&self.env)
            .current_dir(&self.workspace)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|source| StartAgentError::Spawn { program: program.clone(), source })
    }
}

/// Names of the environment, not what they stand for: that may be a key.
impl fmt::Debug for AgentSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSpec")
            .field("command", &self.command)
            .field("env", &self.env.keys())
            .field("workspace", &self.workspace)
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
            command: vec!["a".to_owned()],
            env: BTreeMap::from([("OUBLIETTE_API_KEY".to_owned(), "oub_secret".to_owned())]),
            workspace: "w".into(),
        };
        let shown = format!("{spec:?}");
        assert!(shown.contains("OUBLIETTE_API_KEY") && !shown.contains("secret"), "{shown}");
    }
}
