//! Agents in containers, from the command line. The image has only busybox: the agent is a shell
//! script that talks to the program inside.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use ringback_testkit::engine;
use rustix::process::Signal;
use serde_json::Value;

use crate::models::{KEY, provider};
use crate::support::{Daemon, Run, file, ringback, serve, wait_for};

/// Calls its caller's tool with its message, and says the result, where it is, and what its model
/// says if it has one.
const AGENT: &str = r#"mkfifo /tmp/in
"$1" < /tmp/in > /tmp/out 2> /tmp/errors &
exec 3> /tmp/in
say() { printf '%s\n' "$1" >&3; }
hear() { until grep "\"id\":$1[,}]" /tmp/out; do sleep 0.05; done; }
say '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}'
hear 1 > /dev/null
say '{"jsonrpc":"2.0","method":"notifications/initialized"}'
while read -r line; do
  word=$(printf '%s' "$line" | sed 's/.*"text":"\([a-z]*\)".*/\1/')
  say '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"here_shout","arguments":{"text":"'$word'"}}}'
  loud=$(hear 2 | grep -o '[A-Z]\{5\}' | tail -n 1)
  nets=$(tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' \n')
  model=$(test -z "$BASE" || wget -q -O - --header "x-api-key: $SECRET" --post-data '{}' "$BASE/v1/messages")
  echo "{\"type\":\"message\",\"text\":\"$loud in $PWD on $nets $model\"}"
  touch made
  echo '{"type":"done"}'
done"#;
/// Only in the environment of the agent.
const SECRET: &str = "swordfish-of-the-agent";

/// A configuration with agents in containers; `None` if the tests run without containers.
fn config(more: &str, of_agent: &str) -> Option<tempfile::TempDir> {
    let socket = engine::socket()?;
    let dir = tempfile::tempdir().unwrap();
    let agent = file(dir.path(), "agent.sh", AGENT.as_bytes());
    let agent = agent.display();
    let text = format!(
        "[sandbox]\nbackend = 'docker'\ndocker = 'unix://{socket}'\nimage = '{}'\n\
         read_only = ['{agent}']\n[log]\nfilter = 'trace'\n\
         [sessions]\nagent = 'shell'\n\
         [sessions.agents.shell]\ncommand = ['/bin/sh', '{agent}', '{{inside}}']\n{of_agent}\n{more}",
        engine::IMAGE
    );
    file(dir.path(), "config.toml", text.as_bytes());
    Some(dir)
}

fn daemon(dir: &tempfile::TempDir) -> Daemon {
    Daemon::start_with(&["--config", dir.path().join("config.toml").to_str().unwrap()])
}

