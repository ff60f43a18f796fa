//! One command from an empty home: `ringback run` starts a daemon, finds an agent, brings the key,
//! and leaves nothing behind.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{Daemon, Run, file, is_confinable, ringback, wait_for};

const KEY: &str = "sk-of-a-shell-0123456789abcdef";

/// goose as far as it matters here: the Agent Client Protocol, and one request to its model. What it
/// can see of its machine goes into the workspace, and so into the diff.
const GOOSE: &str = r#"#!/bin/bash
while read -r line; do
  id=$(sed -n 's/.*"id":\([0-9]*\).*/\1/p' <<<"$line")
  result='{}'
  case $line in
    *'"initialize"'*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) result='{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
      env > seen.txt
      cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' >> seen.txt
      place=${OPENAI_HOST#http://}
      exec 3<>"/dev/tcp/${place%%:*}/${place#*:}"
      printf 'POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\nauthorization: Bearer %s\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}' "$OPENAI_API_KEY" >&3
      cat <&3 >> seen.txt
      exec 3>&-
      result='{"stopReason":"end_turn"}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done"#;

/// A home without anything of ours, a project in it, and goose on the `PATH`. Dropping it stops the
/// daemon that a command started.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        for dir in ["bin", "project", ".config/ringback"] {
            fs::create_dir_all(home.path(dir)).unwrap();
        }
        file(&home.path("project"), "main.txt", b"one\n");
        home
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn install_goose(&self) {
        let path = file(&self.path("bin"), "goose", GOOSE.as_bytes());
        fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }

    fn configure(&self, text: &str) {
        file(&self.path(".config/ringback"), "config.toml", text.as_bytes());
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = ringback(self.0.path());
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        command.env("PATH", path).args(arguments).current_dir(self.path("project"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        Run::of(&mut self.command(arguments))
    }

    /// The addresses of the running daemon.
    fn daemon(&self) -> Option<Value> {
        let text = fs::read(self.path(".local/share/ringback/run/daemon.json")).ok()?;
        serde_json::from_slice(&text).ok()
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        drop(self.command(&["stop"]).output());
    }
}

/// A provider that answers every request with this status, and the heads of the requests.
fn provider(status: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let noted = Arc::clone(&heads);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            noted.lock().unwrap().push(answer(&stream.unwrap(), status));
        }
    });
    (url, heads)
}

fn answer(mut stream: &TcpStream, status: &str) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    reader.read_exact(&mut [0; 2]).unwrap();
    let answer = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{{}}");
    stream.write_all(answer.as_bytes()).unwrap();
    head
}

/// A provider that is called `openai`, and needs the secret of that name.
fn openai_at(url: &str) -> String {
    format!("[providers.openai]\nurl = '{url}'\nsecret = 'openai'\n")
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let kind = fs::symlink_metadata(&path).unwrap().file_type();
        if kind.is_dir() {
            files.extend(files_in(&path));
        } else if kind.is_file() {
            files.push(path);
        }
    }
    files
}

fn has_ended(pid: u64) -> bool {
    // One that nobody waits for is a zombie, and has no environment.
    fs::read(format!("/proc/{pid}/environ")).map_or(true, |environ| environ.is_empty())
}

