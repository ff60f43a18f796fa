//! `ringback run` and what follows it: the real daemon, the scripted agent, in a sandbox if
//! possible, and a local directory.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Daemon, Run, file, run_with, send, wait_for};

const SCRIPT: &str = r#"{"call":{"tool":"here_notify","arguments":{"text":"hello"}}}
{"expect":{"is_error":false,"contains":"HELLO"}}
{"write":{"path":"src/main.txt","text":"one\n2\n"}}
{"write":{"path":"new.txt","text":"new\n"}}
{"remove":{"path":"old.txt"}}
{"say":"done"}"#;

/// Creates a directory to work on.
fn project(daemon: &Daemon) -> PathBuf {
    let dir = daemon.home().join("project");
    fs::create_dir_all(dir.join("src")).unwrap();
    fs::create_dir_all(dir.join(".git")).unwrap();
    fs::write(dir.join(".git/config"), "secret").unwrap();
    fs::write(dir.join(".gitignore"), "*.key\n").unwrap();
    fs::write(dir.join("my.key"), "secret").unwrap();
    fs::write(dir.join("src/main.txt"), "one\ntwo\n").unwrap();
    fs::write(dir.join("old.txt"), "old\n").unwrap();
    dir
}

pub(crate) fn run(daemon: &Daemon, arguments: &[&str]) -> Run {
    Run::of(daemon.client(arguments).env("PATH", "/usr/bin:/bin"))
}

fn agent(daemon: &Daemon, dir: &Path, script: &str, more: &[&str]) -> Run {
    let dir = dir.to_str().unwrap();
    let agent = if more.contains(&"--agent") { &[][..] } else { &["--agent", "scripted"][..] };
    let words = ["run", script, "--dir", dir, "--tool", "notify=tr a-z A-Z"];
    run(daemon, &[&words, agent, more].concat())
}

/// Returns the newest session.
fn session(daemon: &Daemon) -> Value {
    run(daemon, &["session", "list", "--json"]).json()["sessions"][0].clone()
}

fn id(daemon: &Daemon) -> String {
    session(daemon)["session_id"].as_str().unwrap().to_owned()
}

/// REQ: "`ringback run`: one line that starts a session on a copy of a directory, streams it
/// readably, and shows the diff at the end, with `ringback session diff|apply` afterwards".
#[test]
fn an_agent_works_on_a_copy_and_what_it_did_is_applied() {
    let daemon = Daemon::start();
    let dir = project(&daemon);
    let shown = agent(&daemon, &dir, SCRIPT, &[]).done();
    for part in ["→ notify {\"text\":\"hello\"}\n← ok, ", "done", "-two\n+2\n", "+++ b/new.txt"]
    {
        assert!(shown.stdout.contains(part), "{part}: {shown:?}");
    }
    assert!(shown.stderr.contains("3 files"), "what git does not see is not copied: {shown:?}");
    assert!(!shown.stdout.contains("secret"), "{shown:?}");
    let session = session(&daemon);
    assert_eq!(session["status"], "ended");
    let id = id(&daemon);
    assert!(shown.stderr.contains(&format!("ringback session apply {id}")), "{shown:?}");
    assert_eq!(fs::read_to_string(dir.join("src/main.txt")).unwrap(), "one\ntwo\n");

    let diff = run(&daemon, &["session", "diff", &id]).done();
    assert!(shown.stdout.contains(diff.stdout.trim_end()), "{diff:?}");
    let part = run(&daemon, &["session", "diff", &id, "src"]).done();
    assert!(!part.stdout.contains("new.txt") && part.stdout.contains("main.txt"), "{part:?}");
    for path in ["nosuch", "../outside"] {
        let nothing = run(&daemon, &["session", "diff", &id, path]);
        assert!(nothing.code == 1 && nothing.stderr.contains(path), "{nothing:?}");
    }
    let dry = run(&daemon, &["session", "apply", &id, "--dry-run"]).done();
    assert!(dry.stdout.contains("added  new.txt") && !dir.join("new.txt").exists(), "{dry:?}");
    let applied = run(&daemon, &["session", "apply", &id]).done();
    for part in ["modified  src/main.txt", "added  new.txt", "removed  old.txt"] {
        assert!(applied.stdout.contains(part), "{part}: {applied:?}");
    }
    assert_eq!(fs::read_to_string(dir.join("src/main.txt")).unwrap(), "one\n2\n");
    assert_eq!(fs::read_to_string(dir.join("new.txt")).unwrap(), "new\n");
    assert!(!dir.join("old.txt").exists());
    let again = run(&daemon, &["session", "apply", &id]).done();
    assert!(again.stderr.contains("0 files changed"), "{again:?}");
}

