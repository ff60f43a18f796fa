//! The reach of agents' keys: their own sessions and workspaces, no more than their users have, and
//! nothing once their session or their user's token has ended.

use std::time::Duration;

use ringback_broker::{AuditLine, Credential};
use ringback_proto::ids::{ProjectId, SessionId, WorkspaceId};
use ringback_proto::permission::PermissionPolicy;
use ringback_proto::principal::{KeyLevel, Level};
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    AckResponse, CallerTool, CallerToolRequestsRequest, ListToolsRequest, PermissionAnswer,
    ProjectCreateRequest, ProjectLimits, ProjectResponse, ProjectUpdateRequest, SessionEndRequest,
    SessionEventInfo, SessionEventsRequest, SessionGetRequest, SessionListRequest,
    SessionListResponse, SessionMessageRequest, SessionNetworkRequest, SessionOpenRequest,
    SessionResponse, SessionSpawnRequest, TokenCreateRequest, TokenCreatedResponse,
    TokenListRequest, TokenListResponse, TokenRevokeRequest, ToolsListResponse,
    WorkspaceDeleteRequest, WorkspaceListRequest, WorkspaceListResponse,
};
use ringback_proto::secret::Secret;
use ringback_testkit::{Setup, pass, wait_for};

use crate::common::{World, small, start_with};
use crate::sessions::{
    call, end, named, project, refused, say, to_project, to_session, until, with_echo,
};

/// A project whose agents have keys of this level.
pub(crate) async fn keyed(fixture: &World, name: &str, level: KeyLevel) -> ProjectId {
    let limits = ProjectLimits { max_sessions: Some(200), ..ProjectLimits::default() };
    let request =
        ProjectCreateRequest { key_level: Some(level), limits: Some(limits), ..named(name) };
    call::<ProjectResponse>(fixture, &Credential::local(), request).await.project_id
}

pub(crate) fn spawned(project_id: ProjectId) -> SessionSpawnRequest {
    SessionSpawnRequest {
        project_id,
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
    }
}

pub(crate) async fn spawn(fixture: &World, who: &Credential, at: ProjectId) -> SessionResponse {
    call(fixture, who, spawned(at)).await
}

/// Returns the key in the environment of a session's agent.
pub(crate) async fn key_of(fixture: &World, session: SessionId) -> Option<Credential> {
    let told = say(fixture, &Credential::local(), to_session(session, "env")).await;
    key_told(fixture, session, told.last_event_index).await
}

async fn key_told(fixture: &World, session: SessionId, since: i64) -> Option<Credential> {
    let shows =
        |event: &SessionEventInfo| event.text.as_deref().is_some_and(|text| text.contains("HOME="));
    let events = until(fixture, &Credential::local(), session, since, shows).await;
    let env = events.last().and_then(|event| event.text.clone()).unwrap();
    let key = env.split(' ').find_map(|entry| entry.strip_prefix("OUBLIETTE_API_KEY="))?;
    Some(fixture.broker.authenticate_in(session, key).expect("a key that is valid"))
}

pub(crate) async fn user(
    fixture: &World,
    scope: Level,
    projects: Option<Vec<ProjectId>>,
) -> TokenCreatedResponse {
    let (name, expires_in) = ("t".to_owned(), None);
    let request = TokenCreateRequest { name, scope, projects, expires_in };
    call(fixture, &Credential::local(), request).await
}

pub(crate) fn passing(request: SessionMessageRequest, key: &str) -> SessionMessageRequest {
    let api_key = Some(Secret::new(key.to_owned()));
    SessionMessageRequest { api_key, create_workspace: true, ..request }
}

/// An agent to which a user passed a token of this kind.
pub(crate) async fn passed(
    fixture: &World,
    at: ProjectId,
    token: &TokenCreatedResponse,
) -> (SessionId, Credential) {
    let start = passing(to_project(at, "env"), token.token.expose());
    let session = say(fixture, &Credential::local(), start).await.session_id;
    (session, key_told(fixture, session, -1).await.expect("a key"))
}

