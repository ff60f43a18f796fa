//! Agents in sandboxes, from the command line.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::Signal;

use crate::support::{Daemon, Run, file, is_confinable, ringback, send, serve, wait_for};

const NO_BUBBLEWRAP: &str = "[sandbox]\nbwrap = \"/nowhere/bwrap\"\n";

/// Starts a daemon with this configuration.
fn daemon(config: &str) -> (Daemon, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let path = file(dir.path(), "config.toml", config.as_bytes());
    (Daemon::start_with(&["--config", path.to_str().unwrap()]), dir)
}

fn start(daemon: &Daemon, script: &str) -> Run {
    let arguments = ["session", "start", script, "--tool", "shout=tr a-z A-Z", "--json"];
    Run::of(daemon.client(&arguments).env("PATH", "/usr/bin:/bin"))
}

/// Rule: the scripted agent, the program inside and the socket all work in a sandbox, and the
/// session shows that it is confined.
#[test]
fn a_session_is_confined_and_says_so() {
    let daemon = Daemon::start();
    let script = r#"{"call":{"tool":"here_shout","arguments":{"text":"hi"}}}
{"expect":{"is_error":false,"contains":"HI"}}"#;
    let shown = start(&daemon, script).done();
    assert!(!shown.stdout.contains("\"error\""), "{shown:?}");
    let listed = daemon.run(&["session", "list", "--json"]).json();
    let session = &listed["sessions"][0];
    assert_eq!(session["confined"], is_confinable(), "{session}");
    assert_eq!(session["notice"].is_null(), is_confinable(), "{session}");
}

/// Rule: if a layer is missing, a session is refused; the error names the layer, its fix and how to
/// run unconfined, which has to be set explicitly and is shown.
#[test]
fn without_a_sandbox_a_session_is_refused_unless_the_configuration_says_none() {
    if !ringback_testkit::is_root() {
        return;
    }
    let (refusing, _config) = daemon(NO_BUBBLEWRAP);
    let refused = start(&refusing, r#"{"say":"hello"}"#);
    assert_eq!(refused.code, 1, "{refused:?}");
    for part in ["apt install bubblewrap", r#"sandbox.backend = \"none\""#] {
        assert!(refused.stderr.contains(part), "{part}: {refused:?}");
    }
    let (open, _config) = daemon("[sandbox]\nbackend = \"none\"\n");
    let shown = start(&open, r#"{"say":"hello"}"#).done();
    assert!(shown.stdout.contains("hello"), "{shown:?}");
    let listed = open.run(&["session", "list", "--json"]).json();
    let session = &listed["sessions"][0];
    assert_eq!(session["confined"], false);
    assert!(session["notice"].as_str().unwrap().contains("without further confinement"));
}

/// Rule: a pre-started sandbox ends with its daemon, even if that is killed; its cgroups are
/// removed by the next start.
#[test]
fn a_prestarted_sandbox_does_not_survive_a_killed_daemon() {
    if !ringback_testkit::is_root() {
        return;
    }
    let mut first = Daemon::start();
    for _ in 0..2 {
        start(&first, r#"{"say":"hello"}"#).done();
    }
    let next = Path::new(first.told("token_file")).parent().unwrap().join("sandbox/next");
    let groups =
        wait_for("cgroups of the next sandbox", || Some(noted(&next)).filter(|it| !it.is_empty()));
    let in_it = || std::fs::read_to_string(groups[0].join("cgroup.procs")).unwrap_or_default();
    wait_for("a process in them", || (!in_it().is_empty()).then_some(()));
    first.signal(Signal::KILL);
    first.ended();
    wait_for("it to be gone", || in_it().is_empty().then_some(()));
    let mut second =
        serve(first.home()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("a sandbox of the next daemon", || {
        (start(&first, r#"{"say":"hello"}"#).code == 0).then_some(())
    });
    assert!(groups.iter().all(|group| !group.exists()), "{groups:?}");
    send(second.id(), Signal::TERM);
    second.wait().unwrap();
}

/// Returns the cgroups recorded in a directory.
fn noted(dir: &Path) -> Vec<PathBuf> {
    let notes = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let texts = notes.filter_map(|note| std::fs::read_to_string(note.path()).ok());
    texts.flat_map(|text| text.lines().map(PathBuf::from).collect::<Vec<_>>()).collect()
}

/// Rule: the doctor lists each layer, with a fix for a missing one.
#[test]
fn the_doctor_looks_at_each_layer() {
    let home = tempfile::tempdir().unwrap();
    let doctor = |name: &str, value: &str| {
        let mut command = ringback(home.path());
        command.env("RINGBACK_HTTP__LISTEN", "127.0.0.1:0");
        command.env("RINGBACK_HOOT__LISTEN", "tcp://127.0.0.1:0");
        command.env("RINGBACK_HOOT__IOPUB", "tcp://127.0.0.1:0");
        Run::of(command.env(name, value).arg("doctor"))
    };
    let auto = ("RINGBACK_SANDBOX__BACKEND", "auto");
    if ringback_testkit::is_root() {
        let good = doctor(auto.0, auto.1).done();
        for layer in ["bubblewrap", "namespaces", "a limit on memory", "a filter for system calls"]
        {
            assert!(good.stdout.contains(&format!("ok   sandbox, {layer}: ")), "{good:?}");
        }
        let shared = "note sandbox, shared with the daemon's user: ";
        assert!(good.stdout.contains(shared), "{good:?}");
        assert!(good.stdout.contains("fs.epoll.max_user_watches is "), "{good:?}");
        let bad = doctor("RINGBACK_SANDBOX__BWRAP", "/nowhere/bwrap");
        assert_eq!(bad.code, 1, "{bad:?}");
        assert!(bad.stdout.contains("BAD  sandbox, bubblewrap: "), "{bad:?}");
        assert!(bad.stdout.contains("apt install bubblewrap"), "{bad:?}");
    }
    let none = doctor(auto.0, "none").done();
    assert!(none.stdout.contains("note sandbox: agents run unconfined"), "{none:?}");
}

/// Rule: the demonstration works on any machine: without a sandbox it says so, and how to get one.
#[test]
fn the_demo_works_without_a_sandbox_and_says_so() {
    if !ringback_testkit::is_root() {
        return;
    }
    // As a user without the right to set limits.
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let program = dir.path().join("ringback");
    let built = env!("CARGO_BIN_EXE_ringback");
    std::fs::hard_link(built, &program)
        .or_else(|_| std::fs::copy(built, &program).map(drop))
        .unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups", "--"]);
    command.arg(&program).arg("demo").env_clear();
    command.env("HOME", dir.path()).env("TMPDIR", dir.path());
    let shown = Run::of(&mut command).done();
    for part in ["UNCONFINED", "a limit on memory", "Delegate=yes", "All steps were checked"] {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
}
