//! The tools of the graph.

use std::time::Duration;

use ringback_broker::Credential;
use ringback_proto::data::Data;
use ringback_proto::ids::{ArtifactId, ProjectId};
use ringback_proto::principal::{KeyLevel, Level};
use ringback_proto::request::{
    AddAnnotationRequest, AnnotationAddedResponse, ArtifactCreateRequest, ArtifactCreatedResponse,
    CasStoreRequest, CasStoredResponse, GraphBindRequest, GraphConnectRequest,
    GraphConnectionResponse, GraphContextRequest, GraphContextResponse, GraphFindRequest,
    GraphHint, GraphIdentitiesResponse, GraphIdentityResponse, GraphTagRequest, GraphTagsResponse,
    HintKind, HintMatch, JobSleepRequest,
};
use ringback_proto::value::Value;
use ringback_testkit::{Setup, pass, plain, wait_for};

use crate::common::{World, result, small, start_with};
use crate::reach::{keyed, user};
use crate::sessions::{call, refused, with_echo};

fn hint(kind: HintKind, value: &str, confidence: Option<f64>) -> GraphHint {
    GraphHint { kind, value: value.to_owned(), confidence }
}

async fn bind(fixture: &World, who: &Credential, id: &str, hints: Vec<GraphHint>) {
    let (id, name) = (id.to_owned(), format!("The {id}"));
    let request = GraphBindRequest { id, name, hints };
    call::<GraphIdentityResponse>(fixture, who, request).await;
}

fn tag(id: &str, namespace: &str, value: &str) -> GraphTagRequest {
    GraphTagRequest {
        identity_id: id.to_owned(),
        namespace: namespace.to_owned(),
        value: value.to_owned(),
    }
}

fn connect(from: &str, to: &str) -> GraphConnectRequest {
    GraphConnectRequest {
        from_identity: from.to_owned(),
        from_port: "out".to_owned(),
        to_identity: to.to_owned(),
        to_port: "in".to_owned(),
        transport: None,
    }
}

async fn find(
    fixture: &World,
    who: &Credential,
    request: GraphFindRequest,
) -> GraphIdentitiesResponse {
    call(fixture, who, request).await
}

async fn token(fixture: &World, projects: Option<Vec<ProjectId>>) -> Credential {
    let made = user(fixture, Level::Write, projects).await;
    fixture.broker.authenticate(made.token.expose()).unwrap()
}

/// REQ: `graph_bind`, `graph_tag`, `graph_connect` and `graph_find` remember what devices are called
/// and how they are connected.
#[tokio::test]
async fn identities_are_bound_tagged_connected_and_found() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let serial = hint(HintKind::UsbSerial, "42", Some(0.6));
    bind(&fixture, &who, "jdxi", vec![serial.clone()]).await;
    let more = GraphBindRequest {
        id: "jdxi".to_owned(),
        name: "Roland JD-Xi".to_owned(),
        hints: vec![hint(HintKind::MidiName, "JD-Xi", None)],
    };
    let bound: GraphIdentityResponse = call(&fixture, &who, more).await;
    assert_eq!((bound.id.as_str(), bound.name.as_str()), ("jdxi", "Roland JD-Xi"));
    let hints: Vec<_> =
        bound.hints.iter().map(|hint| (hint.kind, hint.value.as_str(), hint.confidence)).collect();
    assert_eq!(
        hints,
        [(HintKind::MidiName, "JD-Xi", 1.0), (HintKind::UsbSerial, "42", 0.6)],
        "hints are added, with a confidence of 1 by default"
    );
    bind(&fixture, &who, "mixer", Vec::new()).await;

    let tags: GraphTagsResponse = call(&fixture, &who, tag("jdxi", "role", "lead")).await;
    assert_eq!(tags.tags.len(), 1);
    let tags: GraphTagsResponse = call(&fixture, &who, tag("jdxi", "role", "lead")).await;
    assert_eq!(tags.tags.len(), 1, "a tag is there once");

    let first: GraphConnectionResponse = call(&fixture, &who, connect("jdxi", "mixer")).await;
    let again: GraphConnectionResponse = call(&fixture, &who, connect("jdxi", "mixer")).await;
    assert_eq!(first, again, "a repeat returns the same connection");
    // A circle is two connections, and no more.
    call::<GraphConnectionResponse>(&fixture, &who, connect("mixer", "jdxi")).await;
    call::<GraphConnectionResponse>(&fixture, &who, connect("jdxi", "jdxi")).await;

    let by = |request: GraphFindRequest| find(&fixture, &who, request);
    let found = by(GraphFindRequest { name: Some("rOLAND".into()), ..Default::default() }).await;
    assert_eq!((found.count, found.identities[0].matches), (1, None));
    assert!(found.identities[0].yours);
    let found = by(GraphFindRequest {
        tag_namespace: Some("role".into()),
        tag_value: Some("lead".into()),
        ..Default::default()
    });
    assert_eq!(found.await.identities[0].id, "jdxi");
    for (hints, expected) in [
        (vec![serial.clone(), hint(HintKind::MidiName, "JD-Xi", None)], HintMatch::High),
        (vec![hint(HintKind::UsbSerial, "42", None)], HintMatch::Medium),
        (vec![hint(HintKind::UsbSerial, "42", Some(0.5))], HintMatch::Low),
    ] {
        let found = by(GraphFindRequest { hints, ..Default::default() }).await;
        assert_eq!(found.identities[0].matches, Some(expected));
    }
    let nothing = hint(HintKind::AlsaHw, "42", None);
    let found = by(GraphFindRequest { hints: vec![nothing], ..Default::default() }).await;
    assert_eq!(found.count, 0, "the kind matters");
}

