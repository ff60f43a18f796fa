//! `forward`: a command that reaches the socket of its model by an address.

use std::process::{ExitStatus, Output, Stdio};

use ringback_testkit::soon;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpStream, UnixListener};
use tokio::process::{Child, Command};

use crate::support::program;

/// Prints the address of the model, then lives until its input ends.
const SAYS: &str = r#"echo "$URL $1"; cat >/dev/null"#;

fn forward(dir: &TempDir, command: &[&str]) -> Command {
    let mut forward = Command::new(program());
    forward.arg("forward").arg("--socket").arg(dir.path().join("model.sock")).arg("--");
    forward.args(command).env("URL", "<{model}/v1>").kill_on_drop(true);
    forward.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    forward
}

/// The output of a command that ends on its own.
async fn output(command: &[&str]) -> Output {
    let dir = tempfile::tempdir().unwrap();
    soon(forward(&dir, command).stdin(Stdio::null()).output()).await.unwrap()
}

/// A child that has printed the address of its model, and that address.
async fn started(dir: &TempDir, script: &str) -> (Child, String) {
    let mut child = forward(dir, &["/bin/sh", "-c", script, "agent", "{model}"]).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    soon(stdout.read_line(&mut line)).await.unwrap();
    let (first, second) = line.trim().split_once(' ').unwrap();
    assert_eq!(first, format!("<{second}/v1>"), "in the environment and in the arguments");
    (child, second.strip_prefix("http://").unwrap().to_owned())
}

async fn ended(mut child: Child) -> ExitStatus {
    drop(child.stdin.take());
    soon(child.wait()).await.unwrap()
}

/// REQ: "Model access without the key in the box": the agent reaches the model proxy of its session
/// by an address on its own loopback.
#[tokio::test]
async fn a_child_reaches_its_model_by_an_address() {
    let dir = tempfile::tempdir().unwrap();
    let door = UnixListener::bind(dir.path().join("model.sock")).unwrap();
    let (child, address) = started(&dir, SAYS).await;
    let mut agent = soon(TcpStream::connect(&address)).await.unwrap();
    assert!(agent.peer_addr().unwrap().ip().is_loopback());
    let (mut stream, _) = soon(door.accept()).await.unwrap();
    let mut heard = [0; 5];
    agent.write_all(b"hello").await.unwrap();
    soon(stream.read_exact(&mut heard)).await.unwrap();
    assert_eq!(&heard, b"hello", "before the connection ends");
    stream.write_all(b"\x00answer\xff").await.unwrap();
    drop(stream);
    let mut answer = Vec::new();
    soon(agent.read_to_end(&mut answer)).await.unwrap();
    assert_eq!(answer, b"\x00answer\xff");
    assert_eq!(ended(child).await.code(), Some(0));
    assert!(TcpStream::connect(&address).await.is_err(), "the address goes with the command");
}

/// Rule: an agent that gives up ends its request: the daemon notices.
#[tokio::test]
async fn a_connection_that_the_agent_closes_is_closed_for_the_daemon() {
    let dir = tempfile::tempdir().unwrap();
    let door = UnixListener::bind(dir.path().join("model.sock")).unwrap();
    let (child, address) = started(&dir, SAYS).await;
    let agent = soon(TcpStream::connect(&address)).await.unwrap();
    let (mut stream, _) = soon(door.accept()).await.unwrap();
    drop(agent);
    let mut rest = Vec::new();
    soon(stream.read_to_end(&mut rest)).await.unwrap();
    drop(stream);
    ended(child).await;
}

/// Rule: an answer that comes before everything was sent is not lost.
#[tokio::test]
async fn an_early_answer_reaches_an_agent_that_is_still_sending() {
    let dir = tempfile::tempdir().unwrap();
    let door = UnixListener::bind(dir.path().join("model.sock")).unwrap();
    let (child, address) = started(&dir, SAYS).await;
    let (mut reader, mut writer) = soon(TcpStream::connect(&address)).await.unwrap().into_split();
    let (mut stream, _) = soon(door.accept()).await.unwrap();
    let sending = async {
        // More than all buffers on the way can hold.
        let sent = writer.write_all(&vec![0; 8 << 20]).await;
        drop(writer);
        sent
    };
    let answering = async {
        stream.write_all(b"enough").await.unwrap();
        drop(stream);
        let mut answer = [0; 6];
        reader.read_exact(&mut answer).await.unwrap();
        answer
    };
    let (_, answer) = soon(async { tokio::join!(sending, answering) }).await;
    assert_eq!(&answer, b"enough");
    ended(child).await;
}

