//! Token counts, and limits that ask the caller: the real daemon, the real program inside, a model
//! that reports the tokens of each answer, and an agent of a few lines.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::support::{Daemon, Run, file, run_with, wait_for};

/// Makes one model request for each word of its message, and says the results.
const AGENT: &str = r#"while read -r line; do
  text=$(printf '%s' "$line" | sed 's/.*"text":"\(.*\)"}/\1/')
  for word in $text; do
    place=${BASE#http://}
    exec 3<>"/dev/tcp/${place%%:*}/${place#*:}"
    printf 'POST /v1/chat/completions HTTP/1.1\r\nhost: here\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}' >&3
    answer=$(sed -n '1{s/^[^ ]* //;s/ .*//;p}' <&3)
    exec 3>&-
    printf '{"type":"message","text":"%s: %s"}\n' "$word" "$answer"
  done
  echo '{"type":"done"}'
done"#;

/// A local model. Each answer reports the next number of tokens; the last one repeats.
#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Model {
    pub(crate) fn start(tokens: &'static [u64]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let noted = Arc::clone(&asked);
        std::thread::spawn(move || {
            for (n_asked, stream) in listener.incoming().enumerate() {
                let tokens = tokens.get(n_asked).or(tokens.last()).copied().unwrap_or(0);
                noted.lock().unwrap().push(answer(&stream.unwrap(), tokens));
            }
        });
        Self { url, asked }
    }

    /// The heads of its requests.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn answer(mut stream: &TcpStream, tokens: u64) -> String {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
    }
    reader.read_exact(&mut [0; 2]).unwrap();
    let usage = format!("{{\"prompt_tokens\":{},\"completion_tokens\":1}}", tokens - 1);
    let body = format!(
        "data: {{\"model\":\"m-1\",\"choices\":[]}}\n\ndata: {{\"model\":\"m-1\",\"usage\":{usage}}}\n\ndata: [DONE]\n\n"
    );
    let n_bytes = body.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ncontent-length: {n_bytes}\r\n\r\n{body}"
    )
    .unwrap();
    head
}

/// Writes a configuration with one provider, with `more` in its table, and one agent that uses it.
pub(crate) fn agent(dir: &Path, url: &str, more: &str) -> String {
    let script = file(dir, "agent.sh", AGENT.as_bytes());
    let script = script.display();
    let text = format!(
        "[providers.mine]\nurl = '{url}'\n{more}\n\
         [sessions.agents.asks]\ncommand = ['/bin/bash', '{script}']\nprovider = 'mine'\n\
         env = {{ BASE = '{{model}}' }}\n[sandbox]\nread_only = ['{script}']\n"
    );
    file(dir, "config.toml", text.as_bytes()).to_str().unwrap().to_owned()
}

const PRICES: &str =
    "[providers.mine.prices.'m-*']\ninput = 1.00\noutput = 5.00\n[sessions]\nlimit_wait = 60000\n";

struct World {
    daemon: Daemon,
    model: Model,
    dir: tempfile::TempDir,
}

fn world(tokens: &'static [u64], more: &str) -> World {
    let model = Model::start(tokens);
    let dir = tempfile::tempdir().unwrap();
    let config = agent(dir.path(), &model.url, more);
    let daemon = Daemon::start_with(&["--config", &config]);
    std::fs::create_dir(dir.path().join("work")).unwrap();
    World { daemon, model, dir }
}

impl World {
    fn command(&self, words: &str, more: &[&str]) -> std::process::Command {
        let dir = self.dir.path().join("work");
        let start = ["run", words, "--agent", "asks", "--dir", dir.to_str().unwrap()];
        let mut command = self.daemon.client(&[&start[..], more].concat());
        command.env("PATH", "/usr/bin:/bin");
        command
    }

    fn session(&self) -> Value {
        self.daemon.run(&["session", "list", "--json"]).json()["sessions"][0].clone()
    }
}