/// Rule: files that changed here since the copy are not overwritten without `--force`; nothing is
/// written at all then.
#[test]
fn what_changed_since_the_copy_is_named_and_kept() {
    let daemon = Daemon::start();
    let dir = project(&daemon);
    agent(&daemon, &dir, SCRIPT, &[]).done();
    let id = id(&daemon);
    fs::write(dir.join("src/main.txt"), "mine\n").unwrap();
    let refused = run(&daemon, &["session", "apply", &id]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("`src/main.txt`") && refused.stderr.contains("--force"));
    assert!(!dir.join("new.txt").exists() && dir.join("old.txt").exists());
    run(&daemon, &["session", "apply", &id, "--force"]).done();
    assert_eq!(fs::read_to_string(dir.join("src/main.txt")).unwrap(), "one\n2\n");
}

/// Rule: an agent's changes are never written through a link in the directory, and never create one
/// that leads out of it.
#[test]
fn nothing_is_applied_through_a_link() {
    let daemon = Daemon::start();
    let dir = project(&daemon);
    agent(&daemon, &dir, SCRIPT, &[]).done();
    let id = id(&daemon);
    let outside = daemon.home().join("outside");
    fs::rename(dir.join("src"), &outside).unwrap();
    symlink(&outside, dir.join("src")).unwrap();
    let refused = run(&daemon, &["session", "apply", &id, "--force"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("symbolic link"), "{refused:?}");
    assert_eq!(fs::read_to_string(outside.join("main.txt")).unwrap(), "one\ntwo\n");

    let path = session(&daemon)["workspace_path"].as_str().unwrap().to_owned();
    symlink("/etc", Path::new(&path).join("door")).unwrap();
    let clean = project_beside(&daemon);
    let words = ["session", "apply", &id, "--dir", clean.to_str().unwrap()];
    let refused = run(&daemon, &words);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.stderr.contains("`door`"), "{refused:?}");
    assert!(!clean.join("new.txt").exists(), "nothing is written of what is refused");
    let words = [&words[..], &["--except", "door", "--except", "old.txt"]].concat();
    let applied = run(&daemon, &words).done();
    assert!(applied.stderr.contains("2 files left out"), "{applied:?}");
    assert!(clean.join("new.txt").exists() && !clean.join("door").exists());
    assert!(clean.join("old.txt").exists(), "what is left out is not removed either");
}

fn project_beside(daemon: &Daemon) -> PathBuf {
    let dir = daemon.home().join("beside");
    fs::create_dir_all(dir.join("src")).unwrap();
    fs::write(dir.join("src/main.txt"), "one\ntwo\n").unwrap();
    fs::write(dir.join("old.txt"), "old\n").unwrap();
    dir
}