async fn sees(fixture: &World, who: &Credential) -> Vec<SessionId> {
    let listed: SessionListResponse = call(fixture, who, SessionListRequest::default()).await;
    listed.sessions.iter().map(|session| session.session_id).collect()
}

async fn status(fixture: &World, session_id: SessionId) -> SessionState {
    let who = Credential::local();
    call::<SessionResponse>(fixture, &who, SessionGetRequest { session_id }).await.status
}

fn events(session_id: SessionId) -> SessionEventsRequest {
    SessionEventsRequest {
        session_id,
        since_index: None,
        max_events: None,
        wait_ms: None,
        include_children: false,
        follow: false,
    }
}

fn at(project: ProjectId, workspace: WorkspaceId, text: &str) -> SessionMessageRequest {
    SessionMessageRequest { workspace_id: Some(workspace), ..to_project(project, text) }
}

/// Rule: the key of a session opens its own sessions and workspaces alone, through every tool that
/// names one.
#[tokio::test]
async fn the_key_of_a_session_opens_its_own_tree_alone() {
    let fixture = start_with(with_echo).await;
    let (local, p) = (Credential::local(), keyed(&fixture, "k", KeyLevel::Write).await);
    let own = spawn(&fixture, &local, p).await;
    let other = spawn(&fixture, &local, p).await;
    let (session_id, workspace_id) = (other.session_id, other.workspace_id);
    let agent = key_of(&fixture, own.session_id).await.unwrap();
    let spawn_there = SessionSpawnRequest {
        workspace_id: Some(workspace_id),
        create_workspace: false,
        ..spawned(p)
    };
    let network =
        ringback_proto::network::NetworkPolicy::of(ringback_proto::network::NetworkMode::None);
    for (code, what) in [
        (refused(&fixture, &agent, at(p, workspace_id, "x")).await.0, "session_message there"),
        (refused(&fixture, &agent, to_session(session_id, "x")).await.0, "session_message"),
        (refused(&fixture, &agent, spawn_there).await.0, "session_spawn"),
        (refused(&fixture, &agent, events(session_id)).await.0, "session_events"),
        (refused(&fixture, &agent, SessionGetRequest { session_id }).await.0, "session_get"),
        (refused(&fixture, &agent, SessionEndRequest { session_id }).await.0, "session_end"),
        (
            refused(&fixture, &agent, SessionNetworkRequest { session_id, network }).await.0,
            "session_network",
        ),
        (
            refused(&fixture, &agent, WorkspaceDeleteRequest { project_id: p, workspace_id })
                .await
                .0,
            "workspace_delete",
        ),
    ] {
        assert_eq!(code, "not_found", "{what}");
    }
    end(&fixture, &local, session_id).await;
    let delete = WorkspaceDeleteRequest { project_id: p, workspace_id };
    assert_eq!(
        refused(&fixture, &agent, delete).await.0,
        "not_found",
        "of a session that has ended"
    );
    assert_eq!(sees(&fixture, &agent).await, [own.session_id]);
    let open = SessionOpenRequest { session_id: Some(session_id), ..SessionOpenRequest::default() };
    assert_eq!(refused(&fixture, &agent, open).await.0, "not_found");

    // A message without a workspace goes to a child in its own workspace, which belongs to the
    // agent.
    let child = say(&fixture, &agent, to_project(p, "x")).await;
    assert_eq!((child.workspace_id, child.spawned), (own.workspace_id, true));
    let elsewhere = spawn(&fixture, &agent, p).await;
    assert_eq!(elsewhere.parent_id, Some(own.session_id));
    let mut seen = sees(&fixture, &agent).await;
    seen.sort_unstable();
    let mut tree = [own.session_id, child.session_id, elsewhere.session_id];
    tree.sort_unstable();
    assert_eq!(seen, tree);
    let listed: WorkspaceListResponse =
        call(&fixture, &agent, WorkspaceListRequest { project_id: p }).await;
    let listed: Vec<_> = listed.workspaces.iter().map(|it| it.workspace_id).collect();
    assert_eq!(listed, [elsewhere.workspace_id, own.workspace_id]);
    end(&fixture, &agent, elsewhere.session_id).await;
    let delete = WorkspaceDeleteRequest { project_id: p, workspace_id: elsewhere.workspace_id };
    call::<AckResponse>(&fixture, &agent, delete).await;
}

