//! `graph_query`: who sees what, whose turn it is, and how it stops.

use std::collections::BTreeSet;

use ringback_broker::Credential;
use ringback_proto::ToolResponse;
use ringback_proto::data::Data;
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::Level;
use ringback_proto::request::*;
use ringback_proto::value::Value;

use crate::common::{World, result, start};
use crate::sessions::named;

/// Ends only when its time is up.
const ENDLESS: &str =
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c";

fn query(sql: &str) -> GraphQueryRequest {
    GraphQueryRequest { query: sql.to_owned(), variables: None, limit: Some(1000) }
}

async fn ask(world: &World, who: &Credential, sql: &str) -> GraphQueryResponse {
    match result(&world.broker, who, query(sql)).await.unwrap() {
        ToolResponse::GraphQueryResult(answer) => answer,
        other => panic!("{other:?}"),
    }
}

/// Returns the only column of a query.
async fn column(world: &World, who: &Credential, sql: &str) -> BTreeSet<String> {
    let answer = ask(world, who, sql).await;
    assert!(!answer.truncated);
    let text = |row: Value| match row {
        Value::Map(entries) => match &entries[0].1 {
            Value::Text(text) => text.clone(),
            other => format!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    answer.results.into_iter().map(text).collect()
}

async fn token(world: &World, scope: Level, projects: Option<Vec<ProjectId>>) -> Credential {
    let name = "query".to_owned();
    let request = TokenCreateRequest { name, scope, projects, expires_in: None };
    match result(&world.broker, &Credential::local(), request).await.unwrap() {
        ToolResponse::TokenCreated(created) => {
            world.broker.authenticate(created.token.expose()).unwrap()
        }
        other => panic!("{other:?}"),
    }
}

async fn project(world: &World, name: &str) -> ProjectId {
    match result(&world.broker, &Credential::local(), named(name)).await.unwrap() {
        ToolResponse::Project(project) => project.project_id,
        other => panic!("{other:?}"),
    }
}

/// Makes an artifact with a remark, and a job.
async fn make(world: &World, who: &Credential, word: &str) {
    let store = CasStoreRequest {
        data: Data::from(word.as_bytes().to_vec()),
        mime_type: "text/plain".to_owned(),
        upload_id: None,
        offset: None,
        last: None,
    };
    let stored = match result(&world.broker, who, store).await.unwrap() {
        ToolResponse::CasStored(stored) => stored,
        other => panic!("{other:?}"),
    };
    let create = ArtifactCreateRequest {
        content_hash: stored.hash.unwrap(),
        metadata: Some(Value::Map(vec![("word".to_owned(), Value::Text(word.to_owned()))])),
        tags: vec![word.to_owned(), "type:text".to_owned()],
        creator: Some(word.to_owned()),
        parent_id: None,
        variation_set_id: None,
    };
    let created = match result(&world.broker, who, create).await.unwrap() {
        ToolResponse::ArtifactCreated(created) => created,
        other => panic!("{other:?}"),
    };
    let remark = AddAnnotationRequest {
        artifact_id: created.artifact_id,
        message: word.to_owned(),
        source: None,
        vibe: Some(word.to_owned()),
    };
    result(&world.broker, who, remark).await.unwrap();
    let sleep = JobSleepRequest { milliseconds: 0 };
    result(&world.broker, who, sleep).await.unwrap();
}

/// Rule: a view shows what the list tool shows, for every kind of principal.
#[tokio::test]
async fn each_view_shows_a_principal_what_the_list_tools_show() {
    let world = start().await;
    let (one, two) = (project(&world, "one").await, project(&world, "two").await);
    let principals = [
        Credential::local(),
        token(&world, Level::Write, None).await,
        token(&world, Level::Write, None).await,
        token(&world, Level::Write, Some(vec![one])).await,
        token(&world, Level::Write, Some(vec![one])).await,
        token(&world, Level::Write, Some(vec![two])).await,
        token(&world, Level::Write, Some(vec![one, two])).await,
        token(&world, Level::Admin, None).await,
    ];
    for (number, who) in principals.iter().enumerate() {
        make(&world, who, &format!("word{number}")).await;
    }
    let mut seen = BTreeSet::new();
    for who in &principals {
        let list = ArtifactListRequest { limit: Some(500), ..ArtifactListRequest::default() };
        let listed = match result(&world.broker, who, list).await.unwrap() {
            ToolResponse::ArtifactList(listed) => listed.artifacts,
            other => panic!("{other:?}"),
        };
        let ids: BTreeSet<String> = listed.iter().map(|it| it.id.to_string()).collect();
        assert_eq!(column(&world, who, "SELECT id FROM artifacts").await, ids);
        let sql = "SELECT DISTINCT artifact_id FROM annotations";
        assert_eq!(column(&world, who, sql).await, ids);
        let tags: BTreeSet<String> = listed.iter().flat_map(|it| it.tags.clone()).collect();
        assert_eq!(column(&world, who, "SELECT DISTINCT tag FROM artifact_tags").await, tags);
        let words: BTreeSet<String> = listed.iter().map(|it| it.creator.clone()).collect();
        let sql = "SELECT metadata ->> '$.word' AS word FROM artifacts";
        assert_eq!(column(&world, who, sql).await, words);
        let jobs = match result(&world.broker, who, JobListRequest::default()).await.unwrap() {
            ToolResponse::JobList(listed) => listed.jobs,
            other => panic!("{other:?}"),
        };
        let jobs: BTreeSet<String> = jobs.iter().map(|job| job.job_id.to_string()).collect();
        assert_eq!(column(&world, who, "SELECT id FROM jobs").await, jobs);
        seen.insert(ids);
    }
    assert!(seen.len() >= 4, "principals should see different things: {seen:?}");
}

/// Rule: a principal has one query at a time; the next waits, and is busy after five seconds.
#[tokio::test]
async fn a_principal_has_one_query_at_a_time_and_others_do_not_wait_for_it() {
    let world = start().await;
    let (first, second) =
        (token(&world, Level::Read, None).await, token(&world, Level::Read, None).await);
    let broker = &world.broker;
    let crowd: Vec<_> = (0..12).map(|_| result(broker, &first, query(ENDLESS))).collect();
    let other = async { result(broker, &second, query("SELECT 1 AS one")).await };
    let (crowd, other) = tokio::join!(futures_util::future::join_all(crowd), other);
    assert!(other.is_ok(), "{other:?}");
    let codes: Vec<String> = crowd.into_iter().map(|ended| ended.unwrap_err().code).collect();
    let n = |code: &str| codes.iter().filter(|it| *it == code).count();
    // Each takes a second, so that about five have their turn.
    assert!(n("timeout") >= 2 && n("busy") >= 4, "{codes:?}");
    assert_eq!(n("timeout") + n("busy"), 12, "{codes:?}");
}

/// Rule: an error names the field, and its kind says what to do.
#[tokio::test]
async fn an_error_names_the_field_that_is_wrong() {
    let world = start().await;
    let local = Credential::local();
    let long = format!("SELECT '{}' AS x", "x".repeat(20_000));
    for (request, code, part) in [
        (query("SELECT idd FROM artifacts"), "invalid_params", "perhaps `id`"),
        (query("DROP TABLE artifacts"), "invalid_params", "SELECT"),
        (query(&long), "too_large", "16384"),
        (
            GraphQueryRequest { limit: Some(1001), ..query("SELECT 1 AS x") },
            "invalid_params",
            "limit",
        ),
        (query("SELECT :x AS x"), "invalid_params", "variables"),
    ] {
        let error = result(&world.broker, &local, request).await.unwrap_err();
        assert_eq!(error.code, code, "{error:?}");
        assert!(error.message.contains(part), "{error:?}");
    }
}
