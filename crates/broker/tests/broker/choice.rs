//! What the starter of a session chooses: its model, a key for it, and who answers its agent.

use std::sync::Arc;
use std::time::Duration;

use ringback_broker::{Config, Credential, ModelDoor, ModelRequest};
use ringback_proto::ids::{ProjectId, SessionId};
use ringback_proto::permission::PermissionMode;
use ringback_proto::principal::{KeyLevel, Level};
use ringback_proto::record::SessionState;
use ringback_proto::request::{
    ModelChoice, ModelUsage, SessionGetRequest, SessionMessageRequest, SessionResponse,
    SessionSpawnRequest,
};
use ringback_proto::secret::Secret;

use crate::common::{World, start_with};
use crate::keys::walk;
use crate::models::{Doors, with_agents};
use crate::reach::{key_of, keyed, passed, spawned, user};
use crate::sessions::{call, project, refused, say, to_session, until, with_echo};

const KEY: &str = "sk-of-one-session-0123456789";

fn choice(provider: &str, name: Option<&str>) -> Option<ModelChoice> {
    Some(ModelChoice {
        provider: Some(provider.to_owned()),
        name: name.map(str::to_owned),
        key_follows: false,
    })
}

fn keyed_message(session: SessionId, provider: &str) -> SessionMessageRequest {
    SessionMessageRequest {
        model: choice(provider, None).map(Box::new),
        model_key: Some(Secret::new(KEY.to_owned())),
        ..to_session(session, "hello")
    }
}

fn of_agent(project: ProjectId, agent: &str) -> SessionSpawnRequest {
    SessionSpawnRequest { agent: Some(agent.to_owned()), ..spawned(project) }
}

async fn start(change: impl FnOnce(&mut Config)) -> (World, Arc<Doors>) {
    let doors = Arc::<Doors>::default();
    let models = Arc::<Doors>::clone(&doors) as Arc<dyn ModelDoor>;
    let fixture = start_with(|config| {
        with_echo(config);
        with_agents(config);
        config.sessions.doors.models = Some(models);
        change(config);
    })
    .await;
    (fixture, doors)
}

async fn shown(fixture: &World, session_id: SessionId) -> SessionResponse {
    call(fixture, &Credential::local(), SessionGetRequest { session_id }).await
}

/// REQ: presets work without a table in the configuration: each has a provider and a model, which a
/// session may replace; a session may bring the key of its provider.
#[tokio::test]
async fn a_preset_needs_no_configuration_and_a_session_chooses_its_model() {
    let (fixture, doors) = start(|_| ()).await;
    let local = Credential::local();
    let at = project(&fixture, &local).await;
    let (_, why) = refused(&fixture, &local, of_agent(at, "goose")).await;
    assert!(why.contains("no key for `openai`"), "{why}");
    let model = Some(ModelChoice { key_follows: true, ..ModelChoice::default() });
    let session: SessionResponse =
        call(&fixture, &local, SessionSpawnRequest { model, ..of_agent(at, "goose") }).await;
    let model = session.model.clone().unwrap();
    assert_eq!((model.provider.as_str(), model.name.as_deref()), ("openai", Some("gpt-4.1")));
    let id = session.session_id;
    let (_, why) = refused(&fixture, &local, to_session(id, "hello")).await;
    assert!(why.contains("no key for `openai`"), "{why}");
    for request in [
        keyed_message(id, "mine"),
        SessionMessageRequest { model: None, ..keyed_message(id, "openai") },
    ] {
        let (_, why) = refused(&fixture, &local, request).await;
        assert!(why.contains("provider"), "{why}");
    }
    assert_eq!(doors.taken_keys(), [None]);
    let started = SessionMessageRequest {
        project_id: Some(at),
        session_id: None,
        agent: Some("goose".to_owned()),
        create_workspace: true,
        ..keyed_message(id, "openai")
    };
    say(&fixture, &local, started).await;
    assert_eq!(doors.taken_keys(), [Some(Secret::new(KEY.to_owned()))]);

    let model = choice("mine", Some("small"));
    let session: SessionResponse =
        call(&fixture, &local, SessionSpawnRequest { model, ..of_agent(at, "goose") }).await;
    let model = session.model.unwrap();
    assert_eq!((model.provider.as_str(), model.name.as_deref()), ("mine", Some("small")));
    assert_eq!(doors.taken_keys(), [None]);

    for (model, expected) in [
        (choice("mine", None), "which model of provider `mine`"),
        (choice("other", Some("m")), "no provider `other`"),
        (choice("", Some("m")), "1 to 200 bytes"),
        (choice("mine", Some("two\nlines")), "1 to 200 bytes"),
    ] {
        let request = SessionSpawnRequest { model, ..of_agent(at, "goose") };
        let (_, why) = refused(&fixture, &local, request).await;
        assert!(why.contains(expected), "{why}");
    }
    let model = choice("mine", Some("m"));
    let (_, why) =
        refused(&fixture, &local, SessionSpawnRequest { model, ..of_agent(at, "asks") }).await;
    assert!(why.contains("only presets"), "{why}");
    let (_, why) = refused(&fixture, &local, of_agent(at, "gandalf")).await;
    assert!(why.contains("configured: asks, echo, plain") && why.contains("goose"), "{why}");
}

