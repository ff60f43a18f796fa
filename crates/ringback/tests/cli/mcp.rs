//! Agents: configured by the command line, served on standard input and output.

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Daemon, Run, ringback};

/// A free port for every listener.
const FREE_PORTS: [(&str, &str); 3] = [
    ("RINGBACK_HTTP__LISTEN", "127.0.0.1:0"),
    ("RINGBACK_HOOT__LISTEN", "tcp://127.0.0.1:0"),
    ("RINGBACK_HOOT__IOPUB", "tcp://127.0.0.1:0"),
];

/// Sends messages, one per line, and returns the answers until the end.
fn talk(command: &mut Command, messages: &[Value]) -> Vec<Value> {
    let mut child =
        command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for message in messages {
        writeln!(stdin, "{message}").unwrap();
    }
    drop(stdin);
    let run = Run::from(child.wait_with_output().unwrap()).done();
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn conversation() -> [Value; 4] {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "ping", "arguments": {}}}),
        json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "job_sleep", "arguments": {"milliseconds": 1}, "_meta": meta}}),
    ]
}

fn check_answers(answers: &[Value]) {
    let by_id = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
    assert_eq!(by_id(1)["result"]["protocolVersion"], "2025-06-18", "{answers:?}");
    assert_eq!(by_id(2)["result"]["structuredContent"]["type"], "pong", "{answers:?}");
    assert_eq!(by_id(3)["result"]["structuredContent"]["milliseconds"], 1, "{answers:?}");
    assert_eq!(by_id(3)["result"]["resultType"], "complete", "{answers:?}");
}

/// REQ: issue "stdio: connects to a running daemon or starts an embedded one".
#[test]
fn lines_are_served_with_and_without_a_daemon() {
    let daemon = Daemon::start();
    let address = daemon.told("http").trim_start_matches("http://").to_owned();
    let token = std::fs::read_to_string(daemon.told("token_file")).unwrap();
    let mut command = ringback(daemon.home());
    command.env("RINGBACK_HTTP__LISTEN", &address).env("RINGBACK_API_KEY", token.trim());
    check_answers(&talk(&mut command, &conversation()));

    let home = tempfile::tempdir().unwrap();
    let mut command = ringback(home.path());
    check_answers(&talk(command.envs(FREE_PORTS), &conversation()));

    let mut stranger = ringback(daemon.home());
    stranger.env("RINGBACK_HTTP__LISTEN", &address);
    stranger.env("RINGBACK_API_KEY", format!("oub_{}", "0".repeat(64)));
    let answers = talk(&mut stranger, &conversation()[..1]);
    let said = answers[0]["error"]["message"].as_str().unwrap();
    assert!(said.contains("RINGBACK_API_KEY"), "{said}");
}

#[test]
fn an_agent_is_set_up_only_when_told_yes() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join(".cursor/mcp.json");
    let run = |arguments: &[&str]| Run::of(ringback(home.path()).args(arguments)).done();
    let shown = run(&["mcp", "install", "cursor"]);
    assert!(shown.stdout.contains("+ ") && shown.stdout.contains("\"ringback\""), "{shown:?}");
    assert!(shown.stderr.contains("--yes") && !path.exists());
    run(&["mcp", "install", "cursor", "--yes"]);
    let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(written["mcpServers"]["ringback"]["args"], json!(["mcp"]));
    let program = written["mcpServers"]["ringback"]["command"].as_str().unwrap();
    assert!(Path::new(program).is_absolute(), "{program}");
    let again = run(&["mcp", "install", "cursor", "--yes"]);
    assert!(again.stderr.contains("already"), "{again:?}");
    run(&["mcp", "uninstall", "cursor", "--yes"]);
    let written: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert_eq!(written, json!({"mcpServers": {}}));
}

#[test]
fn the_doctor_says_what_is_wrong() {
    let home = tempfile::tempdir().unwrap();
    let doctor = || {
        let mut command = ringback(home.path());
        Run::of(command.envs(FREE_PORTS).args(["doctor", "--json"]))
    };
    let findings = doctor().json();
    let found = |findings: &Value, what: &str| {
        let all = findings.as_array().unwrap().clone();
        all.into_iter().find(|finding| finding["what"] == what).unwrap()["health"].clone()
    };
    assert_eq!(found(&findings, "configuration"), "good");
    assert_eq!(found(&findings, "daemon"), "note");
    assert_eq!(found(&findings, "http port"), "good");
    let data = home.path().join(".local/share/ringback");
    std::fs::create_dir_all(&data).unwrap();
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).unwrap();
    let run = doctor();
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("chmod 700"), "{run:?}");

    let daemon = Daemon::start();
    let address = daemon.told("http").trim_start_matches("http://");
    let mut command = ringback(daemon.home());
    command.env("RINGBACK_HTTP__LISTEN", address).args(["doctor", "--json"]);
    command.env("RINGBACK_TOKEN", std::fs::read_to_string(daemon.told("token_file")).unwrap());
    let findings = Run::of(&mut command).json();
    assert_eq!(found(&findings, "daemon"), "good", "{findings}");
}

/// REQ: `doctor` shows the health of music services: which are reachable, which are not, and what
/// to do.
#[test]
fn the_doctor_tries_every_model_service() {
    let home = tempfile::tempdir().unwrap();
    let here = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let [up, down] = [&here, &gone].map(|it| format!("http://{}", it.local_addr().unwrap()));
    drop(gone);
    let mut command = ringback(home.path());
    command.envs(FREE_PORTS).env("RINGBACK_STUDIO__SERVICES__ORPHEUS", &up);
    let findings = Run::of(command.args(["doctor", "--json"])).json();
    assert_eq!(model(&findings, "orpheus")["health"], "good", "{findings}");
    assert!(model(&findings, "yue").is_null(), "it is not configured: {findings}");
    let run = Run::of(command.env("RINGBACK_STUDIO__SERVICES__YUE", &down));
    assert_eq!(run.code, 1, "{run:?}");
    let findings: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(model(&findings, "orpheus")["health"], "good", "{findings}");
    let yue = model(&findings, "yue");
    assert_eq!(yue["health"], "bad", "{findings}");
    let text = yue["text"].as_str().unwrap();
    assert!(text.contains(&down) && text.contains("`studio.services.yue`"), "{text}");
}

/// Returns the finding about a music service.
fn model(findings: &Value, service: &str) -> Value {
    let what = format!("music service {service}");
    let all = findings.as_array().unwrap();
    all.iter().find(|finding| finding["what"] == what.as_str()).cloned().unwrap_or_default()
}
