//! Keys that users pass to the agents of their sessions.

use ringback_broker::Credential;
use ringback_proto::principal::Level;
use ringback_proto::request::{
    ProjectListRequest, ProjectListResponse, SessionListRequest, SessionListResponse,
    SessionMessageRequest, TokenCreateRequest, TokenCreatedResponse, TokenRevokeRequest,
};
use ringback_proto::secret::Secret;
use ringback_testkit::Setup;

use crate::common::{World, small, start_with};
use crate::sessions::{
    call, end, is_idle, project, refused, said, say, to_project, to_session, until, with_echo,
};

async fn token(fixture: &World, scope: Level) -> TokenCreatedResponse {
    let (name, projects, expires_in) = ("t".to_owned(), None, None);
    call(fixture, &Credential::local(), TokenCreateRequest { name, scope, projects, expires_in })
        .await
}

fn with_key(request: SessionMessageRequest, key: &str) -> SessionMessageRequest {
    SessionMessageRequest { api_key: Some(Secret::new(key.to_owned())), ..request }
}

/// Returns the key of a session's agent.
fn key_in(env: &str) -> Option<&str> {
    env.split(' ').find_map(|entry| entry.strip_prefix("OUBLIETTE_API_KEY="))
}

/// Rule: a user may pass a token of their own. Its agent acts as that token with a key that ends
/// with the session; the token itself stays with the user, and is written nowhere.
#[tokio::test]
async fn an_agent_acts_as_the_token_that_its_user_passes_and_never_has_it() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let first = project(&fixture, &who).await;
    let made = token(&fixture, Level::Write).await;
    let key = made.token.expose();
    let session = say(&fixture, &who, with_key(to_project(first, "env"), key)).await.session_id;
    let events = until(&fixture, &who, session, -1, is_idle).await;
    assert!(!said(&events)[0].contains(key), "the token itself is in the agent's hands");
    let agents = key_in(said(&events)[0]).unwrap().to_owned();
    let agent = fixture.broker.authenticate_in(session, &agents).unwrap();
    let credential = fixture.broker.authenticate(key).expect("it is still the user's");
    assert_eq!(agent.id(), credential.id());
    let made = project(&fixture, &agent).await;
    let seen: ProjectListResponse =
        call(&fixture, &credential, ProjectListRequest::default()).await;
    assert_eq!(seen.projects[0].project_id, made, "what it makes is its user's");
    end(&fixture, &who, session).await;
    assert!(fixture.broker.authenticate_in(session, &agents).is_err(), "it ends with the session");
    assert!(fixture.broker.authenticate(key).is_ok(), "and the token does not");

    let own = project(&fixture, &credential).await;
    let again = say(&fixture, &credential, with_key(to_project(own, "x"), key)).await;
    let root = fixture.stop().await;
    for entry in walk(root.path().as_std_path()) {
        let bytes = std::fs::read(&entry).unwrap();
        let is_in_it = bytes.windows(key.len()).any(|window| window == key.as_bytes());
        assert!(!is_in_it, "{}", entry.display());
    }

    let fixture = Setup::of(root).config(small).config(with_echo).start().await;
    assert!(fixture.broker.authenticate(key).is_ok(), "a restart ends the keys of sessions alone");
    let who = fixture.broker.authenticate(key).unwrap();
    let (session, since) = (again.session_id, again.last_event_index);
    say(&fixture, &who, to_session(session, "env")).await;
    let events = until(&fixture, &who, session, since, |event| {
        event.text.as_deref().is_some_and(|text| text.contains("HOME="))
    });
    assert_eq!(key_in(events.await.last().unwrap().text.as_deref().unwrap()), None);
}

pub(crate) fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap());
    entries
        .flat_map(|entry| {
            let kind = entry.file_type().unwrap();
            match (kind.is_dir(), kind.is_file()) {
                (true, _) => walk(&entry.path()),
                (_, true) => vec![entry.path()],
                (false, false) => Vec::new(),
            }
        })
        .collect()
}

/// Rule: no elevation, and nothing is done partially.
#[tokio::test]
async fn a_key_that_is_not_valid_or_is_more_than_its_user_has_starts_nothing() {
    let fixture = start_with(with_echo).await;
    let local = Credential::local();
    let (write, admin) = (token(&fixture, Level::Write).await, token(&fixture, Level::Admin).await);
    let who = fixture.broker.authenticate(write.token.expose()).unwrap();
    let project = project(&fixture, &who).await;
    let with = |key: &str| with_key(to_project(project, "x"), key);

    let (code, message) = refused(&fixture, &who, with("oub_nothing")).await;
    assert_eq!((code.as_str(), message.contains("oub_")), ("invalid_params", false), "{message}");
    let (code, _) = refused(&fixture, &who, with(admin.token.expose())).await;
    assert_eq!(code, "permission_denied");
    let gone = token(&fixture, Level::Read).await;
    let revoke = TokenRevokeRequest { token_id: gone.token_id };
    call::<ringback_proto::request::AckResponse>(&fixture, &local, revoke).await;
    let (code, message) = refused(&fixture, &who, with(gone.token.expose())).await;
    assert_eq!(code, "invalid_params");
    assert!(message.contains("revoked"), "{message}");

    let listed: SessionListResponse = call(&fixture, &who, SessionListRequest::default()).await;
    assert!(listed.sessions.is_empty(), "{listed:?}");
}

/// Rule: a request that cannot be fulfilled is refused, not ignored.
#[tokio::test]
async fn an_agent_that_runs_keeps_its_key() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let project = project(&fixture, &who).await;
    let session = say(&fixture, &who, to_project(project, "x")).await.session_id;
    let key = token(&fixture, Level::Read).await;
    for request in [to_session(session, "y"), to_project(project, "y")] {
        let request = with_key(request, key.token.expose());
        let (code, message) = refused(&fixture, &who, request).await;
        assert_eq!(code, "invalid_params");
        assert!(message.contains("create_workspace"), "{message}");
    }
}