/// Rule: the key of a session is nowhere on the disk, and is not there after a restart; what was
/// chosen is.
#[tokio::test]
async fn a_sessions_key_is_in_memory_alone_and_its_choice_survives_a_restart() {
    let (fixture, doors) = start(|_| ()).await;
    let local = Credential::local();
    let at = project(&fixture, &local).await;
    let model = choice("mine", None);
    let permissions = Some(PermissionMode::Deny);
    let request = SessionSpawnRequest { model, permissions, ..of_agent(at, "echo") };
    let session: SessionResponse = call(&fixture, &local, request).await;
    let id = session.session_id;
    say(&fixture, &local, keyed_message(id, "mine")).await;
    until(&fixture, &local, id, -1, |event| event.status == Some(SessionState::Idle)).await;
    assert_eq!(doors.taken_keys(), [Some(Secret::new(KEY.to_owned()))]);
    let models = Arc::<Doors>::clone(&doors) as Arc<dyn ModelDoor>;
    let fixture = fixture
        .restart_with(Duration::from_secs(1), |config| {
            with_echo(config);
            with_agents(config);
            config.sessions.doors.models = Some(models);
        })
        .await;
    let (_, why) = refused(&fixture, &local, keyed_message(id, "openai")).await;
    assert!(why.contains("keeps its provider"), "{why}");
    say(&fixture, &local, to_session(id, "hello")).await;
    assert_eq!(doors.taken_keys(), [None], "the key is gone");
    assert_eq!(shown(&fixture, id).await.model.unwrap().provider, "mine");
    let root = fixture.stop().await;
    for entry in walk(root.path().as_std_path()) {
        let bytes = std::fs::read(&entry).unwrap_or_default();
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "{}", entry.display());
    }
}

/// Rule: who may start sessions may choose a provider, and tighten permissions; only the daemon's
/// own user may send a key, and only an administrator may loosen permissions.
#[tokio::test]
async fn a_token_chooses_a_provider_but_sends_no_key_and_loosens_nothing() {
    let (fixture, doors) = start(|_| ()).await;
    let at = project(&fixture, &Credential::local()).await;
    for (scope, may_loosen) in [(Level::Write, false), (Level::Admin, true)] {
        let token = user(&fixture, scope, Some(vec![at])).await;
        let who = fixture.broker.authenticate(token.token.expose()).unwrap();
        let model = choice("mine", Some("m"));
        let permissions = Some(PermissionMode::Deny);
        let request = SessionSpawnRequest { model, permissions, ..of_agent(at, "goose") };
        let session: SessionResponse = call(&fixture, &who, request.clone()).await;
        let keyed = keyed_message(session.session_id, "mine");
        assert_eq!(refused(&fixture, &who, keyed).await.0, "permission_denied", "{scope}");
        assert_eq!(doors.taken_keys(), [None]);
        let permissions = Some(PermissionMode::Allow);
        let loose = SessionSpawnRequest { permissions, ..request };
        if may_loosen {
            call::<SessionResponse>(&fixture, &who, loose).await;
            doors.taken_keys();
        } else {
            assert_eq!(refused(&fixture, &who, loose).await.0, "permission_denied", "{scope}");
        }
    }
}

