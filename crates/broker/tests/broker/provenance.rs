//! Where things come from is recorded, and decides who sees them.

use ringback_broker::Credential;
use ringback_proto::Event;
use ringback_proto::data::Data;
use ringback_proto::ids::{ArtifactId, BlobHash, ProjectId, SessionId};
use ringback_proto::principal::{KeyLevel, Level};
use ringback_proto::request::{
    ArtifactCreateRequest, ArtifactCreatedResponse, ArtifactGetRequest, ArtifactInfoResponse,
    ArtifactListRequest, ArtifactListResponse, CasGetRequest, CasStoreRequest, CasStoredResponse,
    EventPollRequest, EventsResponse, JobListRequest, JobListResponse, JobSleepRequest,
    SleptResponse, SourceInfo, SourceRole,
};

use crate::common::{World, start_with};
use crate::reach::{key_of, keyed, passed, spawn, user};
use crate::sessions::{call, refused, with_echo};

/// What a principal made in this test.
struct Made {
    artifact: ArtifactId,
    content: BlobHash,
    /// Content without an artifact.
    upload: BlobHash,
}

/// Stores content, makes an artifact of it, and runs a job.
async fn make(fixture: &World, who: &Credential, text: &str) -> Made {
    let content = upload(fixture, who, text).await;
    let upload = upload(fixture, who, &format!("{text}, without an artifact")).await;
    let artifact = create(fixture, who, content).await;
    call::<SleptResponse>(fixture, who, JobSleepRequest { milliseconds: 0 }).await;
    Made { artifact, content, upload }
}

async fn upload(fixture: &World, who: &Credential, text: &str) -> BlobHash {
    let store = CasStoreRequest {
        data: Data::from(text.as_bytes().to_vec()),
        mime_type: "text/plain".to_owned(),
        upload_id: None,
        offset: None,
        last: None,
    };
    call::<CasStoredResponse>(fixture, who, store).await.hash.unwrap()
}

async fn create(fixture: &World, who: &Credential, content_hash: BlobHash) -> ArtifactId {
    let request = ArtifactCreateRequest {
        content_hash,
        metadata: None,
        tags: Vec::new(),
        creator: None,
        parent_id: None,
        variation_set_id: None,
    };
    call::<ArtifactCreatedResponse>(fixture, who, request).await.artifact_id
}

async fn info(fixture: &World, who: &Credential, id: ArtifactId) -> ArtifactInfoResponse {
    call(fixture, who, ArtifactGetRequest { id }).await
}

/// Checks that a principal sees what was made, or nothing of it.
async fn check(fixture: &World, who: &Credential, made: &Made, is_seen: bool, what: &str) {
    let listed: ArtifactListResponse = call(fixture, who, ArtifactListRequest::default()).await;
    let is_listed = listed.artifacts.iter().any(|artifact| artifact.id == made.artifact);
    assert_eq!(is_listed, is_seen, "{what}: the list");
    let get = ArtifactGetRequest { id: made.artifact };
    if is_seen {
        call::<ArtifactInfoResponse>(fixture, who, get).await;
    } else {
        assert_eq!(refused(fixture, who, get).await.0, "not_found", "{what}: the artifact");
    }
    for hash in [made.content, made.upload] {
        let content = CasGetRequest { hash, offset: None, length: None };
        if is_seen {
            call::<ringback_proto::request::CasContentResponse>(fixture, who, content).await;
        } else {
            assert_eq!(refused(fixture, who, content).await.0, "not_found", "{what}: content");
        }
    }
}

async fn jobs(fixture: &World, who: &Credential) -> (usize, u64) {
    let listed: JobListResponse = call(fixture, who, JobListRequest::default()).await;
    (listed.jobs.len(), listed.total)
}

