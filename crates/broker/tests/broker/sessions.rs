//! Sessions through the broker's entry point, with small shell scripts as agents.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use camino::Utf8PathBuf;
use ringback_broker::{AgentCommand, Answer, Config, Credential, InsideProgram};
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::principal::{KeyLevel, Level};
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    Attachment, CallerTool, CallerToolRequestsRequest, CallerToolRequestsResponse,
    CallerToolResponseRequest, ProjectCreateRequest, ProjectDeleteRequest, ProjectLimits,
    ProjectListRequest, SessionCleanupRequest, SessionEndRequest, SessionEventInfo,
    SessionEventsRequest, SessionGetRequest, SessionListRequest, SessionMessageRequest,
    SessionSpawnRequest, TokenCreateRequest, WorkspaceDeleteRequest, WorkspaceListRequest,
};
use ringback_proto::{Certainty, ResponseEnvelope, ToolRequest, ToolResponse};
use ringback_testkit::{GRACE, pass, shell_agent};

use crate::common::{World, result, start_with};

/// Repeats each message; `die` makes it fail, `env` shows its environment, `wait` keeps it busy.
const ECHO: &str = r#"while read -r line; do
  text=$(printf '%s' "$line" | sed 's/.*"text":"\(.*\)"}/\1/')
  case "$text" in
    die) echo oh no >&2; exit 3;;
    env) printf '{"type":"message","text":"%s"}\n' "$(env | sort | tr '\n' ' ')";;
    wait) printf '{"type":"message","text":"%s"}\n' $$; sleep 1000;;
    *) printf '{"type":"message","text":"heard %s"}\n' "$text";;
  esac
  echo '{"type":"done"}'
done"#;

pub(crate) fn with_echo(config: &mut Config) {
    config.sessions.agents.insert("echo".to_owned(), shell_agent(ECHO));
    config.sessions.agent_default = "echo".to_owned();
}

pub(crate) async fn call<T: TryFrom<ToolResponse, Error = ToolResponse>>(
    fixture: &World,
    who: &Credential,
    request: impl Into<ToolRequest>,
) -> T {
    let response = result(&fixture.broker, who, request).await.expect("a result");
    T::try_from(response).unwrap_or_else(|other| panic!("another answer: {other:?}"))
}

pub(crate) async fn refused(
    fixture: &World,
    who: &Credential,
    request: impl Into<ToolRequest>,
) -> (String, String) {
    let error = result(&fixture.broker, who, request).await.expect_err("a refusal");
    (error.code.clone(), error.message.clone())
}

pub(crate) fn named(name: &str) -> ProjectCreateRequest {
    ProjectCreateRequest {
        name: name.to_owned(),
        description: None,
        limits: None,
        agent: None,
        key_level: None,
        network: None,
        image: None,
        permissions: None,
    }
}

pub(crate) async fn project(fixture: &World, who: &Credential) -> ProjectId {
    static N_MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("p{}", N_MADE.fetch_add(1, Ordering::Relaxed));
    let made: ringback_proto::request::ProjectResponse = call(fixture, who, named(&name)).await;
    made.project_id
}

fn message(text: &str) -> SessionMessageRequest {
    SessionMessageRequest { message: text.to_owned(), ..Default::default() }
}

pub(crate) fn to_project(project: ProjectId, text: &str) -> SessionMessageRequest {
    SessionMessageRequest { project_id: Some(project), ..message(text) }
}

pub(crate) fn to_session(session: SessionId, text: &str) -> SessionMessageRequest {
    SessionMessageRequest { session_id: Some(session), ..message(text) }
}

pub(crate) async fn say(
    fixture: &World,
    who: &Credential,
    request: SessionMessageRequest,
) -> ringback_proto::request::SessionMessagedResponse {
    call(fixture, who, request).await
}

pub(crate) async fn end(fixture: &World, who: &Credential, session_id: SessionId) {
    let ended = result(&fixture.broker, who, SessionEndRequest { session_id }).await;
    assert!(matches!(ended, Ok(ToolResponse::Ack(_))), "{ended:?}");
}

fn after(session: SessionId, since: i64) -> SessionEventsRequest {
    SessionEventsRequest {
        session_id: session,
        since_index: Some(since),
        max_events: None,
        wait_ms: Some(20_000),
        include_children: false,
        follow: false,
    }
}