/// Attack: an agent uses its session's key, or one that its user passed, to get another provider,
/// the key of one that was configured for no agent, or looser permissions.
#[tokio::test]
async fn an_agent_widens_neither_its_model_nor_its_permissions() {
    let (fixture, doors) = start(|_| ()).await;
    let local = Credential::local();
    let at = keyed(&fixture, "k", KeyLevel::Write).await;
    let request =
        SessionSpawnRequest { permissions: Some(PermissionMode::Deny), ..of_agent(at, "echo") };
    let own: SessionResponse = call(&fixture, &local, request).await;
    let made = key_of(&fixture, own.session_id).await.unwrap();
    let token = user(&fixture, Level::Admin, None).await;
    let (_, passed) = passed(&fixture, at, &token).await;
    doors.taken_keys();
    for key in [made, passed] {
        for request in [
            SessionSpawnRequest { model: choice("openai", None), ..of_agent(at, "echo") },
            SessionSpawnRequest {
                permissions: Some(PermissionMode::Allow),
                ..of_agent(at, "echo")
            },
        ] {
            assert_eq!(refused(&fixture, &key, request).await.0, "permission_denied");
        }
        let keyed = keyed_message(own.session_id, "mine");
        assert_eq!(refused(&fixture, &key, keyed).await.0, "permission_denied");
        // Its provider would be `openai`, with the secret of that name.
        let (_, why) = refused(&fixture, &key, of_agent(at, "goose")).await;
        assert!(why.contains("unknown agent"), "{why}");
        call::<SessionResponse>(&fixture, &key, of_agent(at, "asks")).await;
        assert_eq!(doors.taken_keys(), [None], "a configured agent is started as configured");
    }
}

/// Rule: a session shows why its model did not answer, until a request succeeds; a message starts
/// this again.
#[tokio::test]
async fn a_session_shows_why_no_model_answered() {
    let (fixture, _doors) = start(|_| ()).await;
    let local = Credential::local();
    let at = project(&fixture, &local).await;
    let request = SessionSpawnRequest { model: choice("mine", None), ..of_agent(at, "echo") };
    let session: SessionResponse = call(&fixture, &local, request).await;
    let id = session.session_id;
    assert_eq!(session.model.unwrap().failure, None, "it has not started");
    let idle = async || {
        let since = say(&fixture, &local, to_session(id, "hello")).await.last_event_index;
        until(&fixture, &local, id, since, |event| event.status == Some(SessionState::Idle)).await;
    };
    idle().await;
    let failure = async || shown(&fixture, id).await.model.unwrap().failure;
    assert!(failure().await.unwrap().cause.contains("sent no request"));
    let ask = |method: &str, status, refusal: Option<&str>| {
        let request = ModelRequest {
            model: "mine".to_owned(),
            method: method.to_owned(),
            path: "/v1/x".to_owned(),
            status: Some(status),
            is_whole: true,
            duration: Duration::from_millis(1),
            answered_by: None,
            usage: ModelUsage::default(),
            refusal: refusal.map(str::to_owned),
            key: Some("secret mine".to_owned()),
        };
        fixture.broker.model_requested(id, &request);
    };
    ask("GET", 200, None);
    ask("POST", 401, None);
    let refused = failure().await.unwrap();
    assert_eq!((refused.status, refused.key.as_deref()), (Some(401), Some("secret mine")));
    assert!(refused.cause.contains("refused the key"), "{refused:?}");
    ask("POST", 502, Some("it is away"));
    let away = failure().await.unwrap();
    assert_eq!((away.status, away.cause.as_str()), (None, "it is away"));
    ask("POST", 200, None);
    ask("POST", 500, None);
    assert_eq!(failure().await, None, "one request was answered");
    idle().await;
    assert!(failure().await.is_some());
}