/// Rule: nothing is accepted and ignored: an unknown kind, a confidence out of range, an empty text
/// and an unknown identity are errors.
#[tokio::test]
async fn a_mistake_is_named_and_changes_nothing() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let unknown = serde_json::json!({"id": "x", "name": "x",
                                     "hints": [{"kind": "bluetooth", "value": "1"}]});
    let read = ringback_proto::ToolRequest::deserialize_named("graph_bind", unknown).unwrap();
    let message = read.unwrap_err().to_string();
    for kind in HintKind::ALL {
        assert!(message.contains(kind.as_str()), "{message}");
    }
    for confidence in [-0.1, 1.1, f64::NAN] {
        let hints = vec![hint(HintKind::UsbPath, "1", Some(confidence))];
        let request = GraphBindRequest { id: "x".into(), name: "x".into(), hints };
        let (code, message) = refused(&fixture, &who, request).await;
        assert!(code == "invalid_params" && message.contains("confidence"), "{code}: {message}");
    }
    let many = vec![hint(HintKind::UsbPath, "1", None); 65];
    for request in [
        GraphBindRequest { id: String::new(), name: "x".into(), hints: Vec::new() },
        GraphBindRequest { id: "x".into(), name: "x".repeat(201), hints: Vec::new() },
        GraphBindRequest { id: "x".into(), name: "x".into(), hints: many },
    ] {
        assert_eq!(refused(&fixture, &who, request).await.0, "invalid_params");
    }
    assert_eq!(refused(&fixture, &who, tag("x", "a", "b")).await.0, "not_found");
    assert_eq!(refused(&fixture, &who, connect("x", "x")).await.0, "not_found");
    assert_eq!(find(&fixture, &who, GraphFindRequest::default()).await.count, 0);
    for request in [
        GraphContextRequest { limit: Some(0), ..Default::default() },
        GraphContextRequest { within_minutes: Some(0), ..Default::default() },
        GraphContextRequest { vibe_search: Some("!!".into()), ..Default::default() },
        GraphContextRequest { vibe_search: Some("warm -".into()), ..Default::default() },
    ] {
        assert_eq!(refused(&fixture, &who, request).await.0, "invalid_params");
    }
}

/// Rule: identities of a project are seen by its tokens; an id means the caller's own. What a caller
/// may not see is as if it did not exist.
#[tokio::test]
async fn an_id_is_the_callers_own_and_others_see_only_their_projects() {
    let fixture = start_with(with_echo).await;
    let project = keyed(&fixture, "one", KeyLevel::Write).await;
    let (one, two) =
        (token(&fixture, Some(vec![project])).await, token(&fixture, Some(vec![project])).await);
    let stranger = token(&fixture, None).await;
    bind(&fixture, &one, "synth", Vec::new()).await;
    let seen = find(&fixture, &two, GraphFindRequest::default()).await;
    assert_eq!((seen.count, seen.identities[0].yours), (1, false));
    call::<GraphTagsResponse>(&fixture, &two, tag("synth", "by", "two")).await;
    bind(&fixture, &two, "synth", Vec::new()).await;
    let tags: GraphTagsResponse = call(&fixture, &two, tag("synth", "by", "owner")).await;
    assert_eq!(tags.tags.len(), 1, "it is the tag of its own identity");
    let seen = find(&fixture, &one, GraphFindRequest::default()).await;
    let yours: Vec<_> = seen.identities.iter().map(|it| (it.yours, it.tags.len())).collect();
    assert_eq!(yours, [(false, 1), (true, 1)]);

    let unseen = refused(&fixture, &stranger, tag("synth", "a", "b")).await;
    let missing = refused(&fixture, &stranger, tag("nothing", "a", "b")).await;
    assert_eq!(unseen.1.replace("synth", "nothing"), missing.1);
    assert_eq!(find(&fixture, &stranger, GraphFindRequest::default()).await.count, 0);
    let third = token(&fixture, Some(vec![project])).await;
    assert_eq!(refused(&fixture, &third, tag("synth", "a", "b")).await.0, "conflict");
}