fn ask(daemon: &Daemon) -> Vec<Value> {
    let arguments = ["session", "start", "hello", "--tool", "shout=tr a-z A-Z", "--json"];
    let shown = Run::of(daemon.client(&arguments).env("PATH", "/usr/bin:/bin")).done();
    shown.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn said(events: &[Value]) -> &str {
    let is_said = |event: &&Value| event["type"] == "message" && event["role"] == "assistant";
    let message = events.iter().find(is_said);
    message.and_then(|event| event["text"].as_str()).unwrap_or_else(|| panic!("{events:?}"))
}

fn containers(daemon: &Daemon) -> Vec<String> {
    engine::containers(&daemon.home().join(".local/share/ringback/sandbox"))
}

/// REQ: "The same for Docker with a small static agent": an agent in its own container calls its
/// caller's tool, without any network; its session shows that it is confined, and nothing is left.
#[test]
fn an_agent_in_a_container_calls_its_callers_tool() {
    let env = format!("env = {{ SECRET = '{SECRET}' }}");
    let Some(dir) = config("", &env) else { return };
    let mut daemon = daemon(&dir);
    let events = ask(&daemon);
    assert_eq!(said(&events).trim(), "HELLO in /workspace on lo", "{events:?}");
    let listed = daemon.run(&["session", "list", "--json"]).json();
    let session = &listed["sessions"][0];
    assert_eq!((session["confined"].as_bool(), &session["notice"]), (Some(true), &Value::Null));
    let workspace = std::path::Path::new(session["workspace_path"].as_str().unwrap());
    assert!(workspace.join("made").exists(), "{session}");
    let log = daemon.log();
    assert!(log.len() > 1000 && !log.contains(SECRET), "its environment is in the log");
    daemon.signal(Signal::TERM);
    daemon.ended();
    assert_eq!(containers(&daemon), Vec::<String>::new());
}

/// REQ: "Model access without the key in the box", in a container: its own loopback leads to the
/// model proxy of its session.
#[test]
fn an_agent_in_a_container_asks_its_model() {
    let (url, asked) = provider();
    let keys = tempfile::tempdir().unwrap();
    let key = file(keys.path(), "model.key", format!("{KEY}\n").as_bytes());
    std::fs::set_permissions(&key, PermissionsExt::from_mode(0o600)).unwrap();
    let more = format!(
        "[providers.mine]\nurl = '{url}'\nkey_file = '{}'\nheader = 'x-api-key'\n",
        key.display()
    );
    let of_agent =
        format!("provider = 'mine'\nenv = {{ BASE = '{{model}}', SECRET = '{SECRET}' }}");
    let Some(dir) = config(&more, &of_agent) else { return };
    let daemon = daemon(&dir);
    let events = ask(&daemon);
    assert_eq!(said(&events).trim(), "HELLO in /workspace on lo the answer is 42", "{events:?}");
    let heads = asked.lock().unwrap().join("\n").to_lowercase();
    assert!(heads.contains(&format!("x-api-key: {KEY}")) && !heads.contains(SECRET), "{heads}");
}

/// Rule: after `kill -9` of the daemon, its restart removes the containers of agents.
#[test]
fn a_container_does_not_survive_a_killed_daemon_beyond_its_restart() {
    let Some(dir) = config("", "") else { return };
    let mut first = daemon(&dir);
    let home = first.home().to_owned();
    // Its tool never answers.
    let arguments = ["session", "start", "hello", "--tool", "shout=sleep 1000", "--json"];
    let mut client = first.client(&arguments);
    let mut client = client.env("PATH", "/usr/bin:/bin").stdout(Stdio::null()).spawn().unwrap();
    let is_running = || (!containers(&first).is_empty()).then_some(());
    wait_for("the container to be there", is_running);
    first.signal(Signal::KILL);
    first.ended();
    assert!(!containers(&first).is_empty());
    let mut second = serve(&home);
    second.arg("--config").arg(dir.path().join("config.toml"));
    let mut second = second.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the container to be gone", || containers(&first).is_empty().then_some(()));
    for process in [&mut client, &mut second] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
}

/// Rule: the doctor lists each layer of containers, with a fix for a missing one.
#[test]
fn the_doctor_looks_at_the_engine_and_its_image() {
    let Some(socket) = engine::socket() else { return };
    let home = tempfile::tempdir().unwrap();
    let doctor = |image: &str, socket: &str| {
        let mut command = ringback(home.path());
        command.env("RINGBACK_HTTP__LISTEN", "127.0.0.1:0");
        command.env("RINGBACK_HOOT__LISTEN", "tcp://127.0.0.1:0");
        command.env("RINGBACK_HOOT__IOPUB", "tcp://127.0.0.1:0");
        command.env("RINGBACK_SANDBOX__BACKEND", "docker").env("DOCKER_HOST", socket);
        Run::of(command.env("RINGBACK_SANDBOX__IMAGE", image).arg("doctor"))
    };
    let good = doctor(engine::IMAGE, &format!("unix://{socket}")).done();
    for layer in ["a container engine", "an image for containers", "namespaces"] {
        assert!(good.stdout.contains(&format!("ok   sandbox, {layer}: ")), "{good:?}");
    }
    let absent = doctor("ringback-absent", &format!("unix://{socket}"));
    assert!(absent.stdout.contains("BAD  sandbox, an image for containers: "), "{absent:?}");
    let gone = doctor(engine::IMAGE, "unix:///nowhere/docker.sock");
    assert!(gone.stdout.contains("BAD  sandbox, a container engine: "), "{gone:?}");
    let elsewhere = doctor(engine::IMAGE, "tcp://192.0.2.1:2375");
    assert!(elsewhere.stdout.contains("sandbox.docker"), "{elsewhere:?}");
    for bad in [absent, gone, elsewhere] {
        assert_eq!(bad.code, 1, "{bad:?}");
    }
}