/// Returns the events after an index, up to the first of this kind.
pub(crate) async fn until(
    fixture: &World,
    who: &Credential,
    session: SessionId,
    mut since: i64,
    wanted: impl Fn(&SessionEventInfo) -> bool,
) -> Vec<SessionEventInfo> {
    let mut events = Vec::new();
    loop {
        let page: ringback_proto::request::SessionEventsResponse =
            call(fixture, who, after(session, since)).await;
        assert!(!page.events.is_empty(), "nothing more is said after {events:?}");
        since = page.last_index;
        for event in page.events {
            let found = wanted(&event);
            events.push(event);
            if found {
                return events;
            }
        }
    }
}

pub(crate) fn is_idle(event: &SessionEventInfo) -> bool {
    event.status == Some(SessionState::Idle)
}

pub(crate) fn said(events: &[SessionEventInfo]) -> Vec<&str> {
    let by_agent = |event: &&SessionEventInfo| {
        event.kind == "message" && event.role.as_deref() == Some("assistant")
    };
    events.iter().filter(by_agent).filter_map(|event| event.text.as_deref()).collect()
}

pub(crate) async fn token(fixture: &World, level: Level) -> Credential {
    let request =
        TokenCreateRequest { name: "t".to_owned(), scope: level, projects: None, expires_in: None };
    let made: ringback_proto::request::TokenCreatedResponse =
        call(fixture, &Credential::local(), request).await;
    fixture.broker.authenticate(made.token.expose()).expect("valid")
}

/// REQ: seed 002 "session_message": starts a session, and a second message goes to the same one.
#[tokio::test]
async fn a_message_starts_a_session_and_the_next_one_continues_it() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let first = say(&fixture, &who, to_project(project, "one")).await;
    assert!(first.spawned && first.workspace_created && !first.confined);
    let events = until(&fixture, &who, first.session_id, first.last_event_index, is_idle).await;
    assert_eq!(said(&events), ["heard one"]);
    let indices: Vec<_> = events.iter().map(|event| event.index).collect();
    assert!(indices.windows(2).all(|pair| pair[1] == pair[0] + 1), "{indices:?}");

    let second = say(&fixture, &who, to_project(project, "two")).await;
    assert_eq!(second.session_id, first.session_id);
    assert!(!second.spawned && !second.workspace_created);
    let events = until(&fixture, &who, first.session_id, second.last_event_index, is_idle).await;
    assert_eq!(said(&events), ["heard two"]);

    let listed: ringback_proto::request::SessionListResponse =
        call(&fixture, &who, SessionListRequest::default()).await;
    assert_eq!(listed.sessions.len(), 1);
    assert_eq!(listed.sessions[0].status, SessionState::Idle);
    assert!(listed.sessions[0].notice.as_deref().unwrap().contains("without further confinement"));
}

/// Rule: `session_end` ends the process, and nothing answers for the session any more.
#[tokio::test]
async fn ending_a_session_ends_its_process_and_its_key() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let request = ProjectCreateRequest { key_level: Some(KeyLevel::Write), ..named("p") };
    let made: ringback_proto::request::ProjectResponse = call(&fixture, &who, request).await;
    let started = say(&fixture, &who, to_project(made.project_id, "env")).await;
    let session = started.session_id;
    let events = until(&fixture, &who, session, -1, is_idle).await;
    let env = said(&events)[0].to_owned();
    let key = env.split(' ').find_map(|entry| entry.strip_prefix("OUBLIETTE_API_KEY=")).unwrap();
    assert!(fixture.broker.authenticate_in(session, key).is_ok());
    let project = format!("OUBLIETTE_PROJECT_ID={}", made.project_id);
    assert!(env.split(' ').any(|entry| entry == project), "{env}");
    assert!(fixture.broker.authenticate(key).is_err(), "it works only inside its session");
    let stranger = SessionId::from_random([9; 16]);
    assert!(fixture.broker.authenticate_in(stranger, key).is_err());

    say(&fixture, &who, to_session(session, "wait")).await;
    let heard = |event: &SessionEventInfo| {
        event.text.as_deref().is_some_and(|text| text.parse::<u32>().is_ok())
    };
    let events = until(&fixture, &who, session, -1, heard).await;
    let pid = events.last().unwrap().text.clone().unwrap();
    end(&fixture, &who, session).await;
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists(), "its process is left");
    assert!(fixture.broker.authenticate_in(session, key).is_err(), "its key is dead");
    assert_eq!(fixture.broker.under_way().n_sessions, 0);
    let (code, _) = refused(&fixture, &who, to_session(session, "again")).await;
    assert_eq!(code, "conflict");
    let over: ringback_proto::request::SessionResponse =
        call(&fixture, &who, SessionGetRequest { session_id: session }).await;
    assert_eq!(over.status, SessionState::Ended);
    assert!(over.ended_at.is_some());
}

