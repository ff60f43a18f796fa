//! Runs `git` in a directory of ours: no file of a user's repository decides what it does.

use std::ffi::{OsStr, OsString};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Set for every command, above all configuration: nothing runs, nothing is fetched.
const SETTINGS: &[&str] = &[
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.quotePath=false",
    "core.bare=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
];
const ENVIRONMENT: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LC_ALL", "C"),
];
/// As much of its error output as is shown.
const SAID_BYTES_MAX: usize = 500;
/// The usual places of `git`, for a process without a `PATH`.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Why a repository cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RepositoryError {
    /// There is no `git`.
    #[error("`git` is not installed")]
    NoGit,
    /// It leads elsewhere, or is of a kind that is not supported.
    #[error("{0}")]
    Refused(String),
    /// `git` failed.
    #[error("`git {command}` failed: {said}")]
    Failed {
        /// The command.
        command: String,
        /// The start of its error output.
        said: String,
    },
    /// A file of the repository or of its copy cannot be read or written.
    #[error("cannot {action} `{}`: {source}", path.display())]
    File {
        /// What was attempted.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl RepositoryError {
    pub(super) fn on(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}

/// `git`, with a repository directory of ours.
#[derive(Debug)]
pub(super) struct Git {
    program: PathBuf,
    path: OsString,
    /// The repository directory.
    dir: PathBuf,
    /// An empty directory in place of a working tree.
    nowhere: PathBuf,
    /// Where it finds more objects.
    objects: OsString,
    index: Option<PathBuf>,
}

impl Git {
    /// Prepares commands in the repository directory `dir`. `nowhere` is an empty directory.
    pub(super) fn new(
        path: Option<&OsStr>,
        dir: &Path,
        nowhere: &Path,
        objects: &Path,
    ) -> Result<Self, RepositoryError> {
        let path = path.unwrap_or(OsStr::new(PATH)).to_owned();
        // A relative directory could be in the repository.
        let dirs: Vec<_> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
        let program = dirs.iter().map(|dir| dir.join("git")).find(|program| program.is_file());
        let path = std::env::join_paths(&dirs).unwrap_or_else(|_| PATH.into());
        Ok(Self {
            program: program.ok_or(RepositoryError::NoGit)?,
            path,
            dir: dir.to_owned(),
            nowhere: nowhere.to_owned(),
            objects: quoted(objects),
            index: None,
        })
    }

    /// Returns the same with another index.
    pub(super) fn with_index(&self, index: &Path) -> Self {
        Self {
            program: self.program.clone(),
            path: self.path.clone(),
            dir: self.dir.clone(),
            nowhere: self.nowhere.clone(),
            objects: self.objects.clone(),
            index: Some(index.to_owned()),
        }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Runs a command that reads `input`, and returns its output. Blocks.
    pub(super) fn run(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, RepositoryError> {
        self.run_in(args, input, None)
    }

    /// Does the same, and writes objects into another directory.
    pub(super) fn run_in(
        &self,
        args: &[&str],
        input: &[u8],
        objects: Option<&Path>,
    ) -> Result<Vec<u8>, RepositoryError> {
        let failed = |said: String| RepositoryError::Failed {
            command: args.first().copied().unwrap_or_default().to_owned(),
            said,
        };
        let mut command = self.command(args);
        if let Some(objects) = objects {
            command.env("GIT_OBJECT_DIRECTORY", objects);
        }
        let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            // It may write before it has read everything.
            scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
            child.wait_with_output()
        });
        let output = output.map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(output.stdout);
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().chars().filter(|c| !c.is_control()).take(SAID_BYTES_MAX).collect();
        Err(failed(said))
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().envs(ENVIRONMENT.iter().copied());
        command.env("PATH", &self.path).env("HOME", &self.nowhere);
        command.env("GIT_DIR", &self.dir).env("GIT_WORK_TREE", &self.nowhere);
        command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &self.objects);
        if let Some(index) = &self.index {
            command.env("GIT_INDEX_FILE", index);
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        command.args(args).current_dir(&self.nowhere);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Returns the name and address in a user's own settings, which no repository writes. `None` for
/// what is not set there.
pub(super) fn own_setting(path: Option<&OsStr>, home: Option<&Path>, key: &str) -> Option<String> {
    let home = home?;
    let git = Git::new(path, home, home, home).ok()?;
    let mut command = git.command(&["config", "--global", "--get", key]);
    for name in ["GIT_CONFIG_GLOBAL", "GIT_DIR", "GIT_WORK_TREE"] {
        command.env_remove(name);
    }
    command.env("HOME", home).current_dir("/").stdin(Stdio::null());
    let output = command.output().ok().filter(|output| output.status.success())?;
    let plain = |c: &char| !c.is_control() && !matches!(c, '<' | '>');
    let text: String = String::from_utf8(output.stdout).ok()?.chars().filter(plain).collect();
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Quotes a path as `git` reads lists of them, and names in its streams.
pub(super) fn quoted(path: &Path) -> OsString {
    let mut text = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => text.extend([b'\\', *byte]),
            b' '..=b'~' => text.push(*byte),
            byte => text.extend(format!("\\{byte:03o}").into_bytes()),
        }
    }
    text.push(b'"');
    OsString::from_vec(text)
}

/// Returns whether a text is the id of an object.
pub(super) fn is_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64)
        && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