/// Rule: a run that cannot start leaves nothing behind and suggests a fix; a failed agent is a
/// failure.
#[test]
fn what_cannot_be_run_says_so_and_leaves_nothing() {
    let daemon = Daemon::start();
    let dir = project(&daemon);
    let missing = agent(&daemon, &dir.join("nowhere"), SCRIPT, &[]);
    assert_eq!(missing.code, 1, "{missing:?}");
    let unknown = agent(&daemon, &dir, SCRIPT, &["--agent", "gandalf"]);
    assert!(unknown.code == 1 && unknown.stderr.contains("scripted"), "{unknown:?}");
    let preset = agent(&daemon, &dir, SCRIPT, &["--agent", "goose"]);
    assert!(preset.stderr.contains("ringback secret set openai"), "{preset:?}");
    assert!(preset.stderr.contains("OPENAI_API_KEY"), "{preset:?}");
    let none = run(&daemon, &["run", SCRIPT, "--dir", dir.to_str().unwrap()]);
    assert!(none.code == 2 && none.stderr.contains("no agent is installed"), "{none:?}");
    let tool = agent(&daemon, &dir, SCRIPT, &["--tool", "notify=notify.sh"]);
    assert!(tool.code == 2 && tool.stderr.contains("`./notify.sh`"), "{tool:?}");
    let text = dir.join("old.txt");
    let not_executable = format!("notify={}", text.display());
    let tool = agent(&daemon, &dir, SCRIPT, &["--tool", &not_executable]);
    assert!(tool.code == 2 && tool.stderr.contains("chmod +x"), "{tool:?}");
    let tool = agent(&daemon, &dir, SCRIPT, &["--tool", "notify=/nowhere/notify.sh"]);
    assert!(tool.code == 2 && tool.stderr.contains("No such file"), "{tool:?}");
    assert_eq!(agent(&daemon, &dir, "", &[]).code, 2, "there is nothing to say");
    fs::File::create(dir.join("large")).unwrap().set_len((8 << 30) + 1).unwrap();
    let large = agent(&daemon, &dir, SCRIPT, &[]);
    assert!(large.code == 1 && large.stderr.contains("8 GiB"), "{large:?}");
    fs::remove_file(dir.join("large")).unwrap();
    let sessions = run(&daemon, &["session", "list", "--json"]).json();
    assert_eq!(sessions["sessions"], serde_json::json!([]));

    let failed = agent(&daemon, &dir, r#"{"remove":{"path":"nothing"}}"#, &[]);
    assert!(
        failed.code == 1 && failed.stderr.contains("the agent failed: `nothing`"),
        "{failed:?}"
    );
    assert!(failed.stderr.contains("ringback session diff"), "{failed:?}");
    let alone = Run::of(crate::support::ringback(daemon.home()).args([
        "run",
        "hello",
        "--daemon",
        "tcp://127.0.0.1:1",
    ]));
    assert!(alone.code == 69 && alone.stderr.contains("ringback serve"), "{alone:?}");
}

/// Rule: a copy of any directory has none of the daemon's private files: no token, no key, no other
/// workspace.
#[test]
fn what_belongs_to_the_daemon_is_never_copied() {
    let daemon = Daemon::start();
    let data = PathBuf::from(daemon.told("data_dir"));
    let around = data.parent().unwrap();
    fs::write(around.join("seen"), "x").unwrap();
    let shown = agent(&daemon, around, r#"{"say":"done"}"#, &[]).done();
    let data_shown = data.canonicalize().unwrap().display().to_string();
    assert!(shown.stderr.contains(&format!("hidden from agents: {data_shown}")), "{shown:?}");
    let workspace = session(&daemon)["workspace_path"].as_str().unwrap().to_owned();
    let names = fs::read_dir(workspace).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["seen"]);
    for inside in [data.clone(), data.join("workspaces")] {
        let refused = agent(&daemon, &inside, r#"{"say":"done"}"#, &[]);
        assert!(refused.code == 2 && refused.stderr.contains("hidden from agents"), "{refused:?}");
    }
}

/// Rule: the reason for a tool's failure is also shown here.
#[test]
fn a_tool_that_fails_says_why() {
    let daemon = Daemon::start();
    let dir = project(&daemon);
    let script = r#"{"call":{"tool":"here_broken","arguments":{}}}"#;
    let failed = agent(&daemon, &dir, script, &["--tool", "broken=ls /nowhere"]);
    assert!(failed.stdout.contains("← failed, "), "{failed:?}");
    assert!(failed.stdout.contains("/nowhere"), "{failed:?}");
}

/// Rule: Ctrl-C ends the session, and the agent's work so far is kept. The same holds for SIGHUP
/// and SIGTERM.
#[test]
fn an_interrupt_ends_the_session_and_keeps_what_was_done() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        interrupted_by(signal);
    }
}

