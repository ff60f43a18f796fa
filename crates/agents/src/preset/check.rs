//! Whether an agent is installed.

use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Preset;
use crate::agent::Agent;
use crate::event::AgentEvent;
use crate::spec::{AgentLimits, AgentSpec};

/// The slowest known agent needs half of it on a busy machine.
const VERSION_LIMIT: Duration = Duration::from_secs(20);
/// How much of a version is shown.
const VERSION_CHARS_MAX: usize = 100;

/// An installed agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledAgent {
    /// The program.
    pub program: PathBuf,
    /// Its version; `None` if it does not report a usable one.
    pub version: Option<String>,
}

/// Looks for an agent's program in these directories and runs it to get its version.
///
/// # Cancel safety
/// The program is ended.
pub async fn check(
    preset: &Preset,
    path: &OsStr,
    env: Vec<(OsString, OsString)>,
) -> Option<InstalledAgent> {
    let program = preset.find(path)?;
    let asked = tokio::time::timeout(VERSION_LIMIT, version(&program, env)).await;
    Some(InstalledAgent { program, version: asked.ok().flatten() })
}

/// Returns the first program of this name in a list of directories in the format of `PATH`.
#[must_use]
pub fn find_program(name: &str, path: &OsStr) -> Option<PathBuf> {
    let is_program = |path: &Path| {
        path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    let directories = std::env::split_paths(path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(name)).find(|path| is_program(path))
}

async fn version(program: &Path, env: Vec<(OsString, OsString)>) -> Option<String> {
    let spec = AgentSpec {
        command: program.to_owned(),
        args: vec!["--version".into()],
        env,
        workspace: "/".into(),
        home: "/".into(),
        limits: AgentLimits::default(),
        launcher: None,
    };
    let (mut agent, _handle) = Agent::start_output(&spec, b"").ok()?;
    let mut said = None;
    while let Some(event) = agent.next().await {
        if let AgentEvent::Message { text } = event {
            said.get_or_insert(text);
        }
    }
    let first = said?.lines().next()?.trim().chars().take(VERSION_CHARS_MAX).collect();
    Some(first)
}

#[cfg(test)]
mod tests {
    use super::super::preset;
    use super::*;

    fn program(directory: &Path, script: &str) {
        let path = directory.join("goose");
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    async fn checked(directory: &Path) -> Option<InstalledAgent> {
        check(preset("goose").unwrap(), directory.as_os_str(), Vec::new()).await
    }

    /// REQ: "`ringback agents list|check`": is the program there, and in which version.
    #[tokio::test]
    async fn a_program_is_found_with_its_version() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(checked(directory.path()).await, None);
        program(directory.path(), "echo \" 1.2.3\"; echo more");
        let found = checked(directory.path()).await.unwrap();
        assert_eq!(found.program, directory.path().join("goose"));
        assert_eq!(found.version.as_deref(), Some("1.2.3"));
    }

    /// Rule: an agent is found under the name that its own package gives it.
    #[tokio::test]
    async fn a_program_is_found_under_the_name_of_its_package() {
        let directory = tempfile::tempdir().unwrap();
        program(directory.path(), "echo 1.2.3");
        let packaged = directory.path().join("goose-binary-linux-x64");
        std::fs::rename(directory.path().join("goose"), &packaged).unwrap();
        assert_eq!(checked(directory.path()).await.unwrap().program, packaged);
        program(directory.path(), "echo 1.2.4");
        let found = checked(directory.path()).await.unwrap();
        assert_eq!(found.version.as_deref(), Some("1.2.4"), "its own name comes first");
    }

    #[tokio::test]
    async fn a_program_that_says_nothing_is_there_all_the_same() {
        let directory = tempfile::tempdir().unwrap();
        program(directory.path(), "exit 3");
        assert_eq!(checked(directory.path()).await.unwrap().version, None);
    }
}
