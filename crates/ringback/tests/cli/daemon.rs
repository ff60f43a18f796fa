//! The daemon's life: start, listen, stop.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{Daemon, Run, ended, ringback, send, serve, wait_for};

#[test]
fn one_json_line_says_where_everything_is() {
    let daemon = Daemon::start();
    let listening = daemon.listening.as_object().unwrap();
    let fields = [
        "http",
        "hoot",
        "iopub",
        "hoot_ipc",
        "iopub_ipc",
        "data_dir",
        "token_file",
        "pid",
        "version",
    ];
    assert_eq!(listening.keys().map(String::as_str).collect::<Vec<_>>().len(), fields.len());
    for field in fields {
        assert!(!listening[field].is_null(), "{field}");
    }
    assert_eq!(listening["pid"], daemon.pid());
    assert!(!daemon.told("hoot").ends_with(":0"), "the real port is shown");
}

/// Rule: a page of another site reaches only pages, even if no token is required.
#[test]
fn an_image_of_another_site_takes_no_stream() {
    let daemon = Daemon::start_with(&["--open"]);
    let address = daemon.told("http").strip_prefix("http://").unwrap();
    let get = |path: &str, fetch: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{fetch}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).unwrap();
        String::from_utf8(head[9..].to_vec()).unwrap()
    };
    let image =
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: image\r\n";
    let link =
        "Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    let streams = ["/client-tools/pending/notes", "/event?clientID=notes", "/event"];
    for path in streams.into_iter().chain(["/v1/tools", "/v1/events", "/mcp", "/metrics", "/none"])
    {
        assert_eq!((get(path, image), get(path, link)), ("403".to_owned(), "403".to_owned()));
    }
    assert_eq!((get("/docs", link), get("/docs", image)), ("200".to_owned(), "403".to_owned()));
    assert_eq!(get("/event", "Sec-Fetch-Site: same-origin\r\n"), "200");
}

#[test]
fn operators_see_health_readiness_and_metrics() {
    let daemon = Daemon::start();
    let address = daemon.told("http").strip_prefix("http://").unwrap();
    for path in ["/health", "/ready", "/metrics"] {
        let mut stream = TcpStream::connect(address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }
}

/// Rule: only the daemon's user can read the first token, and only the first start creates one.
#[test]
fn the_token_file_is_private_and_stays_the_same() {
    let daemon = Daemon::start();
    let path = Path::new(daemon.told("token_file"));
    assert_eq!(std::fs::metadata(path).unwrap().mode() & 0o777, 0o600);
    let token = daemon.token();
    assert!(token.starts_with("oub_") && token.len() == 68);
    daemon.run_as(&token, &["call", "ping"]).done();
}

/// Rule: two daemons never open one data directory.
#[test]
fn a_second_daemon_on_the_same_directory_names_the_first() {
    let daemon = Daemon::start();
    let second = Run::of(&mut serve(daemon.home()));
    assert_eq!(second.code, 1, "{second:?}");
    assert!(second.stderr.contains(&format!("process {}", daemon.pid())), "{second:?}");
    assert_eq!(second.stdout, "");
    daemon.run(&["call", "ping"]).done();
}

#[test]
fn either_signal_ends_a_daemon_in_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut daemon = Daemon::start();
        daemon.run(&["call", "job_sleep", "milliseconds=1"]).done();
        daemon.signal(signal);
        assert_eq!(daemon.ended().code(), Some(0), "{}", daemon.log());
        let stages = ["accepting", "edges", "jobs", "broker", "store"];
        for stage in stages {
            assert!(daemon.log().contains(&format!("stopping {stage}")), "{}", daemon.log());
        }
    }
}

#[test]
fn a_second_signal_aborts_a_daemon_that_waits_for_its_jobs() {
    let mut daemon = Daemon::start();
    daemon.run(&["call", "job_sleep", "milliseconds=3600000", "--no-wait"]).done();
    daemon.signal(Signal::TERM);
    wait_for("the first signal", || daemon.log().contains("stopping jobs").then_some(()));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.ended().code(), Some(130), "{}", daemon.log());
}

#[test]
fn what_was_stored_is_there_after_a_restart() {
    let mut daemon = Daemon::start();
    let hash = daemon.run_with(&["cas", "put", "-", "--mime", "text/plain"], b"still here").line();
    let job = daemon.run(&["call", "job_sleep", "milliseconds=1", "--output", "json"]);
    assert_eq!(job.json()["milliseconds"], 1);
    let jobs = daemon.run(&["jobs", "--json"]).json();
    daemon.signal(Signal::TERM);
    assert!(daemon.ended().success());

    let mut again = serve(daemon.home()).stdout(Stdio::piped()).spawn().unwrap();
    let mut first = [0; 1];
    again.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(daemon.run(&["cas", "get", &hash]).done().stdout, "still here");
    assert_eq!(daemon.run(&["jobs", "--json"]).json()["jobs"], jobs["jobs"]);
    send(again.id(), Signal::TERM);
    assert!(ended(&mut again).success());
}

#[test]
fn an_open_daemon_asks_for_no_token_and_makes_none() {
    let daemon = Daemon::start_with(&["--open"]);
    assert!(daemon.listening["token_file"].is_null());
    daemon.run(&["call", "ping", "--daemon", daemon.told("hoot")]).done();
}

#[test]
fn a_taken_port_is_named() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let dir = tempfile::tempdir().unwrap();
    let run = Run::of(ringback(dir.path()).args(["serve", "--http", &address]));
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains(&address) && run.stderr.contains("--http"), "{run:?}");
}

#[test]
fn people_read_where_it_listens_and_what_to_try() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let mut command = ringback(dir.path());
    let any = "tcp://127.0.0.1:0";
    command.args(["serve", "--http", "127.0.0.1:0", "--hoot", any, "--iopub", any]);
    command.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let text = wait_for("the announcement", || {
        Some(std::fs::read_to_string(&out).unwrap()).filter(|text| text.contains("Ctrl-C"))
    });
    assert!(text.contains("ringback call ping") && text.contains("/metrics"), "{text}");
    send(child.id(), Signal::TERM);
    assert!(ended(&mut child).success());
}