/// Rule: a child has the key of its parent or less, however it was started.
#[tokio::test]
async fn a_child_has_the_key_of_its_parent_or_less() {
    let fixture = start_with(with_echo).await;
    let local = Credential::local();
    let p = keyed(&fixture, "k", KeyLevel::Write).await;
    let reader = user(&fixture, Level::Read, Some(vec![p])).await;
    let (session, agent) = passed(&fixture, p, &reader).await;
    let told = fixture.broker.session_message_from(session, "x".to_owned(), None).await.unwrap();
    let child = key_of(&fixture, told.session_id).await.expect("a key with scope `read`");
    for key in [&agent, &child] {
        let put = WorkspaceDeleteRequest { project_id: p, workspace_id: told.workspace_id };
        assert_eq!(refused(&fixture, key, put).await.0, "permission_denied");
    }

    // Through the tool, with the created key; a parent without a key has children without one.
    let writer = spawn(&fixture, &local, p).await.session_id;
    let writer = key_of(&fixture, writer).await.unwrap();
    let below = spawn(&fixture, &writer, p).await.session_id;
    assert!(key_of(&fixture, below).await.is_some());
    let bare = user(&fixture, Level::Write, None).await;
    let bare_user = fixture.broker.authenticate(bare.token.expose()).unwrap();
    let own = project(&fixture, &bare_user).await;
    let root = say(&fixture, &bare_user, to_project(own, "x")).await.session_id;
    assert!(key_of(&fixture, root).await.is_none());
    let told = fixture.broker.session_message_from(root, "x".to_owned(), None).await.unwrap();
    assert!(key_of(&fixture, told.session_id).await.is_none());
}

/// Rule: an administrator of some projects sees and revokes the tokens that it could have made.
#[tokio::test]
async fn an_admin_of_a_project_rules_the_tokens_of_that_project() {
    let fixture = start_with(with_echo).await;
    let local = Credential::local();
    let (a, b) = (project(&fixture, &local).await, project(&fixture, &local).await);
    let all = user(&fixture, Level::Admin, None).await;
    let of_a = user(&fixture, Level::Admin, Some(vec![a])).await;
    let reads_a = user(&fixture, Level::Read, Some(vec![a])).await;
    let both = user(&fixture, Level::Read, Some(vec![a, b])).await;
    let of_b = user(&fixture, Level::Write, Some(vec![b])).await;
    let admin = fixture.broker.authenticate(of_a.token.expose()).unwrap();
    let listed: TokenListResponse = call(&fixture, &admin, TokenListRequest {}).await;
    let mut seen: Vec<_> = listed.tokens.iter().map(|token| token.token_id).collect();
    seen.sort_unstable();
    let mut expected = vec![of_a.token_id, reads_a.token_id];
    expected.sort_unstable();
    assert_eq!(seen, expected);
    let unknown = ringback_proto::ids::TokenId::from_random([9; 16]);
    let revoke = |token_id| TokenRevokeRequest { token_id };
    let (code, text) = refused(&fixture, &admin, revoke(unknown)).await;
    for token in [&all, &both, &of_b] {
        let refused = refused(&fixture, &admin, revoke(token.token_id)).await;
        let alike = text.replace(&unknown.to_string(), &token.token_id.to_string());
        assert_eq!(refused, (code.clone(), alike), "as if it did not exist");
        assert!(fixture.broker.authenticate(token.token.expose()).is_ok());
    }
    call::<AckResponse>(&fixture, &admin, revoke(reads_a.token_id)).await;
    assert!(fixture.broker.authenticate(reads_a.token.expose()).is_err());
    let listed: TokenListResponse = call(&fixture, &local, TokenListRequest {}).await;
    assert_eq!(listed.tokens.len(), 5, "an admin without a project limit sees all");
}