/// REQ: seed 002 "Sessions": a restart marks running sessions as interrupted and says so; a message
/// continues them.
#[tokio::test]
async fn a_restart_interrupts_a_session_and_a_message_continues_it() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let started = say(&fixture, &who, to_project(project, "one")).await;
    let session = started.session_id;
    let before = until(&fixture, &who, session, -1, is_idle).await;
    let fixture = fixture.restart(GRACE).await;

    let page: ringback_proto::request::SessionEventsResponse =
        call(&fixture, &who, after(session, -1)).await;
    assert_eq!(page.status, SessionState::Interrupted);
    let kept: Vec<_> = page.events.iter().take(before.len()).cloned().collect();
    assert_eq!(kept, before, "what was said is still there");
    assert_eq!(page.events.last().unwrap().status, Some(SessionState::Interrupted));

    let again = say(&fixture, &who, to_session(session, "two")).await;
    assert_eq!((again.session_id, again.spawned), (session, false));
    assert_eq!(again.workspace_id, started.workspace_id);
    assert!(again.last_event_index >= page.last_index, "numbers go on");
    let events = until(&fixture, &who, session, again.last_event_index, is_idle).await;
    assert_eq!(said(&events), ["heard two"]);
}

/// Rule: an agent that fails says why; the session stays, and the next message starts another.
#[tokio::test]
async fn a_failed_agent_is_told_and_started_again() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, to_project(project, "die")).await.session_id;
    let events = until(&fixture, &who, session, -1, is_idle).await;
    let error = events.iter().find(|event| event.kind == "error").unwrap();
    assert!(error.text.as_deref().unwrap().contains("oh no"), "{error:?}");
    let next = say(&fixture, &who, to_session(session, "one")).await;
    let events = until(&fixture, &who, session, next.last_event_index, is_idle).await;
    assert_eq!(said(&events), ["heard one"]);
}

/// REQ: seed 002 "config_limits": live sessions, depth and agents are enforced, not only stored.
#[tokio::test]
async fn limits_hold_also_for_sessions_that_agents_start() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let limits = ProjectLimits { max_depth: Some(1), max_sessions: Some(2), ..Default::default() };
    let request = ProjectCreateRequest { limits: Some(limits), ..named("p") };
    let made: ringback_proto::request::ProjectResponse = call(&fixture, &who, request).await;
    let root = say(&fixture, &who, to_project(made.project_id, "one")).await;
    let child = fixture
        .broker
        .session_message_from(root.session_id, "child".to_owned(), None)
        .await
        .expect("a child");
    assert_eq!((child.root_session_id, child.spawned), (root.session_id, true));
    assert_ne!(child.session_id, root.session_id);
    let deeper = fixture.broker.session_message_from(child.session_id, "x".to_owned(), None).await;
    assert!(deeper.unwrap_err().message().contains("1 deep"));
    let wide = fixture.broker.session_message_from(root.session_id, "x".to_owned(), None).await;
    assert!(wide.unwrap_err().message().contains("2 live sessions"));

    let with_children =
        SessionEventsRequest { include_children: true, ..after(root.session_id, -1) };
    let heard = fixture.broker.session_events_from(root.session_id, with_children).await.unwrap();
    assert!(heard.events.iter().any(|event| event.session_id == child.session_id));
    let foreign =
        fixture.broker.session_events_from(child.session_id, after(root.session_id, -1)).await;
    assert!(foreign.is_err(), "a child does not read its parent");

    end(&fixture, &who, root.session_id).await;
    assert_eq!(fixture.broker.under_way().n_sessions, 0, "children end with it");
}

/// Rule: another principal's sessions do not exist for this one.
#[tokio::test]
async fn a_stranger_sees_and_reaches_nothing() {
    let fixture = start_with(with_echo).await;
    let (own, other) = (token(&fixture, Level::Write).await, token(&fixture, Level::Write).await);
    let project = project(&fixture, &own).await;
    let session = say(&fixture, &own, to_project(project, "one")).await.session_id;
    for code in [
        refused(&fixture, &other, to_session(session, "x")).await.0,
        refused(&fixture, &other, to_project(project, "x")).await.0,
        refused(&fixture, &other, after(session, -1)).await.0,
        refused(&fixture, &other, SessionEndRequest { session_id: session }).await.0,
        refused(&fixture, &other, ProjectDeleteRequest { project_id: project }).await.0,
    ] {
        assert_eq!(code, "not_found");
    }
    let seen: ringback_proto::request::ProjectListResponse =
        call(&fixture, &other, ProjectListRequest::default()).await;
    assert!(seen.projects.is_empty());
    let loose = ProjectCreateRequest { key_level: Some(KeyLevel::Read), ..named("p") };
    assert_eq!(refused(&fixture, &own, loose).await.0, "permission_denied");
    let raised = ProjectLimits { max_depth: Some(99), ..Default::default() };
    let raised = ProjectCreateRequest { limits: Some(raised), ..named("p") };
    assert_eq!(refused(&fixture, &own, raised).await.0, "permission_denied");
}