/// REQ: `OPENAI_API_KEY=… ringback run "…"` works from an empty home: it starts a daemon, finds the
/// only agent, and brings the key, which is in no file, process, log, event or answer.
#[test]
fn one_command_is_enough_and_its_key_is_nowhere() {
    let home = Home::new();
    home.install_goose();
    let (url, heads) = provider("200 OK");
    home.configure(&openai_at(&url));
    let shown = Run::of(home.command(&["run", "do it"]).env("OPENAI_API_KEY", KEY)).done();
    assert!(shown.stderr.contains("started a daemon in the background"), "{shown:?}");
    assert!(shown.stdout.contains("+++ b/seen.txt"), "{shown:?}");
    let heads = heads.lock().unwrap().clone();
    assert_eq!(heads.len(), 1, "{heads:?}");
    assert!(heads[0].contains(&format!("authorization: Bearer {KEY}\r\n")), "{heads:?}");

    let pid = home.daemon().unwrap()["pid"].as_u64().unwrap();
    let environ = fs::read(format!("/proc/{pid}/environ")).unwrap();
    assert!(environ.windows(5).any(|at| at == b"HOME="), "this is its environment");
    let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap();
    let config = home.run(&["call", "config_get", "--output", "json"]).done().stdout;
    let sessions = home.run(&["session", "list", "--json"]).done().stdout;
    let audit = home.run(&["audit", "--json"]).done().stdout;
    assert!(audit.contains("session_spawn") && sessions.contains("goose"), "{audit} {sessions}");
    let said = [shown.stdout, shown.stderr, config, sessions, audit].map(String::into_bytes);
    let files = files_in(home.0.path()).into_iter().map(|path| fs::read(path).unwrap_or_default());
    for text in said.into_iter().chain([environ, words]).chain(files) {
        let found = text.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "{}", String::from_utf8_lossy(&text));
    }

    // The next session brings its own, or has none.
    let again = home.run(&["run", "do it"]);
    assert_eq!(again.code, 1, "{again:?}");
    assert!(again.stderr.contains("provider `openai` has no key"), "{again:?}");
    assert!(!again.stderr.contains("started a daemon"), "{again:?}");
    let doctor = home.run(&["doctor", "--json"]).stdout;
    assert!(doctor.contains("in the background") && doctor.contains(&pid.to_string()), "{doctor}");
    let stopped = home.run(&["stop"]).line();
    assert_eq!(stopped, format!("stopped the daemon (process {pid})"));
    assert!(has_ended(pid) && home.daemon().is_none());
    assert_eq!(home.run(&["stop"]).line(), "no daemon is running");
}

/// Rule: a key from a variable is sent over the user's own socket alone, and a stored secret wins.
#[test]
fn a_variables_key_goes_over_the_own_socket_alone_and_a_secret_wins() {
    let home = Home::new();
    home.install_goose();
    let (url, heads) = provider("200 OK");
    home.configure(&openai_at(&url));
    home.run(&["run", "true", "--agent", "scripted"]).done();
    let http = home.daemon().unwrap()["http"].as_str().unwrap().to_owned();
    assert!(!http.ends_with(":7180"), "any free port: {http}");
    let token = fs::read_to_string(home.path(".local/share/ringback/token")).unwrap();
    // Its port is any, and known from the daemon's own list of listeners.
    let listening = home.run(&["call", "config_get", "--output", "json"]).done().stdout;
    assert!(listening.contains("tcp://127.0.0.1:0"), "{listening}");
    let refused = Run::of(
        home.command(&["run", "do it"])
            .env("OPENAI_API_KEY", KEY)
            .env("RINGBACK_TOKEN", token.trim())
            .env("RINGBACK_DAEMON", "tcp://127.0.0.1:1"),
    );
    assert_eq!(refused.code, 69, "a named daemon is not replaced: {refused:?}");

    let mut set = home.command(&["secret", "set", "openai"]);
    crate::support::run_with(&mut set, b"sk-stored-0123456789").done();
    Run::of(home.command(&["run", "do it"]).env("OPENAI_API_KEY", KEY)).done();
    let heads = heads.lock().unwrap().clone();
    assert!(heads[0].contains("Bearer sk-stored-0123456789\r\n"), "{heads:?}");
}