/// Every kind of key that an agent can have: created, passed, and a token that it was shown.
async fn agents_keys(fixture: &World) -> Vec<(String, SessionId, Credential)> {
    let local = Credential::local();
    let mut keys = Vec::new();
    for level in [KeyLevel::Read, KeyLevel::Write] {
        let p = keyed(fixture, level.as_str(), level).await;
        let session = spawn(fixture, &local, p).await.session_id;
        let key = key_of(fixture, session).await.unwrap();
        keys.push((format!("made {level}"), session, key));
    }
    for level in [Level::Read, Level::Write, Level::Admin] {
        let p = keyed(fixture, &format!("passed {level}"), KeyLevel::None).await;
        let token = user(fixture, level, None).await;
        let owner = fixture.broker.authenticate(token.token.expose()).unwrap();
        let (session, key) = passed(fixture, p, &token).await;
        assert_eq!(key.id(), owner.id());
        keys.push((format!("passed {level}"), session, key));
        let shown = fixture.broker.authenticate_in(session, token.token.expose()).unwrap();
        keys.push((format!("shown {level}"), session, shown));
    }
    keys
}

/// Rule: no key of an agent creates, lists or revokes tokens, changes agents' restrictions, or
/// answers agents' questions, whatever its scope and wherever it comes from.
#[tokio::test]
async fn no_key_of_an_agent_loosens_anything_or_answers_for_it() {
    let fixture = start_with(with_echo).await;
    let token = user(&fixture, Level::Read, None).await.token_id;
    for (kind, session, key) in agents_keys(&fixture).await {
        let view = fixture.broker.session_view(session).unwrap();
        let (name, scope, expires_in) = ("x".to_owned(), Level::Read, None);
        let projects = Some(vec![view.project]);
        let minted = TokenCreateRequest { name, scope, projects, expires_in };
        let permissions: PermissionPolicy = "allow".parse().unwrap();
        let updated =
            ProjectUpdateRequest { project_id: view.project, permissions: Some(permissions) };
        let answer = PermissionAnswer { request_id: "1".to_owned(), option: None };
        let answered =
            SessionMessageRequest { answer: Some(Box::new(answer)), ..to_session(session, "") };
        let asked =
            CallerToolRequestsRequest { session_id: session, caller_id: None, wait_ms: None };
        for (code, what) in [
            (refused(&fixture, &key, minted).await.0, "token_create"),
            (refused(&fixture, &key, TokenListRequest {}).await.0, "token_list"),
            (
                refused(&fixture, &key, TokenRevokeRequest { token_id: token }).await.0,
                "token_revoke",
            ),
            (refused(&fixture, &key, updated).await.0, "project_update"),
            (refused(&fixture, &key, answered).await.0, "an answer"),
            (refused(&fixture, &key, asked).await.0, "caller_tool_requests"),
        ] {
            // A session that a key does not see does not exist for it.
            let is_unseen = code == "not_found" && what == "an answer" && !kind.contains("admin");
            assert!(code == "permission_denied" || is_unseen, "{kind}: {what}: {code}");
        }
        let name = format!("by {kind}");
        for request in [
            ProjectCreateRequest { key_level: Some(KeyLevel::Read), ..named(&name) },
            ProjectCreateRequest { permissions: Some("allow".parse().unwrap()), ..named(&name) },
            ProjectCreateRequest {
                network: Some(ringback_proto::network::NetworkPolicy::of(
                    ringback_proto::network::NetworkMode::Full,
                )),
                ..named(&name)
            },
            ProjectCreateRequest {
                limits: Some(ProjectLimits { max_agents: Some(9999), ..Default::default() }),
                ..named(&name)
            },
        ] {
            assert_eq!(refused(&fixture, &key, request).await.0, "permission_denied", "{kind}");
        }
        let tool = CallerTool {
            name: "t".to_owned(),
            description: None,
            input_schema: None,
            timeout_ms: None,
            allowed: false,
        };
        let offers = SessionMessageRequest {
            caller_id: Some("me".to_owned()),
            caller_tools: Some(vec![tool]),
            ..to_project(view.project, "x")
        };
        assert_eq!(refused(&fixture, &key, offers).await.0, "permission_denied", "{kind}");
    }
}

