//! The daemon protects itself: its open files, its directory.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use rustix::net::getpeername;
use rustix::net::sockopt::tcp_nodelay;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};

use crate::support::{Daemon, Run, serve, wait_for};

/// A limit lower than on any real machine; half of it is for the daemon itself.
const FEW_FILES: &str = "ulimit -n 256";

fn connect(endpoint: &str) -> TcpStream {
    let address = endpoint.split("//").nth(1).unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

/// Returns the status of a request on a new connection; `None` if the connection was closed
/// instead.
fn health(daemon: &Daemon) -> Option<String> {
    let mut stream = connect(daemon.told("http"));
    // The answer may come before the request.
    drop(stream.write_all(b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    let mut head = [0; 12];
    stream.read_exact(&mut head).ok()?;
    Some(String::from_utf8_lossy(&head[9..]).into_owned())
}

/// Rule: however many clients connect, the daemon keeps open files for content, agents and its own
/// user; further connections get a 503 immediately.
#[test]
fn a_crowd_leaves_the_daemon_its_open_files() {
    let daemon = Daemon::start_after(FEW_FILES);
    assert_eq!(health(&daemon).as_deref(), Some("200"));
    let mut crowd = Vec::new();
    for endpoint in ["http", "hoot", "iopub"] {
        crowd.extend((0..200).map(|_| connect(daemon.told(endpoint))));
    }
    assert_eq!(wait_for("an answer", || health(&daemon)), "503");
    let hash = daemon.run_with(&["cas", "put", "-"], b"content").line();
    assert_eq!(daemon.run(&["cas", "get", &hash]).done().stdout, "content");
    let script = r#"{"call":{"tool":"here_shout","arguments":{"text":"hello"}}}
{"expect":{"is_error":false,"contains":"HELLO"}}"#;
    let start = ["session", "start", script, "--tool", "shout=tr a-z A-Z"];
    Run::of(daemon.client(&start).env("PATH", "/usr/bin:/bin")).done();
    assert_eq!(wait_for("an answer", || health(&daemon)), "503");
    drop(crowd);
    wait_for("places to become free", || health(&daemon).filter(|status| status == "200"));
}

/// Rule: the open file limit is raised to the maximum allowed.
#[test]
fn the_limit_of_open_files_is_raised() {
    let daemon = Daemon::start_after("ulimit -S -n 100; ulimit -H -n 1000");
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", daemon.pid())).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<_> =
        line.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    assert_eq!(numbers, ["1000", "1000"], "{line}");
    assert!(daemon.log().contains("http.max_connections"), "{}", daemon.log());
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn assert_private(path: &Path) {
    let metadata = std::fs::symlink_metadata(path).unwrap();
    if metadata.is_dir() {
        assert_eq!(mode(path), 0o700, "{}", path.display());
        std::fs::read_dir(path).unwrap().for_each(|entry| assert_private(&entry.unwrap().path()));
    } else {
        assert_eq!(mode(path), 0o600, "{}", path.display());
    }
}

/// Rule: only the daemon's user can read its data, and a directory that other users can read is
/// refused.
#[test]
fn the_data_directory_is_for_its_owner_alone() {
    let daemon = Daemon::start_after("umask 022");
    daemon.run_with(&["cas", "put", "-"], b"content").done();
    let dir = Path::new(daemon.told("data_dir"));
    assert_eq!(mode(dir), 0o700);
    for name in
        ["ringback.db", "ringback.db-wal", "ringback.db-shm", "lock", "token", "blobs", "audit"]
    {
        assert_private(&dir.join(name));
    }
    let other = tempfile::tempdir().unwrap();
    for mode in [0o755, 0o750, 0o711] {
        std::fs::set_permissions(other.path(), Permissions::from_mode(mode)).unwrap();
        let refused = Run::of(serve(daemon.home()).arg("--data-dir").arg(other.path()));
        assert_ne!(refused.code, 0);
        let advice = format!("chmod 700 {}", other.path().display());
        assert!(refused.stderr.contains(&advice), "{refused:?}");
        assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    }
    assert_eq!(std::fs::read_dir(other.path()).unwrap().count(), 0);
}

/// Rule: a daemon whose directory is gone reports it and ends, instead of acknowledging data that
/// is lost.
#[test]
fn a_daemon_whose_directory_is_gone_ends() {
    let mut daemon = Daemon::start();
    let dir = daemon.told("data_dir").to_owned();
    std::fs::remove_dir_all(&dir).unwrap();
    let made = daemon.run_as("", &["project", "create", "lost"]);
    assert_ne!(made.code, 0, "{made:?}");
    assert_eq!(daemon.ended().code(), Some(1));
    let log = daemon.log();
    assert!(log.contains(&dir) && log.contains("deleted, moved or replaced"), "{log}");
}

/// Returns a copy of the daemon's end of a connection.
fn other_end(daemon: &Daemon, stream: &TcpStream) -> Option<OwnedFd> {
    let pid = Pid::from_raw(daemon.pid().cast_signed()).unwrap();
    let process = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let own = stream.local_addr().unwrap();
    let entries = std::fs::read_dir(format!("/proc/{}/fd", daemon.pid())).unwrap();
    entries.flatten().find_map(|entry| {
        let number = entry.file_name().to_str()?.parse().ok()?;
        let copy = pidfd_getfd(&process, number, PidfdGetfdFlags::empty()).ok()?;
        let peer = SocketAddr::try_from(getpeername(&copy).ok()??).ok()?;
        (peer == own).then_some(copy)
    })
}

/// Rule: no answer on any listener is delayed by Nagle's algorithm.
#[test]
fn no_listener_waits_for_nagle() {
    let daemon = Daemon::start();
    for listener in ["http", "hoot", "iopub"] {
        let stream = connect(daemon.told(listener));
        assert!(!stream.nodelay().unwrap(), "this end says nothing about the other");
        let accepted = wait_for("the daemon to accept", || {
            let end = other_end(&daemon, &stream)?;
            // It is set right after the connection is accepted.
            tcp_nodelay(&end).unwrap().then_some(end)
        });
        assert!(tcp_nodelay(accepted).unwrap(), "{listener}");
    }
}

/// Rule: `clientTools.*` in the configuration file apply to client tools.
#[test]
fn the_keys_of_client_tools_hold() {
    let dir = tempfile::tempdir().unwrap();
    let keys = "[clientTools]\ndefaultTimeout = 300\nkeepaliveInterval = 50\nmaxTimeout = 2000\n";
    let file = crate::support::file(dir.path(), "config.toml", keys.as_bytes());
    let daemon = Daemon::start_with(&["--config", file.to_str().unwrap()]);
    let token = daemon.token();
    let request = |line: &str, body: &str| {
        let mut stream = connect(daemon.told("http"));
        let head =
            format!("{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n");
        let body = format!(
            "{head}Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(body.as_bytes()).unwrap();
        stream
    };
    let answer = |line: &str, body: &str| {
        let mut text = String::new();
        request(line, body).read_to_string(&mut text).unwrap();
        (text[9..12].to_owned(), text)
    };
    let register = |timeout: &str| {
        let body = format!(
            r#"{{"clientID":"c","tools":[{{"id":"t","description":"d","parameters":{{"type":"object"}}{timeout}}}]}}"#
        );
        answer("POST /client-tools/register", &body)
    };
    // The longest time limit that a tool or a caller may set.
    let (status, refused) = register(r#","timeoutMs":2001"#);
    assert!(status == "400" && refused.contains("2000"), "{refused}");
    assert_eq!(register(r#","timeoutMs":2000"#).0, "200");
    assert_eq!(register("").0, "200");
    let execute = |timeout: &str| {
        let body = format!(r#"{{"toolID":"client_c_t","input":{{}}{timeout}}}"#);
        answer("POST /client-tools/execute", &body)
    };
    let (status, refused) = execute(r#","timeout":2001"#);
    assert!(status == "400" && refused.contains("2000"), "{refused}");
    // Pings come at the configured interval, far more often than by default.
    let mut stream = request("GET /client-tools/pending/c", "");
    let mut said = String::new();
    while said.matches("ping").count() < 3 {
        let mut piece = [0; 512];
        let n_read = stream.read(&mut piece).unwrap();
        assert!(n_read > 0, "{said}");
        said.push_str(&String::from_utf8_lossy(&piece[..n_read]));
    }
    // A call without a limit gets the default.
    let (status, late) = execute("");
    assert!(status == "504" && late.contains("300"), "{late}");
}