/// Rule: two commands at the same time start one daemon.
#[test]
fn two_commands_at_once_start_one_daemon() {
    let home = Home::new();
    let started = |_| {
        let mut command = home.command(&["run", r#"{"say":"done"}"#, "--agent", "scripted"]);
        let (out, err) = (std::process::Stdio::piped(), std::process::Stdio::piped());
        command.stdout(out).stderr(err).spawn().unwrap()
    };
    let children: Vec<_> = (0..3).map(started).collect();
    let runs: Vec<_> =
        children.into_iter().map(|child| Run::from(child.wait_with_output().unwrap())).collect();
    let n_started = runs.iter().filter(|run| run.stderr.contains("started a daemon")).count();
    assert_eq!(n_started, 1, "{runs:?}");
    assert!(runs.iter().all(|run| run.code == 0), "{runs:?}");
}

/// Rule: a daemon in the background ends when it has had nothing to do for as long as configured,
/// and the next command starts another. A session that was kept keeps its daemon.
#[test]
fn a_daemon_in_the_background_does_not_outlive_its_idle_time() {
    let (busy, idle) = (Home::new(), Home::new());
    let pid = |home: &Home| home.daemon().unwrap()["pid"].as_u64().unwrap();
    let words = ["run", r#"{"say":"done"}"#, "--agent", "scripted"];
    for home in [&busy, &idle] {
        home.configure("[background]\nidle = '1s'\n");
    }
    let kept = busy.run(&[&words[..], &["--keep"]].concat()).done();
    assert!(kept.stderr.contains("ends when idle for 1s"), "{kept:?}");
    let kept = pid(&busy);
    for _ in 0..2 {
        let run = idle.run(&words).done();
        assert!(run.stderr.contains("started a daemon"), "{run:?}");
        let started = pid(&idle);
        wait_for("the end of an idle daemon", || has_ended(started).then_some(()));
        assert!(idle.daemon().is_none(), "its addresses are gone with it");
    }
    // The other one had nothing to do either, for longer.
    let sessions = busy.run(&["session", "list", "--json"]).json();
    assert_eq!(pid(&busy), kept);
    let id = sessions["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    busy.run(&["session", "end", &id]).done();
    wait_for("the end of the other", || has_ended(kept).then_some(()));
}

/// Rule: what keeps a daemon from starting is said by the command that wanted it.
#[test]
fn a_daemon_that_does_not_start_says_why() {
    let home = Home::new();
    let text = "[sessions.agents.a]\ncommand = ['/bin/true']\nprovider = 'anthropic'\n";
    home.configure(text);
    let failed = home.run(&["run", "x", "--agent", "scripted"]);
    assert_eq!(failed.code, 69, "{failed:?}");
    assert!(failed.stderr.contains("ringback secret set anthropic"), "{failed:?}");
    assert!(failed.stderr.contains("daemon.log"), "{failed:?}");
}

/// Rule: `ringback stop` ends a daemon that `serve` runs, too.
#[test]
fn a_daemon_of_serve_is_stopped_too() {
    let mut daemon = Daemon::start();
    let stopped = daemon.run(&["stop", "--json"]).json();
    assert_eq!(stopped["pid"].as_u64(), Some(u64::from(daemon.pid())));
    assert!(daemon.ended().success());
}

/// REQ: exit code 1, with provider, status and cause, when no request to the model succeeded; a
/// refused key names its origin.
#[test]
fn a_run_whose_model_never_answered_has_failed() {
    let home = Home::new();
    home.install_goose();
    let run = |status, more: &[&str]| {
        drop(home.command(&["stop"]).output());
        let url = match status {
            Some(status) => provider(status).0,
            // Nothing listens there: the port was free a moment ago.
            None => {
                let listener = TcpListener::bind("127.0.0.1:0").unwrap();
                format!("http://{}", listener.local_addr().unwrap())
            }
        };
        home.configure(&openai_at(&url));
        let words = [&["run", "do it", "--agent", "goose"], more].concat();
        let run = Run::of(home.command(&words).env("OPENAI_API_KEY", KEY));
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains("no model request succeeded: provider `openai`"), "{run:?}");
        run.stderr
    };
    let broken = run(Some("500 Internal Server Error"), &[]);
    assert!(broken.contains("answered 500: it failed"), "{broken}");
    let refused = run(Some("401 Unauthorized"), &[]);
    assert!(refused.contains("answered 401") && refused.contains("OPENAI_API_KEY"), "{refused}");
    let dead = run(None, &[]);
    assert!(dead.contains("it refuses connections"), "{dead}");
    if is_confinable() {
        let closed = run(Some("200 OK"), &["--network", "none"]);
        assert!(closed.contains("`none`"), "{closed}");
    }
    let mut set = home.command(&["secret", "set", "openai"]);
    crate::support::run_with(&mut set, b"sk-stored-0123456789").done();
    let refused = run(Some("401 Unauthorized"), &[]);
    assert!(refused.contains("`ringback secret set openai`"), "{refused}");
}

const ASKS: &str = r#"{"ask":{"tool":"ringback_here_notify"}}
{"expect":{"is_error":false}}
{"call":{"tool":"here_notify","arguments":{"text":"hi there"}}}
{"expect":{"is_error":false,"contains":"HI THERE"}}"#;
const ASKS_MORE: &str = r#"{"ask":{"tool":"rm"}}
{"expect":{"is_error":false}}"#;

/// REQ: a tool of `--tool` is not asked about; without a terminal another question fails the run at
/// once and says what to pass; with `--permissions` it is answered.
#[test]
fn a_question_without_a_terminal_fails_the_run_and_own_tools_are_not_asked_about() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_ringback");
    home.configure(&format!(
        "[sessions.agents.talks]\nprotocol = \"acp\"\npermissions = \"ask\"\n\
         command = [\"{program}\", \"scripted-agent\", \"--acp\"]\n"
    ));
    let tool = r#"notify=sh -c "tr a-z A-Z""#;
    let run = |script: &str, more: &[&str]| {
        home.run(&[&["run", script, "--tool", tool, "--tool-timeout", "1m"], more].concat())
    };
    run(ASKS, &[]).done();
    let asked = run(ASKS_MORE, &[]);
    assert_eq!(asked.code, 1, "{asked:?}");
    assert!(asked.stderr.contains("(`rm`)"), "{asked:?}");
    assert!(asked.stderr.contains("`--permissions allow`"), "{asked:?}");
    run(ASKS_MORE, &["--permissions", "allow"]).done();
    let denied = run(ASKS_MORE, &["--permissions", "deny"]);
    assert!(denied.code == 1 && denied.stderr.contains("the agent failed"), "{denied:?}");
    run(ASKS, &["--permissions", "deny"]).done();
    let quotes = run(ASKS, &["--tool", "x=sh -c \"echo"]);
    assert!(quotes.code == 2 && quotes.stderr.contains("do not match"), "{quotes:?}");
}

/// REQ: known providers need no configuration, and those without an address of their own say which
/// key to set.
#[test]
fn a_known_provider_is_named_without_configuration() {
    let home = Home::new();
    home.install_goose();
    let run = |more: &[&str]| home.run(&[&["run", "do it", "--agent", "goose"], more].concat());
    let unaddressed = run(&["--provider", "azure", "--model", "m"]);
    assert!(unaddressed.stderr.contains("`url` in `[providers.azure]`"), "{unaddressed:?}");
    let keyless = run(&["--provider", "openrouter", "--model", "m"]);
    assert!(keyless.stderr.contains("OPENROUTER_API_KEY"), "{keyless:?}");
    let unnamed = run(&["--provider", "ollama"]);
    assert!(unnamed.stderr.contains("--model NAME"), "{unnamed:?}");
    let other_api = run(&["--provider", "anthropic", "--model", "m"]);
    assert!(other_api.stderr.contains("the `openai` API"), "{other_api:?}");
    let unknown = run(&["--provider", "gandalf", "--model", "m"]);
    assert!(unknown.stderr.contains("unknown provider `gandalf`"), "{unknown:?}");
    for run in [unaddressed, keyless, unnamed, other_api, unknown] {
        assert_eq!(run.code, 1, "{run:?}");
    }
    let sessions = home.run(&["session", "list", "--json"]).json();
    assert_eq!(sessions["sessions"], serde_json::json!([]), "nothing was started");
}