/// Rule: every listed tool can be called: a tool whose calls are always refused is not in the list.
#[tokio::test]
async fn a_list_of_tools_has_what_the_key_may_call() {
    let fixture = start_with(with_echo).await;
    for (kind, _, key) in agents_keys(&fixture).await {
        let listed: ToolsListResponse = call(&fixture, &key, ListToolsRequest::default()).await;
        let has = |name: &str| listed.tools.iter().any(|tool| tool.name == name);
        assert!(has("ping") && has("session_list"), "{kind}");
        for never in ["token_create", "token_list", "token_revoke", "project_update"] {
            assert!(!has(never), "{kind}: {never}");
        }
        let is_made = kind.starts_with("made");
        let writes = !kind.ends_with("read");
        assert_eq!(has("project_create"), writes && !is_made, "{kind}");
        assert_eq!(has("project_delete"), writes && !is_made, "{kind}");
        assert_eq!(has("session_spawn"), writes, "{kind}");
    }
}

/// Rule: revoking a token ends the sessions that it started, with all their descendants and their
/// keys.
#[tokio::test]
async fn revoking_a_token_ends_the_sessions_it_started() {
    let fixture = start_with(with_echo).await;
    let local = Credential::local();
    let p = keyed(&fixture, "k", KeyLevel::Write).await;
    let token = user(&fixture, Level::Write, Some(vec![p])).await;
    let who = fixture.broker.authenticate(token.token.expose()).unwrap();
    let root = spawn(&fixture, &who, p).await.session_id;
    let key = key_of(&fixture, root).await.unwrap();
    let child = spawn(&fixture, &key, p).await.session_id;
    let childs = key_of(&fixture, child).await.unwrap();
    let others = spawn(&fixture, &local, p).await.session_id;
    // A session of another owner, whose agent has the token: it goes on, without the token.
    let (lent, agent) = passed(&fixture, p, &token).await;
    call::<AckResponse>(&fixture, &local, TokenRevokeRequest { token_id: token.token_id }).await;
    for session in [root, child] {
        assert_eq!(status(&fixture, session).await, SessionState::Ended);
    }
    for session in [others, lent] {
        assert!(status(&fixture, session).await.is_live());
    }
    for key in [&key, &childs, &agent] {
        assert!(!key.is_valid(fixture.broker.now()));
        assert_eq!(
            refused(&fixture, key, SessionListRequest::default()).await.0,
            "unauthenticated"
        );
    }
}

/// Rule: a token that expires ends the sessions it started.
#[tokio::test]
async fn an_expired_token_ends_the_sessions_it_started() {
    const VALID: Duration = Duration::from_secs(60);
    let setup = Setup::new().config(small).config(with_echo);
    let fixture = setup.simulated_clock().start().await;
    let p = keyed(&fixture, "k", KeyLevel::Write).await;
    let (name, scope, projects) = ("t".to_owned(), Level::Write, Some(vec![p]));
    let expires_in = Some(VALID.as_secs());
    let request = TokenCreateRequest { name, scope, projects, expires_in };
    let token: TokenCreatedResponse = call(&fixture, &Credential::local(), request).await;
    let who = fixture.broker.authenticate(token.token.expose()).unwrap();
    let session = spawn(&fixture, &who, p).await.session_id;
    pass(VALID).await;
    wait_for("it ends", async || fixture.broker.under_way().n_sessions == 0).await;
    assert_eq!(status(&fixture, session).await, SessionState::Ended);
}