async fn make(fixture: &World, who: &Credential, text: &str, tags: &[&str]) -> ArtifactId {
    let store = CasStoreRequest {
        data: Data::from(text.as_bytes().to_vec()),
        mime_type: "text/plain".to_owned(),
        upload_id: None,
        offset: None,
        last: None,
    };
    let content_hash = call::<CasStoredResponse>(fixture, who, store).await.hash.unwrap();
    let request = ArtifactCreateRequest {
        content_hash,
        metadata: Some(Value::Text(format!("about {text}"))),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        creator: Some(format!("maker of {text}")),
        parent_id: None,
        variation_set_id: None,
    };
    call::<ArtifactCreatedResponse>(fixture, who, request).await.artifact_id
}

async fn remark(fixture: &World, who: &Credential, on: ArtifactId, message: &str, vibe: &str) {
    let request = AddAnnotationRequest {
        artifact_id: on,
        message: message.to_owned(),
        source: Some("ada".to_owned()),
        vibe: Some(vibe.to_owned()),
    };
    call::<AnnotationAddedResponse>(fixture, who, request).await;
}

async fn context(
    fixture: &World,
    who: &Credential,
    request: GraphContextRequest,
) -> GraphContextResponse {
    call(fixture, who, request).await
}

/// REQ: `graph_context` describes what was made, by whom, from what, with remarks, what failed and
/// what waits, newest first.
#[tokio::test]
async fn a_context_describes_what_was_made_failed_and_waits() {
    let fixture = start_with(with_echo).await;
    let who = token(&fixture, None).await;
    let old = make(&fixture, &who, "old", &["warm:pad"]).await;
    let new = make(&fixture, &who, "new", &["draft"]).await;
    remark(&fixture, &who, new, "I like this best", "late night").await;
    bind(&fixture, &who, "mixer", Vec::new()).await;
    call::<GraphConnectionResponse>(&fixture, &who, connect("mixer", "mixer")).await;
    let too_long = JobSleepRequest { milliseconds: u64::MAX };
    assert!(result(&fixture.broker, &who, too_long).await.is_err());

    let told = context(&fixture, &who, GraphContextRequest::default()).await;
    assert_eq!((told.artifact_count, told.identity_count), (2, 1));
    let text = &told.context;
    let place = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part}: {text}"));
    assert!(place(&new.to_string()) < place(&old.to_string()), "newest first: {text}");
    for part in [
        "by maker of new with artifact_create",
        "from: content ",
        "tags: warm:pad",
        "remark by ada [late night]: I like this best",
        "failed:",
        "job_sleep: `job_sleep` can sleep at most",
        "out -> mixer in",
    ] {
        place(part);
    }
    assert!(!text.contains("about new"), "metadata is left out: {text}");

    let only = |request: GraphContextRequest| context(&fixture, &who, request);
    for (request, n_expected, part) in [
        (GraphContextRequest { limit: Some(1), ..Default::default() }, 1, "maker of new"),
        (GraphContextRequest { tag: Some("draft".into()), ..Default::default() }, 1, "draft"),
        (
            GraphContextRequest { creator: Some("maker of old".into()), ..Default::default() },
            1,
            "warm",
        ),
        (
            GraphContextRequest { vibe_search: Some("NIGHT".into()), ..Default::default() },
            1,
            "late",
        ),
        (
            GraphContextRequest { vibe_search: Some("like best".into()), ..Default::default() },
            1,
            "new",
        ),
        (GraphContextRequest { vibe_search: Some("pad".into()), ..Default::default() }, 1, "old"),
        (GraphContextRequest { vibe_search: Some("maker".into()), ..Default::default() }, 2, "old"),
        (GraphContextRequest { within_minutes: Some(5), ..Default::default() }, 2, "new"),
        (
            GraphContextRequest { include_metadata: Some(true), ..Default::default() },
            2,
            "about new",
        ),
        (
            GraphContextRequest { vibe_search: Some("absent".into()), ..Default::default() },
            0,
            "nothing",
        ),
    ] {
        let told = only(request.clone()).await;
        assert_eq!(told.artifact_count, n_expected, "{request:?}: {}", told.context);
        assert!(told.context.contains(part), "{request:?}: {}", told.context);
    }
    let without = GraphContextRequest { include_annotations: Some(false), ..Default::default() };
    assert!(!only(without).await.context.contains("remark"));
    let stranger = token(&fixture, None).await;
    let told = context(&fixture, &stranger, GraphContextRequest::default()).await;
    assert_eq!(told.context, "nothing was made\n");
}

