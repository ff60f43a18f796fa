//! The binary, and a daemon started with it that ends with its test.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) use ringback_testkit::blocking::until as wait_for;
use serde_json::Value;

/// How long a daemon that is no longer needed may take to end.
const GRACE: Duration = Duration::from_secs(2);

/// Returns the binary with a clean environment: nothing of the user's is read or written.
pub(crate) fn ringback(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ringback"));
    command.env_clear().env("HOME", home).env("TZ", "UTC").stdin(Stdio::null());
    if !is_confinable() {
        command.env("RINGBACK_SANDBOX__BACKEND", "none");
    }
    command
}

/// Whether agents can be confined with all limits. Without root that depends on how the tests are
/// started, which is not their subject.
pub(crate) fn is_confinable() -> bool {
    rustix::process::geteuid().is_root()
}

/// The outcome of a run of the binary.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Self {
        Self::from(command.output().unwrap())
    }

    /// Returns the run after checking that it succeeded.
    #[track_caller]
    pub(crate) fn done(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }

    /// Returns the one JSON document of a successful run.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let run = self.done();
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    }

    /// Returns the one line of the answer.
    #[track_caller]
    pub(crate) fn line(self) -> String {
        let run = self.done();
        assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
        run.stdout.trim_end().to_owned()
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// A daemon. Dropping it ends it, and kills it if that takes too long.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    dir: tempfile::TempDir,
    /// Its output of `serve --json`.
    pub(crate) listening: Value,
}

impl Daemon {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(arguments: &[&str]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut command = serve(dir.path());
        command.args(arguments);
        Self::start_as(dir, &mut command)
    }

    /// Starts a daemon after a shell command, such as one that sets a limit.
    pub(crate) fn start_after(shell: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let plain = serve(dir.path());
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("{shell}; exec \"$0\" \"$@\"")]);
        command.arg(plain.get_program()).args(plain.get_args()).env_clear().stdin(Stdio::null());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        Self::start_as(dir, &mut command)
    }

    fn start_as(dir: tempfile::TempDir, command: &mut Command) -> Self {
        let stderr = std::fs::File::create(dir.path().join("stderr")).unwrap();
        let mut child = command.stdout(Stdio::piped()).stderr(stderr).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let log = std::fs::read_to_string(dir.path().join("stderr")).unwrap();
        let listening =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {log}"));
        Self { child, dir, listening }
    }

    /// Returns the directory that is `HOME` for it and its clients.
    pub(crate) fn home(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns a field of its output of `serve --json`.
    #[track_caller]
    pub(crate) fn told(&self, field: &str) -> &str {
        self.listening[field].as_str().unwrap_or_else(|| panic!("{field} in {}", self.listening))
    }

    /// Returns a client command, as the daemon's own user.
    pub(crate) fn client(&self, arguments: &[&str]) -> Command {
        let mut command = ringback(self.home());
        command.args(arguments);
        command
    }

    /// Runs a client command to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&mut self.client(arguments))
    }

    /// Runs a client command over TCP with a token, as another user would.
    pub(crate) fn run_as(&self, token: &str, arguments: &[&str]) -> Run {
        let mut command = self.client(arguments);
        command.env("RINGBACK_TOKEN", token).env("RINGBACK_DAEMON", self.told("hoot"));
        Run::of(&mut command)
    }

    /// Runs a client command that reads `input`.
    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8]) -> Run {
        run_with(&mut self.client(arguments), input)
    }

    /// Returns the first token.
    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.told("token_file")).unwrap().trim().to_owned()
    }

    /// Returns its log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("stderr")).unwrap()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        send(self.pid(), signal);
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        ended(&mut self.child)
    }
}

/// Runs a command that reads `input`.
pub(crate) fn run_with(command: &mut Command, input: &[u8]) -> Run {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // One that refuses its arguments ends without reading.
    if let Err(error) = child.stdin.take().unwrap().write_all(input) {
        assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe, "{error}");
    }
    child.wait_with_output().unwrap().into()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // It may already have ended. A killed one would leave cgroups for a next start that never
        // comes.
        if let Some(pid) = rustix::process::Pid::from_raw(self.pid().cast_signed())
            && self.child.try_wait().is_ok_and(|ended| ended.is_none())
            && rustix::process::kill_process(pid, rustix::process::Signal::TERM).is_ok()
        {
            let until = Instant::now() + GRACE;
            while Instant::now() < until && self.child.try_wait().is_ok_and(|it| it.is_none()) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// `serve --json` on free ports.
pub(crate) fn serve(home: &Path) -> Command {
    let mut command = ringback(home);
    let any = "tcp://127.0.0.1:0";
    command.args(["serve", "--json", "--http", "127.0.0.1:0", "--hoot", any, "--iopub", any]);
    command
}

pub(crate) fn send(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

pub(crate) fn ended(child: &mut Child) -> ExitStatus {
    wait_for("the process to end", || child.try_wait().unwrap())
}

/// Writes a file in a directory.
pub(crate) fn file(dir: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path
}