/// Rule: attachments are stored in the workspace under plain names, and never replace another file.
#[tokio::test]
async fn attachments_are_new_files_in_the_workspace() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let file = |name: &str| Attachment {
        filename: name.to_owned(),
        mime_type: None,
        data: b"content".to_vec().into(),
    };
    let with = |name: &str| SessionMessageRequest {
        attachments: vec![file(name)],
        ..to_project(project, "look")
    };
    let sent = say(&fixture, &who, with("notes.txt")).await;
    let shown: ringback_proto::request::SessionResponse =
        call(&fixture, &who, SessionGetRequest { session_id: sent.session_id }).await;
    let path = std::path::Path::new(&shown.workspace_path).join("notes.txt");
    assert_eq!(std::fs::read(path).unwrap(), b"content");
    for bad in ["../x", "a/b", ".bashrc", "", "/etc/x"] {
        assert_eq!(refused(&fixture, &who, with(bad)).await.0, "invalid_params", "{bad:?}");
    }
    assert_eq!(refused(&fixture, &who, with("notes.txt")).await.0, "conflict");
    // Nor through a link, nor over one.
    let workspace = std::path::Path::new(&shown.workspace_path);
    std::os::unix::fs::symlink(fixture.dir().join("outside"), workspace.join("link")).unwrap();
    assert_eq!(refused(&fixture, &who, with("link")).await.0, "conflict");
    assert!(!fixture.dir().join("outside").exists());
}

/// Rule: what is in use cannot be deleted; what has ended can be.
#[tokio::test]
async fn a_project_is_deleted_with_its_workspaces_once_nothing_runs() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let spawn = SessionSpawnRequest {
        project_id: project,
        workspace_id: None,
        create_workspace: true,
        agent: None,
        context: None,
        caller_id: None,
        caller_tools: None,
        network: None,
        limits: None,
        toolchains: None,
        model: None,
        permissions: None,
    };
    let session: ringback_proto::request::SessionResponse = call(&fixture, &who, spawn).await;
    let path = session.workspace_path.clone();
    assert!(std::path::Path::new(&path).is_dir());
    let delete = || ProjectDeleteRequest { project_id: project };
    assert_eq!(refused(&fixture, &who, delete()).await.0, "conflict");
    let workspace =
        WorkspaceDeleteRequest { project_id: project, workspace_id: session.workspace_id };
    assert_eq!(refused(&fixture, &who, workspace).await.0, "conflict");
    end(&fixture, &who, session.session_id).await;
    let cleaned: ringback_proto::request::CleanedResponse =
        call(&fixture, &who, SessionCleanupRequest::default()).await;
    assert_eq!(cleaned.deleted, 1);
    let listed: ringback_proto::request::WorkspaceListResponse =
        call(&fixture, &who, WorkspaceListRequest { project_id: project }).await;
    assert_eq!(listed.workspaces.len(), 1);
    drop(result(&fixture.broker, &who, delete()).await.expect("deleted"));
    assert!(!std::path::Path::new(&path).exists());
}

/// Rule: a session that is idle for too long is ended.
#[tokio::test]
async fn an_idle_session_ends() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let idle = Duration::from_secs(60);
    let idle_ms = u64::try_from(idle.as_millis()).ok();
    let limits = ProjectLimits { idle_ms, ..Default::default() };
    let request = ProjectCreateRequest { limits: Some(limits), ..named("p") };
    let made: ringback_proto::request::ProjectResponse = call(&fixture, &who, request).await;
    let session = say(&fixture, &who, to_project(made.project_id, "one")).await.session_id;
    until(&fixture, &who, session, -1, is_idle).await;
    pass(idle).await;
    let ended = |event: &SessionEventInfo| event.status == Some(SessionState::Ended);
    let events = until(&fixture, &who, session, -1, ended).await;
    assert!(events.last().unwrap().text.as_deref().unwrap().contains("idle for too long"));
}

/// Rule: an agent that is not configured is refused before anything is created.
#[tokio::test]
async fn an_unknown_agent_is_refused_with_those_there_are() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let request =
        SessionMessageRequest { agent: Some("gandalf".to_owned()), ..to_project(project, "x") };
    let (code, text) = refused(&fixture, &who, request).await;
    assert_eq!(code, "invalid_params");
    assert!(text.contains("gandalf") && text.contains("echo"), "{text}");
    assert_eq!(fixture.broker.under_way().n_sessions, 0);
}

