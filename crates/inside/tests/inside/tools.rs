//! The tools that an agent sees.

use std::io::Write as _;
use std::process::Stdio;

use ringback_testkit::soon;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

use crate::support::{CONFIG, Daemon, Rig, command, program};

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// REQ: seed 001 "Caller declares tools at session start" and "Tools include input schema".
#[tokio::test]
async fn declared_tools_are_listed_with_their_schema() {
    let (mut rig, listener) = Rig::start(None);
    rig.shake_hands().await;
    rig.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    Daemon::accept(&listener).await.say(CONFIG).await;
    let listed = rig.hear().await;
    assert!(listed.contains(r#""name":"ant_send""#), "{listed}");
    assert!(listed.contains(r#"{"n":{"maximum":12345678901234567890}}"#), "{listed}");
}

/// REQ: seed 002 "Startup Flow": with a key the daemon's tools are `oubliette_*`, and calls carry
/// it.
#[tokio::test]
async fn with_a_key_the_daemons_tools_are_there_too() {
    let (mut rig, listener) = Rig::start(Some("oub_0123"));
    let mut daemon = Daemon::accept(&listener).await;
    daemon.say(CONFIG).await;
    let asked = daemon.hear().await;
    assert!(asked.contains(r#""method":"oubliette_tools","params":{"api_key":"oub_0123"}"#));
    rig.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#).await;
    daemon
        .say(r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"project_create","inputSchema":{}}]}}"#)
        .await;
    let listed = rig.hear().await;
    assert!(listed.contains("ant_send") && listed.contains("oubliette_project_create"), "{listed}");
    rig.say(
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"oubliette_project_create","arguments":{"name":"p"}}}"#,
    )
    .await;
    let call = daemon.hear().await;
    assert!(
        call.contains(r#""api_key":"oub_0123","tool":"project_create","arguments":{"name":"p"}"#),
        "{call}"
    );
    daemon
        .say(r#"{"id":2,"result":{"content":[{"type":"text","text":"project already exists"}],"isError":true}}"#)
        .await;
    let answer = rig.hear().await;
    assert!(answer.contains(r#""isError":true"#), "{answer}");
}

/// REQ: seed 002 "Security Considerations": the key is never logged and in no argument.
#[tokio::test]
async fn the_key_is_in_no_log_and_no_argument() {
    let (mut rig, listener) = Rig::start(Some("oub_secret"));
    let mut daemon = Daemon::accept(&listener).await;
    daemon.say(CONFIG).await;
    daemon.hear().await;
    daemon
        .say(r#"{"id":1,"error":{"code":-32001,"message":"invalid or expired API key: oub_secret"}}"#)
        .await;
    let listed = rig.ask(r#""id":1,"method":"tools/list""#).await;
    assert!(listed.contains("ant_send") && !listed.contains("oub_secret"), "{listed}");
    let arguments = std::fs::read(format!("/proc/{}/cmdline", rig.child.id().unwrap())).unwrap();
    assert!(!String::from_utf8_lossy(&arguments).contains("secret"));
    let (_, log, _) = rig.end().await;
    assert!(log.contains("invalid or expired API key"), "{log}");
    assert!(!log.contains("secret"), "{log}");
}

/// Rule: updates and removals are announced, and a removed tool is refused.
#[tokio::test]
async fn a_removed_tool_is_announced_and_refused() {
    let (mut rig, _listener, mut daemon) = Rig::ready().await;
    daemon.say(r#"{"method":"caller_tools_config","params":{"caller_id":"ant","tools":[]}}"#).await;
    assert!(rig.hear().await.contains("notifications/tools/list_changed"));
    rig.call(1, "{}").await;
    assert!(rig.hear().await.contains("-32602"));
    daemon.say(CONFIG).await;
    assert!(rig.hear().await.contains("notifications/tools/list_changed"));
}

/// Rule: a modern agent subscribes to changes.
#[tokio::test]
async fn a_modern_agent_is_served_in_the_same_way() {
    let (mut rig, listener) = Rig::start(None);
    let mut daemon = Daemon::accept(&listener).await;
    let discovered =
        rig.ask(&format!(r#""id":1,"method":"server/discover","params":{{{META}}}"#)).await;
    assert!(discovered.contains("supportedVersions"));
    let params = format!(r#"{{"notifications":{{"toolsListChanged":true}},{META}}}"#);
    let told =
        rig.ask(&format!(r#""id":2,"method":"subscriptions/listen","params":{params}"#)).await;
    assert!(told.contains("acknowledged"));
    daemon.say(CONFIG).await;
    let listed = rig.ask(&format!(r#""id":3,"method":"tools/list","params":{{{META}}}"#)).await;
    assert!(listed.contains("ant_send") && listed.contains("ttlMs"), "{listed}");
    daemon.say(&CONFIG.replace("send", "other")).await;
    let told = rig.hear().await;
    assert!(told.contains(r#"subscriptionId":2"#), "{told}");
    let (rest, _, status) = rig.end().await;
    assert!(rest[0].contains(r#""id":2,"result""#) && status.success(), "{rest:?}");
}

/// Rule: it behaves the same under its earlier name, with the socket as its only argument.
#[tokio::test]
async fn it_is_also_started_as_oubliette_client() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("relay.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let link = directory.path().join("oubliette-client");
    std::os::unix::fs::symlink(program(), &link).unwrap();
    let mut child = tokio::process::Command::new(link)
        .arg(&socket)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    Daemon::accept(&listener).await.say(CONFIG).await;
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n").await.unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(soon(lines.next_line()).await.unwrap().unwrap().contains("ant_send"));
}

/// Rule: agents give their servers pipes, sockets or files, and each works.
#[tokio::test]
async fn sockets_and_files_will_do_in_place_of_pipes() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("relay.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let (near, far) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut child = command(program(), &socket, None)
        .stdin(Stdio::from(std::os::fd::OwnedFd::from(far.try_clone().unwrap())))
        .stdout(Stdio::from(std::os::fd::OwnedFd::from(far)))
        .spawn()
        .unwrap();
    let mut daemon = Daemon::accept(&listener).await;
    daemon.say(CONFIG).await;
    near.set_nonblocking(true).unwrap();
    let mut stream = BufReader::new(UnixStream::from_std(near).unwrap());
    stream.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n").await.unwrap();
    let mut line = String::new();
    soon(stream.read_line(&mut line)).await.unwrap();
    assert!(line.contains("ant_send"), "{line}");
    stream.shutdown().await.unwrap();
    assert!(soon(child.wait()).await.unwrap().success());

    let mut file = tempfile::tempfile().unwrap();
    file.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}").unwrap();
    std::io::Seek::rewind(&mut file).unwrap();
    let child = command(program(), &socket, None).stdin(file).spawn().unwrap();
    Daemon::accept(&listener).await.say(CONFIG).await;
    let output = soon(child.wait_with_output()).await.unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("ant_send"));
}
