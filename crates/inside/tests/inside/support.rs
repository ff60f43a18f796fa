//! An agent and a daemon, both played by the test, with the real program between them.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};

use ringback_testkit::soon;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{UnixListener, UnixStream};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

pub(crate) const CONFIG: &str = r#"{"jsonrpc":"2.0","method":"caller_tools_config","type":"caller_tools_config","params":{"caller_id":"ant","tools":[{"name":"send","description":"Send","inputSchema":{"type":"object","properties":{"n":{"maximum":12345678901234567890}}}}]}}"#;

/// The program, and the agent's end of it.
pub(crate) struct Rig {
    pub(crate) directory: TempDir,
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    stdout: Lines<BufReader<ChildStdout>>,
}

/// The daemon's end of a connection.
pub(crate) struct Daemon {
    lines: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

pub(crate) fn program() -> &'static OsStr {
    OsStr::new(env!("CARGO_BIN_EXE_ringback-inside"))
}

pub(crate) fn command(program: &OsStr, socket: &std::path::Path, key: Option<&str>) -> Command {
    let mut command = Command::new(program);
    command.env_clear().arg("--socket").arg(socket).kill_on_drop(true);
    command.envs(key.map(|key| ("OUBLIETTE_API_KEY", key)));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Rig {
    /// The program with a daemon that listens.
    pub(crate) fn start(key: Option<&str>) -> (Self, UnixListener) {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("relay.sock")).unwrap();
        (Self::start_in(directory, key), listener)
    }

    /// The program, whatever is in the directory.
    pub(crate) fn start_in(directory: TempDir, key: Option<&str>) -> Self {
        let mut child =
            command(program(), &directory.path().join("relay.sock"), key).spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { directory, child, stdin, stdout }
    }

    /// With a daemon that has sent its tools, and after a handshake.
    pub(crate) async fn ready() -> (Self, UnixListener, Daemon) {
        let (mut rig, listener) = Self::start(None);
        let mut daemon = Daemon::accept(&listener).await;
        daemon.say(CONFIG).await;
        rig.shake_hands().await;
        let listed = rig.ask(r#""id":"l","method":"tools/list""#).await;
        assert!(listed.contains("ant_send"), "{listed}");
        (rig, listener, daemon)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("relay.sock")
    }

    pub(crate) async fn shake_hands(&mut self) {
        let answer = self
            .ask(r#""id":"i","method":"initialize","params":{"protocolVersion":"2025-11-25"}"#)
            .await;
        assert!(answer.contains("ringback-inside"), "{answer}");
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    }

    pub(crate) async fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        soon(stdin.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> String {
        soon(self.stdout.next_line()).await.unwrap().expect("a line of the program")
    }

    /// Sends a message and reads the next line.
    pub(crate) async fn ask(&mut self, rest: &str) -> String {
        self.say(&format!(r#"{{"jsonrpc":"2.0",{rest}}}"#)).await;
        self.hear().await
    }

    pub(crate) async fn call(&mut self, id: u32, arguments: &str) {
        self.say(&format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"ant_send","arguments":{arguments}}}}}"#
        ))
        .await;
    }

    /// Closes the agent's end; returns the rest of the output, the log and the exit status.
    pub(crate) async fn end(mut self) -> (Vec<String>, String, ExitStatus) {
        drop(self.stdin.take());
        let mut rest = Vec::new();
        while let Some(line) = soon(self.stdout.next_line()).await.unwrap() {
            rest.push(line);
        }
        let mut log = String::new();
        soon(self.child.stderr.take().unwrap().read_to_string(&mut log)).await.unwrap();
        (rest, log, soon(self.child.wait()).await.unwrap())
    }
}

impl Daemon {
    pub(crate) async fn accept(listener: &UnixListener) -> Self {
        let (stream, _) = soon(listener.accept()).await.unwrap();
        Self::of(stream)
    }

    fn of(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self { lines: BufReader::new(reader).lines(), writer }
    }

    pub(crate) async fn say(&mut self, line: &str) {
        soon(self.writer.write_all(format!("{line}\n").as_bytes())).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> String {
        soon(self.lines.next_line()).await.unwrap().expect("a line of the program")
    }

    /// Whether the program has closed the connection.
    pub(crate) async fn is_left(&mut self) -> bool {
        matches!(soon(self.lines.next_line()).await, Ok(None) | Err(_))
    }
}
