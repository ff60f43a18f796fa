//! An agent that runs its messages as commands in its sandbox, for tests of what a project finds
//! there.

use std::fs;
use std::path::{Path, PathBuf};

use ringback_testkit::skipped;

use crate::support::{Daemon, Run, file, is_confinable};

/// Runs each message in a shell, and says its output.
const AGENT: &str = r#"import json, subprocess, sys
for line in sys.stdin:
    ran = subprocess.run(["/bin/sh", "-c", json.loads(line)["text"]], stdin=subprocess.DEVNULL,
        capture_output=True, text=True)
    said = ran.stdout + ran.stderr + f"code {ran.returncode}\n"
    print(json.dumps({"type": "message", "text": said}), flush=True)
    print('{"type":"done"}', flush=True)
"#;

/// A daemon with that agent.
pub(crate) struct Boxed {
    pub(crate) daemon: Daemon,
    _config: tempfile::TempDir,
}

impl Boxed {
    /// Starts it; `None` where nothing can be confined.
    pub(crate) fn start() -> Option<Self> {
        if !is_confinable() {
            skipped("agents are not confined without root");
            return None;
        }
        let dir = tempfile::tempdir().unwrap();
        let agent = toml::Value::from(AGENT);
        let config = format!(
            "[sessions]\nagent = \"shell\"\n[sessions.agents.shell]\n\
             command = [\"/usr/bin/python3\", \"-c\", {agent}]\n"
        );
        let path = file(dir.path(), "config.toml", config.as_bytes());
        let daemon = Daemon::start_with(&["--config", path.to_str().unwrap()]);
        Some(Self { daemon, _config: dir })
    }

    /// Returns a path in the home of its user.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.daemon.home().join(path)
    }

    /// Writes a file in the home of its user, which can be run.
    pub(crate) fn file(&self, path: &str, content: &str) -> PathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&path, mode).unwrap();
        path
    }

    /// Runs a command in a sandbox with a copy of a directory.
    pub(crate) fn run(&self, dir: &Path, command: &str, more: &[&str]) -> Run {
        let words = ["run", command, "--dir", dir.to_str().unwrap()];
        let run = self.client(&[&words, more].concat());
        // What the user said is no answer.
        let said = run.stdout.lines().filter(|line| !line.starts_with("> "));
        Run { stdout: said.map(|line| format!("{line}\n")).collect(), ..run }
    }

    /// Runs a command of the command line, with a `PATH` of the system alone.
    pub(crate) fn client(&self, words: &[&str]) -> Run {
        Run::of(self.daemon.client(words).env("PATH", "/usr/bin:/bin"))
    }

    /// Returns the id of the newest session.
    pub(crate) fn id(&self) -> String {
        let sessions = self.client(&["session", "list", "--json"]).json();
        sessions["sessions"][0]["session_id"].as_str().unwrap().to_owned()
    }
}

/// Returns the lines that the agent said between two marks.
pub(crate) fn between<'a>(run: &'a Run, start: &str, end: &str) -> Vec<&'a str> {
    let lines = run.stdout.lines().skip_while(|line| *line != start).skip(1);
    lines.take_while(|line| *line != end).collect()
}