/// REQ: `--max-tokens` end to end: the run pauses at its limit, continues after `more` is typed,
/// and shows its usage at the end.
#[test]
fn a_run_pauses_at_its_limit_and_goes_on_with_more() {
    let world = world(&[60, 60, 10], PRICES);
    let mut command = world.command("one two three", &["--max-tokens", "100"]);
    let run = run_with(command.stdin(Stdio::piped()), b"1\n").done();
    for part in ["one: 200", "two: 200", "three: 200", "(120 of 100 tokens)", "1  as much again"] {
        assert!(run.stdout.contains(part) || run.stderr.contains(part), "{part}: {run:?}");
    }
    let used = "model: 3 requests, 127 tokens read, 3 written, 0.000142 USD";
    assert!(run.stderr.contains(used), "{run:?}");
    assert_eq!(world.model.heads().len(), 3);
    let session = world.session();
    assert_eq!(session["limits"]["max_tokens"], 200);
    assert_eq!(session["model_usage"]["cost_micro_usd"], 142);
    let id = session["session_id"].as_str().unwrap();
    let shown = world.daemon.run(&["session", "show", id]).done();
    assert!(shown.stdout.contains("127 tokens read") && shown.stdout.contains("200 tokens"));
}

/// REQ: the same with the answer `end`: no further model request, and the run shows why.
#[test]
fn a_run_that_is_ended_at_its_limit_asks_nothing_more() {
    let world = world(&[60], PRICES);
    let mut command = world.command("one two three", &["--max-usd", "0.0001"]);
    let run = run_with(command.stdin(Stdio::piped()), b"end\n");
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("stopped at a limit: 0.000128 of 0.0001 USD"), "{run:?}");
    assert_eq!(world.model.heads().len(), 2, "the third was refused");
    assert!(run.stderr.contains("model: 2 requests"), "{run:?}");
}

/// Rule: a session at its limit is shown as paused, and anyone with the right to decide answers
/// with `session answer`; a cost limit without prices is refused.
#[test]
fn a_paused_session_is_shown_and_answered_from_elsewhere() {
    let world = world(&[60], "");
    let unpriced = Run::of(&mut world.command("one", &["--max-usd", "1"]));
    assert_eq!(unpriced.code, 1, "{unpriced:?}");
    assert!(unpriced.stderr.contains("[providers.mine.prices."), "{unpriced:?}");
    let mut command = world.command("one two", &["--max-tokens", "50"]);
    let running = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let running = running.spawn().unwrap();
    let session = wait_for("the session to pause", || {
        let listed = world.daemon.run(&["session", "list", "--json"]).json();
        let first = listed["sessions"][0].clone();
        first["paused"].is_object().then_some(first)
    });
    let (id, pause) = (session["session_id"].as_str().unwrap(), &session["paused"]);
    assert_eq!(pause["limit"], "max_tokens");
    let request = pause["request_id"].as_str().unwrap();
    let shown = world.daemon.run(&["session", "show", id]).done().stdout;
    assert!(shown.contains("running, paused") && shown.contains(request), "{shown}");
    world.daemon.run(&["session", "answer", id, request, "more"]).done();
    let run = Run::from(running.wait_with_output().unwrap()).done();
    assert!(run.stdout.contains("two: 200"), "{run:?}");
    assert_eq!(world.session()["limits"]["max_tokens"], 100);
}

/// REQ: `--max-time`: the caller is asked about an agent that works for too long.
#[test]
fn a_run_that_takes_too_long_is_asked_about() {
    let world = world(&[1], "");
    let dir = world.dir.path().join("work");
    let words = [
        "run",
        r#"{"sleep_ms":600000}"#,
        "--agent",
        "scripted",
        "--max-time",
        "1s",
        "--dir",
        dir.to_str().unwrap(),
    ];
    let mut command = world.daemon.client(&words);
    let run = run_with(command.env("PATH", "/usr/bin:/bin").stdin(Stdio::piped()), b"2\n");
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stderr.contains("stopped at a limit: 1 of 1 seconds"), "{run:?}");
}
