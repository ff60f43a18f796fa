//! Commands offered as tools, and calls of them.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Daemon, Run, ended, file, ringback, send, wait_for};

/// A running command whose output is read line by line. Dropping it kills it.
pub(crate) struct RunningCommand {
    child: Child,
    lines: std::io::Lines<BufReader<ChildStdout>>,
}

impl RunningCommand {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn line(&mut self) -> String {
        self.lines.next().unwrap().unwrap()
    }

    fn json(&mut self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    fn interrupted(mut self) -> Option<i32> {
        send(self.child.id(), Signal::INT);
        ended(&mut self.child).code()
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        // It may already have ended.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns the address of the daemon's HTTP listener.
fn http(daemon: &Daemon) -> &str {
    daemon.told("http").strip_prefix("http://").unwrap()
}

/// Offers a shell script and waits until it can be called.
pub(crate) fn offer(daemon: &Daemon, name: &str, options: &[&str], script: &str) -> RunningCommand {
    let mut command = daemon.client(&["offer", name, "--json", "--http", http(daemon)]);
    command.env("PATH", "/usr/bin:/bin").args(options).args(["--", "sh", "-c", script]);
    let mut offer = RunningCommand::start(&mut command);
    let offered = offer.json();
    assert_eq!(offered["event"], "offered");
    assert_eq!(offered["tool"], format!("client_{name}_{name}"));
    offer
}

/// Returns the line of the README that starts with this, without its comment.
fn readme_line(start: &str) -> String {
    let readme = include_str!("../../../../README.md");
    let line = readme.lines().find(|line| line.starts_with(start)).unwrap();
    line.split(" #").next().unwrap().trim_end().to_owned()
}

/// Builds a command from a line as a person would type it.
fn typed(daemon: &Daemon, line: &str) -> Command {
    let bin = Path::new(env!("CARGO_BIN_EXE_ringback")).parent().unwrap();
    let mut shell = Command::new("sh");
    shell.env_clear().env("HOME", daemon.home()).stdin(Stdio::null());
    // The daemon of this test uses a free port; with the default port, no variable is needed.
    shell.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    shell.env("RINGBACK_HTTP__LISTEN", http(daemon));
    shell.args(["-c", &format!("exec {line}")]);
    shell
}

/// REQ: the README shows `ringback offer` and a call to it, and both lines work as printed.
#[test]
fn the_lines_of_the_readme_work_as_printed() {
    let daemon = Daemon::start();
    let mut offer = RunningCommand::start(&mut typed(&daemon, &readme_line("ringback offer ")));
    assert!(offer.line().contains("is available"));
    // The suggested call is the one in the README.
    let call = readme_line("ringback call client_");
    assert_eq!(offer.line().trim(), call);
    let called = Run::of(&mut typed(&daemon, &call)).done();
    assert!(called.stdout.contains(r#"{"TEXT":"HELLO"}"#), "{called:?}");
    assert_eq!(offer.interrupted(), Some(0), "Ctrl-C ends an offer in order");
    let gone = Run::of(&mut typed(&daemon, &call));
    assert_eq!(gone.code, 2, "{gone:?}");
    assert!(gone.stderr.contains("unknown tool"), "{gone:?}");
}

/// Rule: a payload keeps its order, numbers and texts on the way to a tool on a line.
#[test]
fn a_call_of_an_offered_tool_passes_its_input_unchanged() {
    let daemon = Daemon::start();
    let _offer = offer(&daemon, "echo", &[], "cat");
    let input = r#"{"z":18446744073709551615,"a":[null,-9223372036854775808,1.5],"text":"ä \\n"}"#;
    let call = ["call", "client_echo_echo", "--json", input, "--output", "json"];
    let answer = daemon.run(&call).json();
    assert_eq!((&answer["status"], &answer["title"]), (&"success".into(), &"echo".into()));
    assert_eq!(answer["output"], input);
    let table = daemon.run(&["call", "client_echo_echo", "n=5", "text=a b"]).done().stdout;
    assert!(table.contains(r#"output  {"n":5,"text":"a b"}"#), "{table}");
    let rounded = daemon.run(&["call", "client_echo_echo", "n=18446744073709551616"]);
    assert_eq!(rounded.code, 2, "{rounded:?}");
    for near in ["echo", "client_echo_ecoh"] {
        let run = daemon.run(&["call", near]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains("did you mean `client_echo_echo`?"), "{run:?}");
    }
}

#[test]
fn a_schema_types_the_fields_of_an_offered_tool() {
    let daemon = Daemon::start();
    let schema = br#"{"type": "object", "required": ["n"], "additionalProperties": false,
        "properties": {"n": {"type": "integer"}, "text": {"type": "string"}}}"#;
    let path = file(daemon.home(), "schema.json", schema);
    let options = ["--schema", path.to_str().unwrap(), "--description", "Repeats. Nothing else."];
    let _offer = offer(&daemon, "echo", &options, "cat");
    let answer = daemon.run(&["call", "client_echo_echo", "text=5", "n=5", "--output", "json"]);
    assert_eq!(answer.json()["output"], r#"{"text":"5","n":5}"#);
    for (pair, expected) in [("n=x", "takes integer"), ("m=5", "has no field `m`")] {
        let run = daemon.run(&["call", "client_echo_echo", pair]);
        assert_eq!(run.code, 2, "{run:?}");
        assert!(run.stderr.contains(expected), "{run:?}");
    }
    let missing = daemon.run(&["call", "client_echo_echo"]);
    assert_eq!(missing.code, 1, "the daemon checks too: {missing:?}");
    assert!(missing.stderr.contains("nothing was done"), "{missing:?}");
    let listed = daemon.run(&["tools", "client_"]).done().stdout;
    assert!(listed.contains("client_echo_echo") && listed.contains("Repeats."), "{listed}");
    assert!(daemon.run(&["tools", "client_echo_echo"]).done().stdout.contains("integer"));
}

#[test]
fn progress_and_failures_of_a_command_reach_the_caller() {
    let daemon = Daemon::start();
    let script = "echo 'progress: 40 half of it' >&2; echo careful >&2; cat; exit 3";
    let mut offer = offer(&daemon, "work", &[], script);
    let run = daemon.run(&["call", "client_work_work", "--stream", "--output", "json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("careful") && run.stderr.contains("exit status: 3"), "{run:?}");
    let lines: Vec<Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines[0]["started"]["stream_id"].is_string(), "{lines:?}");
    assert_eq!(lines[1]["chunk"]["percent"], 40.0, "{lines:?}");
    assert_eq!(lines[1]["chunk"]["message"], "half of it");
    let answered = offer.json();
    assert_eq!((&answered["event"], &answered["status"]), (&"answered".into(), &"error".into()));
    assert_eq!(offer.interrupted(), Some(0));
}

/// Rule: a caller that hangs up ends the work, down to its last process.
#[test]
fn ctrl_c_of_a_call_ends_the_processes_of_the_offered_command() {
    let daemon = Daemon::start();
    let path = daemon.home().join("pid");
    let script = format!("sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", path.display());
    let _offer = offer(&daemon, "sleepy", &[], &script);
    let mut call = daemon.client(&["call", "client_sleepy_sleepy"]);
    let mut child = call.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = wait_for("the command", || std::fs::read_to_string(&path).ok());
    send(child.id(), Signal::INT);
    assert_eq!(ended(&mut child).code(), Some(130));
    wait_for("the command to end", || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.map_or(true, |stat| stat.contains(") Z ")).then_some(())
    });
}

/// Rule: a secret is passed only where it is needed.
#[test]
fn an_offered_command_does_not_get_the_token() {
    let daemon = Daemon::start();
    let mut command = daemon.client(&["offer", "env", "--json", "--http", http(&daemon)]);
    command.env("RINGBACK_TOKEN", daemon.token()).env("SHOWN", "yes");
    let mut offer = RunningCommand::start(command.args(["--", "/usr/bin/env"]));
    assert_eq!(offer.json()["event"], "offered");
    let shown = daemon.run(&["call", "client_env_env"]).done().stdout;
    assert!(shown.contains("SHOWN=yes") && !shown.contains("oub_"), "{shown}");
}

#[test]
fn an_offer_outlives_its_daemon() {
    let mut daemon = Daemon::start();
    let mut offer = offer(&daemon, "echo", &[], "cat");
    let address = http(&daemon).to_owned();
    daemon.signal(Signal::KILL);
    daemon.ended();
    assert_eq!(offer.json()["event"], "lost");
    let any = "tcp://127.0.0.1:0";
    let mut again = ringback(daemon.home());
    again.args(["serve", "--json", "--http", &address, "--hoot", any, "--iopub", any]);
    let again = RunningCommand::start(&mut again);
    assert_eq!(offer.json()["event"], "back");
    let answer = daemon.run(&["call", "client_echo_echo", "n=1", "--output", "json"]).json();
    assert_eq!(answer["output"], r#"{"n":1}"#);
    assert_eq!(again.interrupted(), Some(0));
}

#[test]
fn an_offer_that_cannot_be_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let run = |more: &[&str]| {
        Run::of(ringback(dir.path()).args(["offer", "x"]).args(more).args(["--", "cat"]))
    };
    let nobody = run(&["--http", "127.0.0.1:9"]);
    assert_eq!(nobody.code, 69, "{nobody:?}");
    let far = run(&["--http", "192.0.2.1:7180"]);
    assert_eq!(far.code, 2, "{far:?}");
    assert!(far.stderr.contains("tunnel"), "{far:?}");
    let daemon = Daemon::start();
    let stranger = run(&["--http", http(&daemon)]);
    assert_eq!(stranger.code, 77, "{stranger:?}");
    let schema = file(dir.path(), "schema.json", br#"{"type": "string"}"#);
    let mut bad = daemon.client(&["offer", "x", "--http", http(&daemon), "--schema"]);
    let bad = Run::of(bad.arg(schema).args(["--", "cat"]));
    assert_eq!(bad.code, 1, "{bad:?}");
    assert!(bad.stderr.contains("object"), "{bad:?}");
}

#[test]
fn tools_are_watched_as_they_come_and_go() {
    let daemon = Daemon::start();
    let mut watch =
        RunningCommand::start(&mut daemon.client(&["tools", "--watch", "--json", "client_"]));
    let offered = offer(&daemon, "echo", &["--description", "Repeats."], "cat");
    let added = watch.json();
    // Whether the list or the offer came first.
    assert!(added["change"] == "added" || added["change"] == "listed", "{added}");
    assert_eq!(added["tool"]["name"], "client_echo_echo");
    assert_eq!(added["tool"]["description"], "Repeats.");
    assert_eq!(offered.interrupted(), Some(0));
    let removed = watch.json();
    assert_eq!(
        (&removed["change"], &removed["name"]),
        (&"removed".into(), &"client_echo_echo".into())
    );
    assert_eq!(watch.interrupted(), Some(130));
}
