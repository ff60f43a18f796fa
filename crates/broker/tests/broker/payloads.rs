//! What the events of a session show of the arguments and results of its calls, and what is kept.

use std::path::Path;

use ringback_agents::Permissions;
use ringback_broker::{AgentCommand, AgentProtocol, Config, Credential};
use ringback_proto::any::{Any, Format};
use ringback_proto::principal::Level;
use ringback_proto::raw::Raw;
use ringback_proto::request::{
    CallerTool, SessionContext, SessionEventInfo, SessionEventsRequest, SessionMessageRequest,
};
use ringback_proto::secret::Secret;
use ringback_testkit::shell_agent;

use crate::acp::is_question;
use crate::common::{World, start_with};
use crate::sessions::{end, is_idle, project, refused, say, to_project, token, until};

const TOKEN: &str = "oub_0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Calls a tool with what a careless agent shows: a token, written in two ways, a key, a password,
/// and far too much.
fn careless(config: &mut Config) {
    let escaped = TOKEN.replace('b', "\\u0062");
    let agent = format!(
        r#"long=$(head -c 20000 /dev/zero | tr '\0' x)
while read -r line; do
  cat <<'END'
{{"type":"tool_call","id":"1","tool":"mcp__me_login","arguments":{{ "user": "lovelace", "password": "hunter2", "note": "use {TOKEN}", "also": "{escaped}" }}}}
{{"type":"tool_result","id":"1","tool":"mcp__me_login","is_error":false,"result":{{"content":[{{"type":"text","text":"{TOKEN} sk-model-key-1"}}]}}}}
END
  printf '{{"type":"tool_call","id":"2","tool":"write","arguments":{{"text":"é%s"}}}}\n' "$long"
  echo '{{"type":"done"}}'
done"#
    );
    config.sessions.agents.insert("careless".to_owned(), shell_agent(&agent));
    config.sessions.agent_default = "careless".to_owned();
}

fn login() -> SessionContext {
    let schema = r#"{"type":"object","properties":{"user":{"type":"string"},
        "password":{"type":"string","format":"password"}}}"#;
    let schema = Any { format: Format::Json, bytes: schema.into() };
    let tool = CallerTool {
        name: "login".to_owned(),
        description: None,
        input_schema: Some(Raw(schema)),
        timeout_ms: None,
        allowed: false,
    };
    SessionContext {
        caller_id: Some("me".to_owned()),
        caller_tools: Some(vec![tool]),
        caller_server: None,
    }
}

async fn called(fixture: &World, who: &Credential) -> Vec<SessionEventInfo> {
    let project = project(fixture, who).await;
    let message = SessionMessageRequest { context: Some(login()), ..to_project(project, "go") };
    let session = say(fixture, who, message).await.session_id;
    until(fixture, who, session, -1, is_idle).await
}

fn of<'a>(events: &'a [SessionEventInfo], kind: &str, id: &str) -> &'a SessionEventInfo {
    let is_it =
        |event: &&SessionEventInfo| event.kind == kind && event.request_id.as_deref() == Some(id);
    events.iter().find(is_it).unwrap()
}

/// Rule: the events of a call show its arguments and its result, without secrets and cut, to those
/// who may read the session and to nobody else.
#[tokio::test]
async fn an_event_shows_a_call_without_its_secrets() {
    let fixture = start_with(careless).await;
    let (who, other) = (token(&fixture, Level::Write).await, token(&fixture, Level::Write).await);
    let events = called(&fixture, &who).await;
    let call = of(&events, "tool_call", "1").arguments.as_deref().unwrap();
    assert_eq!(
        call,
        r#"{"user":"lovelace","password":"[redacted]","note":"use oub_[redacted]","also":"oub_[redacted]"}"#
    );
    let result = of(&events, "tool_result", "1").result.as_deref().unwrap();
    assert!(result.contains("oub_[redacted]") && !result.contains("0123456789"), "{result}");
    let long = of(&events, "tool_call", "2").arguments.as_deref().unwrap();
    assert!(long.starts_with("{\"text\":\"éxxx") && long.ends_with("x [cut]"), "{long}");
    assert!(long.len() <= 4096 + " [cut]".len(), "{}", long.len());
    let read = SessionEventsRequest {
        session_id: events[0].session_id,
        since_index: None,
        max_events: None,
        wait_ms: None,
        include_children: false,
        follow: false,
    };
    assert_eq!(refused(&fixture, &other, read).await.0, "not_found");
}

/// Rule: a key that the session's model proxy used is hidden as well.
#[tokio::test]
async fn an_event_does_not_show_a_key_that_the_session_uses() {
    let fixture = start_with(careless).await;
    let who = Credential::local();
    let events = called(&fixture, &who).await;
    let session = events[0].session_id;
    assert!(of(&events, "tool_result", "1").result.as_deref().unwrap().contains("sk-model-key-1"));
    fixture.broker.conceal(session, &Secret::new("sk-model-key-1".to_owned()));
    let again = SessionMessageRequest {
        session_id: Some(session),
        message: "again".to_owned(),
        ..Default::default()
    };
    let said = say(&fixture, &who, again).await;
    let events = until(&fixture, &who, session, said.last_event_index, is_idle).await;
    let result = of(&events, "tool_result", "1").result.as_deref().unwrap();
    assert!(result.contains("[redacted]") && !result.contains("sk-model"), "{result}");
}