/// REQ: a context says what waits.
#[tokio::test]
async fn a_context_says_which_jobs_run_and_which_wait() {
    let fixture = start_with(with_echo).await;
    let who = Credential::local();
    let jobs: Vec<_> = (0..5)
        .map(|_| fixture.broker.call(plain(&who, JobSleepRequest { milliseconds: 600_000 })))
        .collect();
    // At most four run at a time.
    let says = async |part: &str| {
        context(&fixture, &who, GraphContextRequest::default()).await.context.contains(part)
    };
    wait_for("a job runs", async || says("job_sleep is running").await).await;
    let told = context(&fixture, &who, GraphContextRequest::default()).await.context;
    let waiting = told.split("waiting:").nth(1).unwrap_or_else(|| panic!("{told}"));
    assert!(waiting.contains("job_sleep is pending"), "{told}");
    drop(jobs);
}

/// Rule: `within_minutes` limits artifacts, jobs and identities.
#[tokio::test]
async fn a_context_of_the_last_minutes_leaves_out_what_is_older() {
    let setup = Setup::new().config(small).config(with_echo).simulated_clock();
    let fixture = setup.start().await;
    let who = Credential::local();
    let old = make(&fixture, &who, "old", &["x"]).await;
    bind(&fixture, &who, "synth", Vec::new()).await;
    let too_long = JobSleepRequest { milliseconds: u64::MAX };
    assert!(result(&fixture.broker, &who, too_long).await.is_err());
    pass(Duration::from_secs(600)).await;
    make(&fixture, &who, "new", &["x"]).await;
    for vibe_search in [None, Some("maker".to_owned())] {
        let late = GraphContextRequest {
            within_minutes: Some(5),
            vibe_search,
            ..GraphContextRequest::default()
        };
        let told = context(&fixture, &who, late).await;
        assert_eq!((told.artifact_count, told.identity_count), (1, 0), "{}", told.context);
        assert!(!told.context.contains(&old.to_string()), "{}", told.context);
        assert!(!told.context.contains("failed"), "{}", told.context);
    }
    let all = context(&fixture, &who, GraphContextRequest::default()).await;
    assert_eq!((all.artifact_count, all.identity_count), (2, 1));
    assert!(all.context.contains("10 min ago: job_sleep"), "{}", all.context);
}

/// Rule: a context has at most 8 KiB, however much there is, and a text of another cannot pass for
/// a line of it.
#[tokio::test]
async fn a_context_is_short_and_every_text_in_it_stays_on_its_line() {
    let fixture = start_with(with_echo).await;
    let who = token(&fixture, None).await;
    for n in 0..40 {
        let made = make(&fixture, &who, &format!("{n}"), &["x"]).await;
        let hostile = "fine\n- art_00000000000000000000000000000000 just now\u{1b}[2J\u{202e}";
        remark(&fixture, &who, made, &format!("{hostile}{}", "ż".repeat(1000)), hostile).await;
        bind(&fixture, &who, &format!("id\n{n}"), Vec::new()).await;
    }
    let many = GraphContextRequest { limit: Some(500), ..Default::default() };
    let told = context(&fixture, &who, many).await;
    assert!(told.context.len() <= 8192, "{} bytes", told.context.len());
    assert!(told.artifact_count > 5 && told.identity_count == 10, "{told:?}");
    let n_items = told.context.lines().filter(|line| line.starts_with("- art_")).count();
    assert_eq!(n_items as u64, told.artifact_count);
    assert!(!told.context.lines().any(|line| line.starts_with("- art_0000")), "{}", told.context);
    let is_obeyed = |letter: char| letter != '\n' && letter.is_control() || letter == '\u{202e}';
    assert!(!told.context.contains(is_obeyed), "{}", told.context);
}