fn interrupted_by(signal: Signal) {
    let daemon = Daemon::start();
    let dir = project(&daemon);
    let script = r#"{"write":{"path":"new.txt","text":"new\n"}}
{"say":"waiting"}
{"sleep_ms":100000}"#;
    let mut command = daemon.client(&[
        "run",
        script,
        "--agent",
        "scripted",
        "--json",
        "--dir",
        dir.to_str().unwrap(),
    ]);
    let out = daemon.home().join("out");
    command.stdout(fs::File::create(&out).unwrap());
    let mut child = command.spawn().unwrap();
    wait_for("the agent", || {
        fs::read_to_string(&out).unwrap().contains("\"waiting\"").then_some(())
    });
    send(child.id(), signal);
    assert_eq!(crate::support::ended(&mut child).code(), Some(130));
    assert_eq!(session(&daemon)["status"], "ended");
    let diff = run(&daemon, &["session", "diff", &id(&daemon)]).done();
    assert!(diff.stdout.contains("+++ b/new.txt"), "{diff:?}");
}

/// REQ: "asks for permissions": an agent's questions are answered by typed input.
#[test]
fn what_an_agent_asks_is_answered_from_the_keyboard() {
    let home = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_ringback");
    let config = format!(
        "[sessions]\nagent = \"talks\"\n[sessions.agents.talks]\nprotocol = \"acp\"\n\
         permissions = \"ask\"\ncommand = [\"{program}\", \"scripted-agent\", \"--acp\"]\n"
    );
    let path = file(home.path(), "config.toml", config.as_bytes());
    let daemon = Daemon::start_with(&["--config", path.to_str().unwrap()]);
    let dir = project(&daemon);
    let script = r#"{"ask":{"tool":"rm"}}
{"expect":{"is_error":false}}
{"write":{"path":"new.txt","text":"allowed\n"}}"#;
    let words = ["run", script, "--permissions", "ask", "--dir", dir.to_str().unwrap()];
    let shown = run_with(&mut daemon.client(&words), b"nonsense\nonce\n").done();
    assert!(shown.stdout.contains("? Allow `rm`?\n"), "{shown:?}");
    let choices = "  1  Allow once\n  2  Reject\ntype a number and press Enter\n";
    let again = format!("{choices}`nonsense` is not one of the choices\n{choices}");
    assert!(shown.stderr.contains(&again), "{shown:?}");
    assert!(shown.stdout.contains("+allowed"), "{shown:?}");
    assert!(!shown.stdout.contains("scripted-agent"), "its conversation is in its home: {shown:?}");
}

/// REQ: "`ringback session attach`": each line is a message to a kept session.
#[test]
fn a_session_that_was_kept_is_talked_to() {
    let daemon = Daemon::start();
    let dir = project(&daemon);
    agent(&daemon, &dir, r#"{"say":"first"}"#, &["--keep"]).done();
    let id = id(&daemon);
    assert_eq!(session(&daemon)["status"], "idle");
    let out = daemon.home().join("out");
    let mut command = daemon.client(&["session", "attach", &id]);
    command.stdin(std::process::Stdio::piped()).stdout(fs::File::create(&out).unwrap());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"{\"say\":\"second\"}\n").unwrap();
    wait_for("both answers", || {
        let text = fs::read_to_string(&out).unwrap();
        (text.contains("first\n") && text.contains("\nsecond\n")).then_some(())
    });
    drop(stdin);
    assert!(crate::support::ended(&mut child).success(), "it detaches when the agent is idle");
    assert_eq!(session(&daemon)["status"], "idle", "the session stays open");
}
