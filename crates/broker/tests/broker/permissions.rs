//! The answers to permission requests of a project's agents.

use ringback_agents::Permissions;
use ringback_broker::Credential;
use ringback_proto::ids::ProjectId;
use ringback_proto::permission::PermissionPolicy;
use ringback_proto::principal::{KeyLevel, Level};
use ringback_proto::request::{
    ProjectCreateRequest, ProjectGetRequest, ProjectResponse, ProjectUpdateRequest,
    SessionEventInfo,
};

use crate::acp::{is_question, with_agent};
use crate::common::{World, start_with};
use crate::sessions::{
    call, end, is_idle, named, refused, said, say, to_project, to_session, token, until,
};

fn policy(text: &str) -> PermissionPolicy {
    text.parse().unwrap()
}

fn update(project_id: ProjectId, text: &str) -> ProjectUpdateRequest {
    ProjectUpdateRequest { project_id, permissions: Some(policy(text)) }
}

async fn project(fixture: &World, text: Option<&str>) -> ProjectId {
    let request = ProjectCreateRequest { permissions: text.map(policy), ..named("p") };
    call::<ProjectResponse>(fixture, &Credential::local(), request).await.project_id
}

/// REQ: "Permission requests [..] follow a per-project policy": its rules first, then its default,
/// then the agent's own settings.
#[tokio::test]
async fn the_policy_of_a_project_comes_before_the_settings_of_its_agent() {
    // The agent asks for `rm -rf`.
    for (settings, text, expected) in [
        (Permissions::Deny, Some("ask\nrm *=allow"), "answered yes"),
        (Permissions::Allow, Some("allow\nls=allow\nrm*=deny\n*=allow"), "answered no"),
        (Permissions::Allow, Some("deny\nrm=allow"), "answered no"),
        (Permissions::Allow, Some("-\nls*=deny"), "answered yes"),
        (Permissions::Deny, None, "answered no"),
    ] {
        let fixture = start_with(with_agent(settings)).await;
        let who = Credential::local();
        let project = project(&fixture, text).await;
        let session = say(&fixture, &who, to_project(project, "ask")).await.session_id;
        let events = until(&fixture, &who, session, -1, is_idle).await;
        assert_eq!(said(&events), [expected], "{text:?}");
        let by = events.iter().find(|event| event.kind == "permission_answer").unwrap();
        assert_eq!(by.role.as_deref(), Some("policy"), "{text:?}");
    }
}

/// Rule: a changed policy applies from the next question on, also for an agent at work.
#[tokio::test]
async fn a_changed_policy_holds_from_the_next_question_on() {
    let fixture = start_with(with_agent(Permissions::Ask)).await;
    let who = Credential::local();
    let project = project(&fixture, Some("deny")).await;
    let session = say(&fixture, &who, to_project(project, "ask")).await.session_id;
    let mut events = until(&fixture, &who, session, -1, is_idle).await;
    assert_eq!(said(&events), ["answered no"]);
    for (text, expected) in [("ask\nrm*=allow", "answered yes"), ("deny", "answered no")] {
        let changed: ProjectResponse = call(&fixture, &who, update(project, text)).await;
        assert_eq!(changed.permissions, Some(policy(text)));
        let told = say(&fixture, &who, to_session(session, "ask")).await;
        events = until(&fixture, &who, session, told.last_event_index, is_idle).await;
        assert_eq!(said(&events), [expected], "{text}");
    }
    let changed: ProjectResponse = call(&fixture, &who, update(project, "-")).await;
    assert_eq!(changed.permissions, None, "an empty policy counts as no policy");
    let told = say(&fixture, &who, to_session(session, "ask")).await;
    until(&fixture, &who, session, told.last_event_index, is_question).await;
    end(&fixture, &who, session).await;
    let shown: ProjectResponse =
        call(&fixture, &who, ProjectGetRequest { project_id: project }).await;
    assert_eq!(shown.permissions, None);
}

/// Rule: only admins allow agents more than their settings do, and no agent decides what it is
/// allowed.
#[tokio::test]
async fn more_than_the_settings_allow_needs_admin() {
    let fixture = start_with(with_agent(Permissions::Ask)).await;
    let writer = token(&fixture, Level::Write).await;
    for (text, is_taken) in
        [("allow", false), ("ask\nls*=allow", false), ("ask\nls*=deny", true), ("deny", true)]
    {
        let request = ProjectCreateRequest { permissions: Some(policy(text)), ..named(text) };
        if is_taken {
            let made: ProjectResponse = call(&fixture, &writer, request).await;
            let wider = update(made.project_id, "allow");
            assert_eq!(refused(&fixture, &writer, wider).await.0, "permission_denied");
        } else {
            assert_eq!(refused(&fixture, &writer, request).await.0, "permission_denied", "{text}");
        }
    }
    let wrong = ProjectCreateRequest { permissions: Some(policy("ask\n[=deny")), ..named("p") };
    let (code, message) = refused(&fixture, &writer, wrong).await;
    assert!(code == "invalid_params" && message.contains("`[`"), "{message}");
    let nothing =
        ProjectUpdateRequest { project_id: project(&fixture, None).await, permissions: None };
    let (code, _) = refused(&fixture, &Credential::local(), nothing).await;
    assert_eq!(code, "invalid_params");
}

/// Rule: an agent with a key does not decide what it is allowed.
#[tokio::test]
async fn the_key_of_a_session_changes_no_project() {
    let fixture = start_with(crate::sessions::with_echo).await;
    let who = Credential::local();
    let request = ProjectCreateRequest { key_level: Some(KeyLevel::Write), ..named("p") };
    let project = call::<ProjectResponse>(&fixture, &who, request).await.project_id;
    let session = say(&fixture, &who, to_project(project, "env")).await.session_id;
    let events: Vec<SessionEventInfo> = until(&fixture, &who, session, -1, is_idle).await;
    let env = said(&events)[0].to_owned();
    let key = env.split(' ').find_map(|entry| entry.strip_prefix("OUBLIETTE_API_KEY=")).unwrap();
    let key = fixture.broker.authenticate_in(session, key).unwrap();
    assert_eq!(refused(&fixture, &key, update(project, "deny")).await.0, "permission_denied");
}
