//! Access rights to containers.

use ringback_broker::Credential;
use ringback_proto::ToolRequest;
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::Level;
use ringback_proto::request::{
    ContainerLogsRequest, ContainerStateResponse, ContainerStopRequest, ImageRebuildRequest,
    ProjectListRequest, ProjectListResponse, TokenCreateRequest, TokenCreatedResponse,
};

use super::place::{Place, executes, runs};
use crate::sessions::{call, project, refused, token};

fn each(project: ProjectId) -> [ToolRequest; 5] {
    [
        runs(project, "true").into(),
        ContainerStopRequest { project_id: project }.into(),
        ContainerLogsRequest { project_id: project, lines: None }.into(),
        executes(project, "true").into(),
        ImageRebuildRequest { project_id: Some(project), image: None }.into(),
    ]
}

/// REQ: seed 002, "Scope": `write` has `container_*` and `image_rebuild`; `read` has neither.
#[tokio::test]
async fn a_read_key_is_refused() {
    let place = Place::bubblewrap().await;
    let reader = token(&place.fixture, Level::Read).await;
    let project = place.project().await;
    for request in each(project) {
        let name = request.row().name;
        assert_eq!(
            refused(&place.fixture, &reader, request).await.0,
            "permission_denied",
            "{name}"
        );
    }
}

/// Rule: another principal's container does not exist for this one: it can neither be seen, nor
/// stopped, nor entered.
#[tokio::test]
async fn a_stranger_sees_and_reaches_no_container() {
    let place = Place::bubblewrap().await;
    let own = token(&place.fixture, Level::Write).await;
    let other = token(&place.fixture, Level::Write).await;
    let mine = project(&place.fixture, &own).await;
    let started = runs(mine, "echo secret; sleep 1000");
    drop(call::<ContainerStateResponse>(&place.fixture, &own, started).await);
    for request in each(mine) {
        let name = request.row().name;
        assert_eq!(refused(&place.fixture, &other, request).await.0, "not_found", "{name}");
    }
    let seen: ProjectListResponse =
        call(&place.fixture, &other, ProjectListRequest::default()).await;
    assert!(seen.projects.is_empty());
    let seen: ProjectListResponse = call(&place.fixture, &own, ProjectListRequest::default()).await;
    assert!(seen.projects[0].container.is_some(), "it is still running");
}

/// Rule: a token for some projects builds their images, and no others by name.
#[tokio::test]
async fn a_token_for_one_project_names_no_image() {
    let place = Place::bubblewrap().await;
    let project = place.project().await;
    let request = TokenCreateRequest {
        name: "narrow".to_owned(),
        scope: Level::Write,
        projects: Some(vec![project]),
        expires_in: None,
    };
    let made: TokenCreatedResponse = call(&place.fixture, &Credential::local(), request).await;
    let narrow = place.fixture.broker.authenticate(made.token.expose()).unwrap();
    let by_name = ImageRebuildRequest { project_id: None, image: Some("rust".to_owned()) };
    assert_eq!(refused(&place.fixture, &narrow, by_name).await.0, "permission_denied");
    let state: ContainerStateResponse =
        call(&place.fixture, &narrow, runs(project, "sleep 1000")).await;
    assert_eq!(state.project_id, project);
}
