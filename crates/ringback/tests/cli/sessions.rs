//! Agents started from a terminal, with local commands as their tools: the real daemon, the real
//! program inside, the scripted agent.

use serde_json::Value;

use crate::support::{Daemon, Run};

const SCRIPT: &str = r#"{"call":{"tool":"here_shout","arguments":{"text":"hello","n":9007199254740993}}}
{"expect":{"is_error":false}}
{"print":{}}
{"call":{"tool":"here_fail"}}
{"expect":{"is_error":true,"contains":"no paper"}}
{"call":{"tool":"here_nothing"}}"#;

fn events(run: &Run) -> Vec<Value> {
    run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Runs a client command with `sh` and the usual programs in its `PATH`.
fn run(daemon: &Daemon, arguments: &[&str]) -> Run {
    Run::of(daemon.client(arguments).env("PATH", "/usr/bin:/bin"))
}

/// REQ-CTR-001 "Agent calls caller tool successfully", end to end: agent, program inside, socket,
/// daemon, and a terminal as the caller.
#[test]
fn an_agent_calls_commands_of_the_terminal_that_started_it() {
    let daemon = Daemon::start();
    let fail = crate::support::file(daemon.home(), "fail.sh", b"echo no paper >&2; exit 3");
    let fail = format!("fail=sh {}", fail.display());
    let start =
        ["session", "start", SCRIPT, "--tool", "shout=tr a-z A-Z", "--tool", &fail, "--json"];
    let shown = run(&daemon, &start).done();
    let events = events(&shown);
    let said: Vec<_> = events
        .iter()
        .filter(|event| event["role"] == "assistant")
        .filter_map(|event| event["text"].as_str())
        .collect();
    assert_eq!(said, [r#"{"TEXT":"HELLO","N":9007199254740993}"#], "{shown:?}");
    let answered: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "tool_answered")
        .map(|event| (event["tool"].as_str().unwrap(), event["succeeded"].as_bool().unwrap()))
        .collect();
    assert_eq!(answered, [("shout", true), ("fail", false)], "{shown:?}");
    let listed = run(&daemon, &["session", "list", "--json"]).json();
    assert_eq!(listed["sessions"][0]["status"], "ended", "a terminal's session ends with it");
}

/// Rule: a project's agents get a key with its scope; it can read but not write, and appears in no
/// listing.
#[test]
fn an_agent_with_a_read_key_reads_and_does_not_write() {
    let daemon = Daemon::start();
    let project = run(&daemon, &["project", "create", "robots", "--key", "read"]).line();
    let script = r#"{"call":{"tool":"oubliette_project_list"}}
{"expect":{"is_error":false,"contains":"robots"}}
{"call":{"tool":"oubliette_project_create","arguments":{"name":"mine"}}}
{"expect":{"is_error":true}}
{"say":"as it should be"}"#;
    let start = ["session", "start", script, "--project", &project, "--json"];
    let shown = run(&daemon, &start).done();
    let events = events(&shown);
    assert!(events.iter().any(|event| event["text"] == "as it should be"), "{shown:?}");
    assert!(!events.iter().any(|event| event["type"] == "error"), "{shown:?}");
    let projects = run(&daemon, &["project", "list", "--json"]).json();
    assert_eq!(projects["projects"].as_array().unwrap().len(), 1);
    assert!(!projects.to_string().contains("oub_") && !shown.stdout.contains("oub_"));
}

/// REQ: seed 004 "Client tools in agent sessions", with a real remote agent: it reaches its session
/// by the URL, and calls a tool of an HTTP client with its own key.
#[test]
fn an_agent_elsewhere_calls_a_tool_of_an_http_client() {
    let daemon = Daemon::start();
    let shout = "tr a-z A-Z";
    let _offer = crate::offer::offer(&daemon, "shout", &[], shout);
    let opened = run(&daemon, &["call", "session_open", "--output", "json"]).done();
    let opened: Value = serde_json::from_str(&opened.stdout).unwrap();
    let text = |name: &str| opened[name].as_str().unwrap_or_else(|| panic!("{opened}"));
    let program = env!("CARGO_BIN_EXE_ringback");
    let server = ["scripted-agent", "--", program, "inside", "--url", text("url")];
    let mut agent = daemon.client(&server);
    agent.env("OUBLIETTE_SESSION_TOKEN", text("token"));
    agent.env("OUBLIETTE_API_KEY", daemon.token());
    let script = r#"{"call":{"tool":"oubliette_client_shout_shout","arguments":{"text":"hello"}}}
{"expect":{"is_error":false,"contains":"HELLO"}}
{"say":"as it should be"}"#;
    let message = serde_json::json!({ "type": "message", "text": script });
    let said = crate::support::run_with(&mut agent, format!("{message}\n").as_bytes()).done();
    assert!(said.stdout.contains("as it should be"), "{said:?}");
    assert!(!daemon.log().contains(text("token")), "a token is never logged");
}

/// Rule: the audit shows who called what, by the token's public id, and never a secret.
#[test]
fn the_audit_shows_whose_calls_there_were() {
    let daemon = Daemon::start();
    let made = run(&daemon, &["token", "create", "ci", "--scope", "read", "--json"]).json();
    let (id, secret) = (made["token_id"].as_str().unwrap(), made["token"].as_str().unwrap());
    daemon.run_as(secret, &["project", "list"]).done();
    let denied = daemon.run_as(secret, &["project", "create", "mine"]);
    assert_ne!(denied.code, 0, "{denied:?}");
    let http = daemon.told("http").to_owned();
    let audit = |filters: &[&str]| {
        let words = [&["audit", "--json", "--http", &http], filters].concat();
        run(&daemon, &words).json()["entries"].as_array().unwrap().clone()
    };
    let own = audit(&["--by", id, "--since", "1h"]);
    let outcome = |tool: &str| {
        let call = own.iter().find(|call| call["tool"] == tool);
        call.unwrap_or_else(|| panic!("{tool} in {own:?}"))["outcome"].clone()
    };
    assert_eq!(outcome("project_list"), "success");
    assert_eq!(outcome("project_create"), "permission_denied");
    assert!(own.iter().all(|call| call["principal"] == id), "{own:?}");
    assert_eq!(audit(&["--tool", "project_create", "--limit", "1"]).len(), 1);
    let nobody = format!("gogol_{}", "0".repeat(32));
    assert!(audit(&["--session", &nobody]).is_empty());
    let shown = run(&daemon, &["audit", "--http", &http]).done();
    assert!(shown.stdout.contains("project_create") && !shown.stdout.contains("oub_"), "{shown:?}");
    let refused = daemon.client(&["audit", "--http", &http]).env("RINGBACK_TOKEN", secret).output();
    assert!(!refused.unwrap().status.success(), "only an admin token can read it");
}

#[test]
fn what_cannot_be_started_says_what_to_do() {
    let daemon = Daemon::start();
    let unknown = run(&daemon, &["session", "start", "hello", "--project", "nowhere"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");
    assert!(unknown.stderr.contains("ringback project create nowhere"), "{unknown:?}");
    let agent = run(&daemon, &["session", "start", "hello", "--agent", "gandalf"]);
    assert_eq!(agent.code, 1, "{agent:?}");
    assert!(agent.stderr.contains("gandalf") && agent.stderr.contains("scripted"), "{agent:?}");
    let tool = run(&daemon, &["session", "start", "hello", "--tool", "nonsense"]);
    assert_eq!(tool.code, 2, "{tool:?}");
}

/// REQ: "drive an agent by ACP (`mcpServers` of `session/new` carries `inside`)": the agent finds
/// its caller's tools through the MCP server that the protocol names.
#[test]
fn an_agent_of_the_agent_client_protocol_calls_commands_of_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_ringback");
    let config = format!(
        "[sessions]\nagent = \"talks\"\n[sessions.agents.talks]\nprotocol = \"acp\"\n\
         command = [\"{program}\", \"scripted-agent\", \"--acp\"]\n"
    );
    let path = crate::support::file(dir.path(), "config.toml", config.as_bytes());
    let daemon = Daemon::start_with(&["--config", path.to_str().unwrap()]);
    let script = r#"{"think":"hm"}
{"call":{"tool":"here_shout","arguments":{"text":"hello","n":9007199254740993}}}
{"expect":{"is_error":false}}
{"print":{}}"#;
    let start = ["session", "start", script, "--tool", "shout=tr a-z A-Z", "--json"];
    let shown = run(&daemon, &start).done();
    let events = events(&shown);
    let texts = |kind: &str| -> Vec<_> {
        events.iter().filter(|event| event["type"] == kind).map(|event| &event["text"]).collect()
    };
    assert_eq!(texts("thought"), ["hm"], "{shown:?}");
    assert!(
        texts("message").iter().any(|text| *text == r#"{"TEXT":"HELLO","N":9007199254740993}"#)
    );
    let end = events.iter().find(|event| event["type"] == "completion").unwrap();
    assert_eq!(end["usage"]["total_tokens"], 7, "{shown:?}");
}

/// REQ: "a per-project policy": set when a project is created, shown, and changed.
#[test]
fn a_project_says_what_its_agents_are_answered() {
    let daemon = Daemon::start();
    let words = ["project", "create", "careful", "--permissions", "ask"];
    let rules = ["--permission", "bash: ls*=allow", "--permission", "bash*=deny"];
    let made = run(&daemon, &[&words[..], &rules[..]].concat()).done();
    let id = made.stdout.trim();
    let shown = run(&daemon, &["project", "show", id]).done();
    assert!(shown.stdout.contains("bash: ls*=allow, bash*=deny, ask"), "{shown:?}");
    let changed =
        run(&daemon, &["project", "update", id, "--permissions", "deny", "--json"]).done();
    assert!(changed.stdout.contains(r#""permissions":{"otherwise":"deny"}"#), "{changed:?}");
    let cleared = run(&daemon, &["project", "update", id]).done();
    assert!(!cleared.stdout.contains("permissions"), "{cleared:?}");
    let wrong = run(&daemon, &["project", "update", id, "--permission", "bash"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("`bash=deny`"), "{wrong:?}");
}