/// Rule: a session's own key sees what its session tree made, and not what its siblings made; a
/// user's project token sees the project; others see nothing of it.
#[tokio::test]
async fn a_session_sees_its_tree_and_a_project_token_its_project() {
    let fixture = start_with(with_echo).await;
    let project = keyed(&fixture, "one", KeyLevel::Write).await;
    let elsewhere = keyed(&fixture, "two", KeyLevel::Write).await;
    let parent = spawn(&fixture, &Credential::local(), project).await.session_id;
    let parents_key = key_of(&fixture, parent).await.unwrap();
    let child = spawn(&fixture, &parents_key, project).await.session_id;
    let childs_key = key_of(&fixture, child).await.unwrap();
    let sibling = spawn(&fixture, &Credential::local(), project).await.session_id;
    let siblings_key = key_of(&fixture, sibling).await.unwrap();
    let token = async |scope, projects: Option<Vec<ProjectId>>| {
        let made = user(&fixture, scope, projects).await;
        fixture.broker.authenticate(made.token.expose()).unwrap()
    };
    let member = token(Level::Read, Some(vec![project])).await;
    let outsider = token(Level::Write, Some(vec![elsewhere])).await;
    let narrow = token(Level::Write, Some(vec![project])).await;
    let wide = token(Level::Write, Some(vec![project, elsewhere])).await;

    let by_parent = make(&fixture, &parents_key, "by the parent").await;
    let by_child = make(&fixture, &childs_key, "by the child").await;
    let by_sibling = make(&fixture, &siblings_key, "by the sibling").await;
    let by_narrow = make(&fixture, &narrow, "by a token of the project").await;
    let by_wide = make(&fixture, &wide, "by a token of two projects").await;
    let by_user = make(&fixture, &Credential::local(), "by the user").await;

    let all = [&by_parent, &by_child, &by_sibling, &by_narrow, &by_wide, &by_user];
    let rows: [(&str, &Credential, [bool; 6]); 6] = [
        ("parent", &parents_key, [true, true, false, false, false, false]),
        ("child", &childs_key, [false, true, false, false, false, false]),
        ("sibling", &siblings_key, [false, false, true, false, false, false]),
        ("member", &member, [true, true, true, true, false, false]),
        ("outsider", &outsider, [false; 6]),
        ("local", &Credential::local(), [true; 6]),
    ];
    for (name, who, seen) in rows {
        for (made, is_seen) in all.into_iter().zip(seen) {
            check(&fixture, who, made, is_seen, name).await;
        }
    }
    // Starting the child was a job of the parent too.
    for (name, who, n_jobs) in
        [("parent", &parents_key, 3), ("child", &childs_key, 1), ("outsider", &outsider, 0)]
    {
        assert_eq!(jobs(&fixture, who).await, (n_jobs, n_jobs as u64), "{name}");
    }

    let shown = info(&fixture, &member, by_child.artifact).await;
    assert_eq!(shown.project_id, Some(project));
    assert_eq!(shown.session_id, Some(child));
    assert_eq!(shown.tool.as_deref(), Some("artifact_create"));
    let shown = info(&fixture, &Credential::local(), by_wide.artifact).await;
    assert_eq!((shown.project_id, shown.session_id), (None, None), "which of the two is unknown");
}

/// Rule: a token narrowed to projects polls the events of these, and of no others.
#[tokio::test]
async fn a_project_token_polls_the_events_of_its_project() {
    let fixture = start_with(with_echo).await;
    let project = keyed(&fixture, "one", KeyLevel::Write).await;
    let elsewhere = keyed(&fixture, "two", KeyLevel::Write).await;
    let token = async |projects: Vec<ProjectId>| {
        let made = user(&fixture, Level::Write, Some(projects)).await;
        fixture.broker.authenticate(made.token.expose()).unwrap()
    };
    let (maker, member) = (token(vec![project]).await, token(vec![project]).await);
    let outsider = token(vec![elsewhere]).await;
    make(&fixture, &Credential::local(), "by the user").await;
    make(&fixture, &outsider, "elsewhere").await;
    let made = make(&fixture, &maker, "in the project").await;
    let types = Some(vec!["artifact.created".to_owned()]);
    let request = EventPollRequest { types, ..EventPollRequest::default() };
    let polled: EventsResponse = call(&fixture, &member, request).await;
    let created = polled.events.iter().map(|event| match &event.event {
        Event::ArtifactCreated { artifact_id, .. } => *artifact_id,
        other => panic!("{other:?}"),
    });
    assert_eq!(created.collect::<Vec<_>>(), [made.artifact]);
}

/// Rule: what an agent makes with its user's token belongs to its session and project as well.
#[tokio::test]
async fn what_is_made_with_a_passed_token_belongs_to_the_session() {
    let fixture = start_with(with_echo).await;
    let project = keyed(&fixture, "one", KeyLevel::Write).await;
    let token = user(&fixture, Level::Write, None).await;
    let (session, agent): (SessionId, _) = passed(&fixture, project, &token).await;
    let made = make(&fixture, &agent, "with a passed token").await;
    let shown = info(&fixture, &agent, made.artifact).await;
    assert_eq!((shown.project_id, shown.session_id), (Some(project), Some(session)));
    let member = user(&fixture, Level::Read, Some(vec![project])).await;
    let member = fixture.broker.authenticate(member.token.expose()).unwrap();
    check(&fixture, &member, &made, true, "member").await;
    let own = fixture.broker.authenticate(token.token.expose()).unwrap();
    check(&fixture, &own, &made, true, "the token itself").await;
}

/// Rule: the content of an artifact is its source, and the newest artifact of it that its maker
/// sees: no one learns of another's artifact by it.
#[tokio::test]
async fn a_source_is_the_newest_artifact_that_its_maker_sees() {
    let fixture = start_with(with_echo).await;
    let one = user(&fixture, Level::Write, None).await;
    let one = fixture.broker.authenticate(one.token.expose()).unwrap();
    let other = user(&fixture, Level::Write, None).await;
    let other = fixture.broker.authenticate(other.token.expose()).unwrap();
    let first = make(&fixture, &one, "the same").await;
    let hidden = make(&fixture, &other, "the same").await;
    let again = create(&fixture, &one, first.content).await;
    let source = |artifact_id| SourceInfo {
        role: SourceRole::Content,
        artifact_id,
        content_hash: Some(first.content),
    };
    let sources = async |who, id| info(&fixture, who, id).await.sources;
    assert_eq!(sources(&one, first.artifact).await, [source(None)]);
    assert_eq!(sources(&other, hidden.artifact).await, [source(None)]);
    assert_eq!(sources(&one, again).await, [source(Some(first.artifact))]);
    assert_eq!(info(&fixture, &one, first.artifact).await.derived_ids, [again]);
}