/// Rule: the limits of a tree apply however a session of it was started, and in whichever project.
#[tokio::test]
async fn the_limits_of_a_tree_count_what_is_started_with_keys() {
    let fixture = start_with(with_echo).await;
    let local = Credential::local();
    let limits = ProjectLimits { max_agents: Some(3), max_depth: Some(1), ..Default::default() };
    let request = ProjectCreateRequest {
        key_level: Some(KeyLevel::Write),
        limits: Some(limits),
        ..named("tight")
    };
    let tight = call::<ProjectResponse>(&fixture, &local, request).await.project_id;
    let wide = keyed(&fixture, "wide", KeyLevel::Write).await;
    let root = spawn(&fixture, &local, tight).await.session_id;
    let key = key_of(&fixture, root).await.unwrap();
    let child = spawn(&fixture, &key, tight).await;
    assert_eq!((child.root_session_id, child.depth), (root, 1));
    let below = key_of(&fixture, child.session_id).await.unwrap();
    let (code, message) = refused(&fixture, &below, spawned(tight)).await;
    assert!(code == "busy" || code == "rate_limited", "{code}");
    assert!(message.contains("`max_depth`") && message.contains("sessions.max_depth"), "{message}");
    fixture.broker.session_message_from(root, "x".to_owned(), None).await.expect("the third");
    let (_, message) = refused(&fixture, &key, spawned(tight)).await;
    assert!(
        message.contains("`max_agents`") && message.contains("sessions.max_agents"),
        "{message}"
    );

    // With a token that a user passed, also in another project.
    let token = user(&fixture, Level::Write, Some(vec![tight, wide])).await;
    let (session, agent) = passed(&fixture, tight, &token).await;
    let far = spawn(&fixture, &agent, wide).await;
    assert_eq!((far.root_session_id, far.project_id), (session, wide));
    spawn(&fixture, &agent, wide).await;
    let (_, message) = refused(&fixture, &agent, spawned(wide)).await;
    assert!(message.contains("`max_agents`"), "{message}");
    end(&fixture, &local, session).await;
    assert_eq!(
        status(&fixture, far.session_id).await,
        SessionState::Ended,
        "it ends with its tree"
    );
}

/// Rule: calls of an agent with its key are in the audit under its session.
#[tokio::test]
async fn what_an_agent_calls_is_audited_under_its_session() {
    let fixture = start_with(with_echo).await;
    for (kind, session, key) in agents_keys(&fixture).await {
        call::<SessionListResponse>(&fixture, &key, SessionListRequest::default()).await;
        refused(&fixture, &key, TokenListRequest {}).await;
        let audit =
            fixture.broker.audit(&Credential::local()).unwrap().page(None, Some(20)).await.unwrap();
        let found = audit.lines.iter().filter_map(|line| match line {
            AuditLine::Call(entry) if entry.session == Some(session) => Some(&*entry.tool),
            _ => None,
        });
        let found: Vec<_> = found.collect();
        assert!(
            found.contains(&"session_list") && found.contains(&"token_list"),
            "{kind}: {found:?}"
        );
    }
}

/// Rule: project names are unique per owner.
#[tokio::test]
async fn a_second_project_of_one_name_is_a_conflict() {
    let fixture = start_with(with_echo).await;
    let (local, other) = (Credential::local(), user(&fixture, Level::Write, None).await);
    let other = fixture.broker.authenticate(other.token.expose()).unwrap();
    call::<ProjectResponse>(&fixture, &local, named("twice")).await;
    let (code, message) = refused(&fixture, &local, named("twice")).await;
    assert_eq!((code.as_str(), message.as_str()), ("conflict", "project already exists"));
    call::<ProjectResponse>(&fixture, &other, named("twice")).await;
}