/// Rule: arguments and results are live only: neither a journal nor the audit nor any other file of
/// the daemon has them, and an ended session shows its calls without them.
#[tokio::test]
async fn arguments_and_results_are_not_kept() {
    let fixture = start_with(careless).await;
    let who = Credential::local();
    let events = called(&fixture, &who).await;
    let session = events[0].session_id;
    assert!(of(&events, "tool_call", "1").arguments.is_some());
    end(&fixture, &who, session).await;
    let is_last = |event: &SessionEventInfo| event.status.is_some_and(|state| !state.is_live());
    let kept = until(&fixture, &who, session, -1, is_last).await;
    let (call, result) = (of(&kept, "tool_call", "1"), of(&kept, "tool_result", "1"));
    assert_eq!((&call.arguments, &result.result), (&None, &None));
    assert_eq!(call.tool_name.as_deref(), Some("mcp__me_login"));
    let kept = bytes_in(fixture.dir());
    for word in ["lovelace", "use oub_", "xxxxxxxx", "sk-model-key-1"] {
        let is_here = kept.windows(word.len()).any(|window| window == word.as_bytes());
        assert!(!is_here, "{word} is in a file");
    }
}

fn bytes_in(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            bytes.extend(bytes_in(&entry.path()));
        } else if kind.is_file() {
            bytes.extend(std::fs::read(entry.path()).unwrap());
        }
    }
    bytes
}

/// Asks with its arguments, or refers to a call that it announced before.
const ASKS: &str = r#"
ask() { echo '{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"one","toolCall":'"$1"',"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"}]}}'; }
while read -r line; do
  id=${line#*\"id\":}; id=${id%%,*}
  case "$line" in
    *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1}}';;
    *'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"one"}}';;
    *'"text":"own"'*) turn=$id; ask '{"toolCallId":"c","title":"sed","rawInput":{"command":"sed -i s/a/b/ oub_0123456789abcdef0123"}}';;
    *'"text":"known"'*) turn=$id; echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"one","update":{"sessionUpdate":"tool_call","toolCallId":"k","title":"rm","rawInput":{"path":"x"}}}}'; ask '{"toolCallId":"k","title":"rm"}';;
    *'"text":"shown"'*) turn=$id; ask '{"toolCallId":"s","title":"edit","content":[{"type":"diff","path":"a","newText":"b"}]}';;
    *'"outcome"'*) echo '{"jsonrpc":"2.0","id":'$turn',"result":{"stopReason":"end_turn"}}';;
  esac
done"#;

/// Rule: a question shows what it is about: its own arguments, those of the call, or the change.
#[tokio::test]
async fn a_question_shows_what_it_is_about() {
    let with = |config: &mut Config| {
        let permissions = Some(Permissions::Allow);
        let agent = AgentCommand { protocol: AgentProtocol::Acp, permissions, ..shell_agent(ASKS) };
        config.sessions.agents.insert("asks".to_owned(), agent);
        config.sessions.agent_default = "asks".to_owned();
    };
    let fixture = start_with(with).await;
    let who = Credential::local();
    for (message, arguments) in [
        ("own", r#"{"command":"sed -i s/a/b/ oub_[redacted]"}"#),
        ("known", r#"{"path":"x"}"#),
        ("shown", r#"[{"type":"diff","path":"a","newText":"b"}]"#),
    ] {
        let project = project(&fixture, &who).await;
        let session = say(&fixture, &who, to_project(project, message)).await.session_id;
        let events = until(&fixture, &who, session, -1, is_question).await;
        assert_eq!(events.last().unwrap().arguments.as_deref(), Some(arguments));
    }
}

/// Rule: a caller that is back offers its tools without a message; only the owner may, and only
/// to a live session.
#[tokio::test]
async fn tools_are_offered_again_without_a_message() {
    let fixture = start_with(careless).await;
    let (who, other) = (token(&fixture, Level::Write).await, token(&fixture, Level::Write).await);
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, to_project(project, "go")).await.session_id;
    until(&fixture, &who, session, -1, is_idle).await;
    let offer = || SessionMessageRequest {
        session_id: Some(session),
        context: Some(login()),
        ..Default::default()
    };
    assert_eq!(refused(&fixture, &other, offer()).await.0, "not_found");
    let empty = SessionMessageRequest { session_id: Some(session), ..Default::default() };
    assert_eq!(refused(&fixture, &who, empty).await.0, "invalid_params");
    let answer = say(&fixture, &who, offer()).await;
    assert_eq!(answer.session_id, session);
    assert_eq!(fixture.broker.session_caller_tools(session).len(), 1);
    end(&fixture, &who, session).await;
    assert_eq!(refused(&fixture, &who, offer()).await.0, "conflict");
}