#[tokio::test]
async fn without_a_daemon_a_connection_is_closed_and_the_next_one_may_succeed() {
    let dir = tempfile::tempdir().unwrap();
    let (child, address) = started(&dir, SAYS).await;
    let mut agent = soon(TcpStream::connect(&address)).await.unwrap();
    let mut answer = Vec::new();
    soon(agent.read_to_end(&mut answer)).await.unwrap();
    assert!(answer.is_empty());
    let door = UnixListener::bind(dir.path().join("model.sock")).unwrap();
    let _agent = soon(TcpStream::connect(&address)).await.unwrap();
    soon(door.accept()).await.unwrap();
    ended(child).await;
}

#[tokio::test]
async fn the_exit_code_is_that_of_the_command() {
    assert_eq!(output(&["/bin/sh", "-c", "exit 42"]).await.status.code(), Some(42));
    let said = output(&["/bin/sh", "-c", "echo out; echo err >&2"]).await;
    assert_eq!((said.stdout.as_slice(), said.stderr.as_slice()), (&b"out\n"[..], &b"err\n"[..]));
    let killed = output(&["/bin/sh", "-c", "kill -9 $$"]).await;
    assert_eq!(killed.status.code(), Some(128 + 9));
    let missing = output(&["/nowhere/agent"]).await;
    assert_eq!(missing.status.code(), Some(127));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("/nowhere/agent"));
    assert_eq!(output(&[]).await.status.code(), Some(64));
}

/// Rule: a signal to the program reaches its command.
#[tokio::test]
async fn signals_are_passed_on() {
    for (signal, name) in [(Signal::TERM, "TERM"), (Signal::INT, "INT"), (Signal::HUP, "HUP")] {
        let dir = tempfile::tempdir().unwrap();
        let script =
            format!(r#"trap 'exit 7' {name}; echo "$URL $1"; while :; do sleep 0.05; done"#);
        let (child, _) = started(&dir, &script).await;
        let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
        kill_process(pid, signal).unwrap();
        assert_eq!(ended(child).await.code(), Some(7), "{name}");
    }
    let dir = tempfile::tempdir().unwrap();
    let (child, _) = started(&dir, r#"echo "$URL $1"; exec sleep 600"#).await;
    let pid = Pid::from_raw(child.id().unwrap().cast_signed()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(ended(child).await.code(), Some(128 + 15), "without a trap");
}

/// REQ: the network proxy is reached by an address on the sandbox's own loopback, beside that of
/// the model proxy.
#[tokio::test]
async fn a_child_reaches_both_of_its_doors_each_by_its_own_address() {
    let dir = tempfile::tempdir().unwrap();
    let sockets = ["model.sock", "network.sock"].map(|name| dir.path().join(name));
    let mut command = Command::new(program());
    command.arg("forward").arg("--socket").arg(&sockets[0]).arg("--proxy").arg(&sockets[1]);
    command.args(["--", "/bin/sh", "-c", r#"echo "$MODEL $PROXY"; cat >/dev/null"#]);
    command.env("MODEL", "{model}").env("PROXY", "{proxy}").kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    soon(stdout.read_line(&mut line)).await.unwrap();
    let (model, proxy) = line.trim().split_once(' ').unwrap();
    for (address, socket) in [(model, &sockets[0]), (proxy, &sockets[1])] {
        let door = UnixListener::bind(socket).unwrap();
        let address = address.strip_prefix("http://").unwrap();
        let mut agent = soon(TcpStream::connect(address)).await.unwrap();
        agent.write_all(b"hello").await.unwrap();
        let (mut stream, _) = soon(door.accept()).await.unwrap();
        let mut heard = [0; 5];
        soon(stream.read_exact(&mut heard)).await.unwrap();
        assert_eq!(&heard, b"hello", "{}", socket.display());
    }
    assert_eq!(ended(child).await.code(), Some(0));
}