/// The program inside, which the second attempt writes.
#[derive(Debug, Default)]
struct Inside {
    n_asked: AtomicU32,
}

impl InsideProgram for Inside {
    fn path(&self) -> io::Result<Utf8PathBuf> {
        match self.n_asked.fetch_add(1, Ordering::Relaxed) {
            0 => Err(io::Error::other("no space left")),
            _ => Ok("/somewhere/inside".into()),
        }
    }
}

/// Rule: the program inside is not requested before an agent needs it; a session whose program
/// cannot be written says so and accepts another message.
#[tokio::test]
async fn the_program_inside_is_written_when_an_agent_needs_it() {
    let inside = Arc::new(Inside::default());
    let fixture = start_with(|config| {
        with_echo(config);
        let says = r#"printf '{"type":"message","text":"%s"}\n{"type":"done"}\n' "$1""#;
        let command = ["/bin/sh", "-c", says, "agent", "{inside}"].map(str::to_owned).to_vec();
        let agent = AgentCommand { command, ..AgentCommand::default() };
        config.sessions.agents.insert("plain".to_owned(), agent);
        config.sessions.inside = Some(Arc::<Inside>::clone(&inside));
    })
    .await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let echo = say(&fixture, &who, to_project(project, "hello")).await.session_id;
    until(&fixture, &who, echo, -1, is_idle).await;
    assert_eq!(inside.n_asked.load(Ordering::Relaxed), 0);

    let request = SessionMessageRequest {
        agent: Some("plain".to_owned()),
        create_workspace: true,
        ..to_project(project, "go")
    };
    let session = say(&fixture, &who, request).await.session_id;
    let failed = until(&fixture, &who, session, -1, |event| event.kind == "error").await;
    let text = failed.last().and_then(|event| event.text.clone()).expect("a reason");
    assert!(text.contains("cannot write the program for `{inside}`: no space left"), "{text}");
    let since = until(&fixture, &who, session, -1, is_idle).await.last().map(|event| event.index);
    say(&fixture, &who, to_session(session, "go")).await;
    let since = i64::try_from(since.expect("an event")).expect("a small index");
    let is_answer = |event: &SessionEventInfo| event.role.as_deref() == Some("assistant");
    let said = until(&fixture, &who, session, since, is_answer).await;
    assert_eq!(said.last().and_then(|event| event.text.as_deref()), Some("/somewhere/inside"));
}

/// Rule: a call that MsgPack cannot represent fails alone, and hides no other from its caller.
#[tokio::test]
async fn a_call_that_cannot_be_said_in_msgpack_fails_alone() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let (name, description) = ("send".to_owned(), None);
    let tool =
        CallerTool { name, description, input_schema: None, timeout_ms: None, allowed: false };
    let request = SessionMessageRequest {
        caller_id: Some("ant".to_owned()),
        caller_tools: Some(vec![tool]),
        ..to_project(project, "one")
    };
    let session_id = say(&fixture, &who, request).await.session_id;
    let ask = |text: &'static str| {
        let arguments = Any { format: Format::Json, bytes: text.as_bytes().into() };
        let options = CallOptions::default();
        let sent = "send".to_owned();
        let edge = ringback_broker::Edge::Relay;
        match fixture.broker.call_from_session(session_id, None, sent, arguments, options, edge) {
            Answer::Later(replies, _) => replies,
            Answer::Now(reply) => panic!("answered immediately: {reply:?}"),
        }
    };
    let mut unsayable = ask(r#"{"n":123456789012345678901234567890}"#);
    let mut plain = ask(r#"{"n":1}"#);
    let poll = CallerToolRequestsRequest { session_id, caller_id: None, wait_ms: Some(20_000) };
    let polled = async {
        let polled: CallerToolRequestsResponse = call(&fixture, &who, poll).await;
        let [request] = &polled.requests[..] else { panic!("{polled:?}") };
        let answer = CallerToolResponseRequest {
            session_id,
            request_id: request.request_id.clone(),
            result: None,
            error: None,
        };
        result(&fixture.broker, &who, answer).await.expect("taken")
    };
    let (unsayable, plain, _) = tokio::join!(unsayable.next(), plain.next(), polled);
    let Some(ResponseEnvelope::Error(error)) = unsayable else { panic!("{unsayable:?}") };
    assert_eq!((&*error.code, error.certainty), ("invalid_params", Certainty::NotStarted));
    assert!(matches!(plain, Some(ResponseEnvelope::Success { .. })), "{plain:?}");
}
