//! Where things come from, who sees them by that, and identities.

use ringback_proto::ids::{AnnotationId, ArtifactId, BlobHash, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{
    AnnotationRecord, ArtifactRecord, ConnectionRecord, HintRecord, IdentityKey, IdentityRecord,
    JobRecord, JobState, Record, SessionRecord, SessionState, SourceRecord,
};
use ringback_proto::request::{HintKind, SourceRole};
use ringback_store::{
    ArtifactFilter, CommitError, IdentityFilter, NamedIdentity, RowVisibility, SessionFilter,
    VisibleSource, WriteOutcome,
};

use crate::common::{TestStore, artifact, bytes16, job, job_id, owner, project};
use crate::sessions::{changed, new_project, new_workspace, session_id, session_record};

fn art(n: u64) -> ArtifactId {
    ArtifactId::from_random(bytes16(n))
}

fn hash(n: u8) -> BlobHash {
    BlobHash::from_bytes([n; 32])
}

/// The artifact `n` with the content `n`.
fn made(n: u8, of: PrincipalId, session: Option<SessionId>) -> ArtifactRecord {
    ArtifactRecord {
        content_hash: hash(n),
        session,
        tool: Some("midi_to_wav".to_owned()),
        job: Some(job_id(u64::from(n))),
        ..artifact(u64::from(n), of, None)
    }
}

fn create(artifact: ArtifactRecord) -> Record {
    Record::ArtifactCreated(Box::new(artifact))
}

fn uploaded(n: u8, of: PrincipalId, session: Option<SessionId>) -> Record {
    let (project, mime_type) = (None, "a/b".to_owned());
    Record::BlobUploaded { hash: hash(n), owner: of, project, session, mime_type, at: 1 }
}

fn own(of: u64) -> RowVisibility {
    RowVisibility::Owner { owner: owner(of), projects: Vec::new() }
}

/// What the key `of` of session `n` sees.
fn tree(of: u64, n: u64) -> RowVisibility {
    RowVisibility::Tree { owner: owner(of), session: session_id(n) }
}

/// A session with two descendants in a line, and a sibling of it.
fn with_sessions() -> TestStore {
    let test = TestStore::new();
    test.commit(vec![new_project(1), new_workspace(1, 1)]).unwrap();
    for (n, parent) in [(1, None), (2, Some(1)), (3, Some(2)), (4, None)] {
        let parent = parent.map(session_id);
        let record = SessionRecord { parent, ..session_record(n, 1, PrincipalId::Local) };
        test.commit(vec![Record::SessionCreated(Box::new(record))]).unwrap();
    }
    test
}

fn listed(test: &TestStore, visible: &RowVisibility) -> Vec<ArtifactId> {
    let page = test.store.artifacts(visible, ArtifactFilter::default(), None, 100).unwrap();
    page.items.into_iter().map(|artifact| artifact.id).collect()
}

/// Rule: a session's key sees what its session and the descendants made, also of those that were
/// deleted, and nothing of other sessions.
#[test]
fn a_session_sees_what_its_tree_made_and_nothing_of_its_siblings() {
    let test = with_sessions();
    for n in 1..=4_u8 {
        let (of, session) = (owner(10 + u64::from(n)), Some(session_id(u64::from(n))));
        let record = JobRecord { session, ..job(u64::from(n), of, None) };
        test.commit(vec![
            create(made(n, of, session)),
            uploaded(n + 100, of, session),
            Record::JobCreated(Box::new(record)),
        ])
        .unwrap();
    }
    let check = |at: u64, expected: &[u8]| {
        let visible = tree(10 + at, at);
        let ids: Vec<_> = expected.iter().rev().map(|n| art(u64::from(*n))).collect();
        assert_eq!(listed(&test, &visible), ids, "session {at}");
        for n in 1..=4_u8 {
            let is_seen = expected.contains(&n);
            let found = test.store.artifact(art(u64::from(n)), &visible).unwrap();
            assert_eq!(found.is_some(), is_seen, "artifact {n} by session {at}");
            let found = test.store.visible_job(job_id(u64::from(n)), &visible).unwrap();
            assert_eq!(found.is_some(), is_seen, "job {n} by session {at}");
            for content in [n, n + 100] {
                let may_read = test.store.may_read_blob(hash(content), &visible).unwrap();
                assert_eq!(may_read, is_seen, "content {content} by session {at}");
            }
        }
        let jobs = test.store.jobs(&visible, None, None, 100).unwrap().items;
        let jobs: Vec<_> = jobs.into_iter().map(|job| job.id).collect();
        let ids: Vec<_> = expected.iter().rev().map(|n| job_id(u64::from(*n))).collect();
        assert_eq!(jobs, ids);
        let counts = test.store.job_counts(&visible).unwrap();
        assert_eq!(counts.get(JobState::Pending), expected.len() as u64);
        let filter = SessionFilter::default();
        let sessions = test.store.sessions(&visible, filter, None, 100).unwrap().items;
        let sessions: Vec<_> = sessions.into_iter().map(|session| session.id).collect();
        let is_left = |n: &u64| test.store.session(session_id(*n)).unwrap().is_some();
        let expected = expected.iter().rev().map(|n| u64::from(*n)).filter(is_left);
        assert_eq!(sessions, expected.map(session_id).collect::<Vec<_>>(), "sessions of {at}");
    };
    check(1, &[1, 2, 3]);
    check(2, &[2, 3]);
    check(3, &[3]);
    check(4, &[4]);

    // A session in the middle is deleted: what is below it is still seen from above.
    test.commit(vec![changed(2, SessionState::Ended, 5)]).unwrap();
    test.commit(vec![Record::SessionDeleted { id: session_id(2) }]).unwrap();
    check(1, &[1, 2, 3]);
    check(4, &[4]);
    let seen = test.store.artifact(art(3), &tree(99, 2)).unwrap();
    assert_eq!(seen, None, "nothing is below a session that was deleted");
}

#[test]
fn an_artifact_keeps_its_tool_its_job_and_its_session() {
    let test = with_sessions();
    let new = made(1, owner(1), Some(session_id(1)));
    test.commit(vec![create(new.clone())]).unwrap();
    assert_eq!(test.store.artifact(new.id, &own(1)).unwrap(), Some(new));
}

#[test]
fn content_of_several_sessions_is_stored_for_each_and_new_only_once() {
    let test = with_sessions();
    let of = owner(1);
    let outcomes =
        test.commit(vec![uploaded(1, of, None), uploaded(1, of, Some(session_id(3)))]).unwrap();
    let is_new = |outcome: &WriteOutcome| {
        let WriteOutcome::BlobUploaded { is_new, .. } = outcome else { panic!("{outcome:?}") };
        *is_new
    };
    assert_eq!(outcomes.iter().map(is_new).collect::<Vec<_>>(), [true, false]);
    assert!(test.store.may_read_blob(hash(1), &tree(99, 1)).unwrap());
    assert!(!test.store.may_read_blob(hash(1), &tree(99, 4)).unwrap());
}

fn source(of: u64, source: Option<u64>, content: u8, is_hidden: bool) -> Record {
    Record::SourceAdded(SourceRecord {
        artifact_id: art(of),
        source: source.map(art),
        source_hash: hash(content),
        role: SourceRole::Input,
        is_hidden,
    })
}

/// Rule: the artifact of a source is shown to those who see it, and its hash to those who see what
/// was made from it, unless the maker did not see the content itself.
#[test]
fn sources_and_what_was_made_from_them_are_shown_to_those_who_see_them() {
    let test = TestStore::new();
    let shared = |n, of| ArtifactRecord { project: Some(project(1)), ..made(n, owner(of), None) };
    test.commit(vec![
        create(made(1, owner(1), None)),
        create(shared(2, 1)),
        source(2, Some(1), 1, false),
        source(2, Some(1), 1, true),
        source(2, None, 9, false),
        create(made(3, owner(1), None)),
        source(3, Some(2), 2, false),
    ])
    .unwrap();
    let seen = |visible: &RowVisibility| test.store.graph().sources(art(2), visible, 10).unwrap();
    let row = |artifact: Option<u64>, content: Option<u8>| VisibleSource {
        role: SourceRole::Input,
        artifact: artifact.map(art),
        content_hash: content.map(hash),
    };
    assert_eq!(seen(&own(1)), [row(Some(1), Some(1)), row(Some(1), Some(1)), row(None, Some(9))]);
    let member = RowVisibility::Owner { owner: owner(2), projects: vec![project(1)] };
    assert_eq!(seen(&member), [row(None, Some(1)), row(None, None), row(None, Some(9))]);

    let derived = |n, visible: &RowVisibility, limit| {
        test.store.graph().derived(art(n), visible, limit).unwrap()
    };
    assert_eq!(derived(1, &own(1), 10), [art(2)]);
    assert_eq!(derived(2, &own(1), 10), [art(3)]);
    assert_eq!(derived(2, &member, 10), [], "what others made of it is theirs");
    let child = ArtifactRecord { parent_id: Some(art(2)), ..made(4, owner(1), None) };
    test.commit(vec![create(child)]).unwrap();
    assert_eq!(derived(2, &own(1), 10), [art(4), art(3)]);
    assert_eq!(derived(2, &own(1), 1), [art(4)]);
    let missing = test.commit(vec![source(1, Some(77), 1, false)]);
    assert!(matches!(missing, Err(CommitError::NoArtifact { .. })));
}

/// Rule: a reader of the newest annotations gets these, however many there are.
#[test]
fn the_newest_annotations_of_an_artifact_are_the_last_ones() {
    let test = TestStore::new();
    test.commit(vec![create(made(1, owner(1), None))]).unwrap();
    let remark = |n: u64| AnnotationRecord {
        id: AnnotationId::from_random(bytes16(n)),
        artifact_id: art(1),
        message: n.to_string(),
        source: "ada".to_owned(),
        vibe: None,
        created_at: n,
    };
    test.commit((0..1200).map(|n| Record::AnnotationAdded(remark(n))).collect()).unwrap();
    let newest = test.store.graph().newest_annotations(art(1), 3).unwrap();
    assert_eq!(newest, [remark(1199), remark(1198), remark(1197)]);
    assert_eq!(test.store.graph().newest_annotations(art(2), 3).unwrap(), []);
}

#[test]
fn the_newest_artifact_of_some_content_is_one_that_its_reader_sees() {
    let test = with_sessions();
    let same = |n, of: u64, project, session| ArtifactRecord {
        content_hash: hash(1),
        project,
        ..made(n, owner(of), session)
    };
    test.commit(vec![
        create(same(1, 1, None, None)),
        create(same(2, 2, Some(project(1)), None)),
        create(same(3, 3, None, Some(session_id(3)))),
    ])
    .unwrap();
    let newest =
        |visible: &RowVisibility| test.store.graph().newest_of_content(hash(1), visible).unwrap();
    assert_eq!(newest(&RowVisibility::All), Some(art(3)));
    assert_eq!(newest(&own(1)), Some(art(1)));
    assert_eq!(newest(&own(9)), None);
    let member = RowVisibility::Owner { owner: owner(1), projects: vec![project(1)] };
    assert_eq!(newest(&member), Some(art(2)));
    assert_eq!(newest(&tree(9, 1)), Some(art(3)));
    assert_eq!(newest(&tree(9, 4)), None);
}

fn annotate(n: u64, of: u64, message: &str, vibe: Option<&str>) -> Record {
    Record::AnnotationAdded(AnnotationRecord {
        id: AnnotationId::from_random(bytes16(n)),
        artifact_id: art(of),
        message: message.to_owned(),
        source: "agent".to_owned(),
        vibe: vibe.map(str::to_owned),
        created_at: 1,
    })
}

/// Rule: a search finds words of creators, tags, messages and vibes, and only what its reader sees.
#[test]
fn a_search_finds_words_wherever_they_are_and_only_for_those_who_see_them() {
    let test = with_sessions();
    let tagged = |n, of: u64, tag: &str, session| ArtifactRecord {
        tags: vec![tag.to_owned()],
        creator: format!("maker{n}"),
        ..made(n, owner(of), session)
    };
    test.commit(vec![
        create(tagged(1, 1, "warm:pad", None)),
        create(tagged(2, 1, "cold", None)),
        create(tagged(3, 2, "warm", None)),
        create(tagged(4, 3, "x", Some(session_id(2)))),
        annotate(1, 2, "this one is Wärm and round", Some("late night")),
        annotate(2, 2, "warm again", None),
        annotate(3, 4, "canary", None),
    ])
    .unwrap();
    let like = |visible: &RowVisibility, text: &str, tag: Option<&str>, limit| -> Vec<_> {
        let filter = ArtifactFilter { tag, creator: None };
        let found = test.store.graph().artifacts_like(visible, filter, text, 0, limit).unwrap();
        found.into_iter().map(|artifact| artifact.id).collect()
    };
    assert_eq!(like(&own(1), "warm", None, 10), [art(2), art(1)]);
    assert_eq!(like(&own(1), "warm", None, 1), [art(2)]);
    assert_eq!(like(&own(1), "WARM night", None, 10), [art(2)], "in one annotation");
    assert_eq!(like(&own(1), "warm", Some("warm:pad"), 10), [art(1)]);
    assert_eq!(like(&own(1), "maker1", None, 10), [art(1)]);
    assert_eq!(like(&own(1), "maker1\0warm", None, 10), [art(1)], "two words");
    assert_eq!(like(&own(2), "warm", None, 10), [art(3)]);
    assert_eq!(like(&RowVisibility::All, "warm", None, 10), [art(3), art(2), art(1)]);
    assert_eq!(like(&own(1), "canary", None, 10), []);
    assert_eq!(like(&tree(9, 1), "canary", None, 10), [art(4)]);
    assert_eq!(like(&tree(9, 4), "canary", None, 10), []);
    // Operators, columns and keys of others are words like all others.
    for hostile in ["warm\" OR keys : e OR \"", "keys:e", "NOT", "o* OR canary", "\"", "e", "a\0"] {
        assert_eq!(like(&own(9), hostile, None, 10), [], "{hostile}");
    }
    let late = test.store.graph().artifacts_like(&own(1), ArtifactFilter::default(), "warm", 2, 10);
    assert_eq!(late.unwrap(), []);
}

fn key(of: u64, id: &str) -> IdentityKey {
    IdentityKey { owner: owner(of), id: id.to_owned() }
}

fn hint(value: &str, confidence: f64) -> HintRecord {
    HintRecord { kind: HintKind::MidiName, value: value.to_owned(), confidence }
}

fn identity(of: u64, id: &str, hints: Vec<HintRecord>) -> IdentityRecord {
    IdentityRecord {
        key: key(of, id),
        project: None,
        session: None,
        name: format!("The {id}"),
        hints,
        tags: Vec::new(),
        created_at: 7,
    }
}

fn found(test: &TestStore, visible: &RowVisibility, filter: &IdentityFilter) -> Vec<String> {
    let page = test.store.graph().identities(visible, filter, None, 100).unwrap();
    page.items.into_iter().map(|identity| identity.key.id).collect()
}

/// Rule: an id is a name of its owner; where another's identity has it too, it means the reader's
/// own.
#[test]
fn an_id_means_the_readers_own_identity_and_else_the_only_one_it_sees() {
    let test = TestStore::new();
    let shared = |of| IdentityRecord { project: Some(project(1)), ..identity(of, "synth", vec![]) };
    let member = RowVisibility::Owner { owner: owner(9), projects: vec![project(1)] };
    let meaning = |of: u64| match test.store.graph().identity("synth", &owner(of), &member).unwrap()
    {
        NamedIdentity::Known(identity) => Some(identity.key.owner),
        NamedIdentity::Unknown => None,
        NamedIdentity::Ambiguous => panic!("ambiguous"),
    };
    test.commit(vec![Record::IdentityBound(identity(3, "synth", vec![]))]).unwrap();
    assert_eq!(meaning(9), None, "it is in no project");
    test.commit(vec![Record::IdentityBound(shared(1))]).unwrap();
    assert_eq!(meaning(9), Some(owner(1)));
    test.commit(vec![Record::IdentityBound(shared(2))]).unwrap();
    let several = test.store.graph().identity("synth", &owner(9), &member).unwrap();
    assert_eq!(several, NamedIdentity::Ambiguous);
    test.commit(vec![Record::IdentityBound(shared(9))]).unwrap();
    assert_eq!(meaning(9), Some(owner(9)));
    assert_eq!(found(&test, &member, &IdentityFilter::default()), ["synth"; 3]);
    assert_eq!(found(&test, &own(3), &IdentityFilter::default()), ["synth"]);
}

#[test]
fn identities_are_found_by_name_tag_and_hints() {
    let test = TestStore::new();
    let tag = |id: &str, namespace: &str, value: &str| Record::IdentityTagged {
        identity: key(1, id),
        namespace: namespace.to_owned(),
        value: value.to_owned(),
        at: 1,
    };
    test.commit(vec![
        Record::IdentityBound(identity(1, "Moog", vec![hint("a", 0.5)])),
        Record::IdentityBound(identity(1, "Roland", vec![hint("a", 0.1), hint("b", 1.0)])),
        Record::IdentityBound(identity(2, "Moog", vec![hint("a", 1.0)])),
        tag("Moog", "role", "bass"),
        tag("Roland", "role", "lead"),
        tag("Roland", "room", "bass"),
    ])
    .unwrap();
    let filter = IdentityFilter::default();
    let part = |text: &str| IdentityFilter { name: Some(text.to_owned()), ..filter.clone() };
    assert_eq!(found(&test, &own(1), &part("mOO")), ["Moog"]);
    assert_eq!(found(&test, &own(1), &part("the")), ["Roland", "Moog"]);
    assert_eq!(found(&test, &own(1), &part("%")), [""; 0]);
    let tagged = |namespace: Option<&str>, value: Option<&str>| IdentityFilter {
        tag_namespace: namespace.map(str::to_owned),
        tag_value: value.map(str::to_owned),
        ..filter.clone()
    };
    assert_eq!(found(&test, &own(1), &tagged(Some("role"), Some("bass"))), ["Moog"]);
    assert_eq!(found(&test, &own(1), &tagged(Some("role"), None)), ["Roland", "Moog"]);
    assert_eq!(found(&test, &own(1), &tagged(None, Some("bass"))), ["Roland", "Moog"]);
    assert_eq!(found(&test, &own(1), &tagged(Some("room"), Some("lead"))), [""; 0]);
    let hinted = |values: &[&str]| IdentityFilter {
        hints: values.iter().map(|it| (HintKind::MidiName, (*it).to_owned())).collect(),
        ..filter.clone()
    };
    assert_eq!(found(&test, &own(1), &hinted(&["a"])), ["Roland", "Moog"]);
    assert_eq!(found(&test, &own(1), &hinted(&["b", "a"])), ["Roland", "Moog"]);
    assert_eq!(found(&test, &own(1), &hinted(&["b"])), ["Roland"]);
    assert_eq!(found(&test, &own(1), &hinted(&["c"])), [""; 0]);

    // Page by page.
    let graph = test.store.graph();
    let first = graph.identities(&own(1), &filter, None, 1).unwrap();
    assert_eq!(first.items[0].key.id, "Roland");
    let second = graph.identities(&own(1), &filter, first.next_cursor.as_deref(), 1).unwrap();
    assert_eq!((second.items[0].key.id.as_str(), second.next_cursor), ("Moog", None));

    // Bound again: a new name, a new confidence, one more hint.
    let again = IdentityRecord {
        name: "Sub 37".to_owned(),
        ..identity(1, "Moog", vec![hint("a", 0.9), hint("z", 0.2)])
    };
    test.commit(vec![Record::IdentityBound(again)]).unwrap();
    let moog = &graph.identities(&own(1), &part("sub"), None, 10).unwrap().items[0];
    assert_eq!(moog.hints, [hint("a", 0.9), hint("z", 0.2)]);
    assert_eq!(moog.tags, [("role".to_owned(), "bass".to_owned())]);
}

fn connect(from: &str, to: &str, at: u64) -> ConnectionRecord {
    ConnectionRecord {
        owner: owner(1),
        project: None,
        session: None,
        from: key(1, from),
        from_port: "out".to_owned(),
        to: key(1, to),
        to_port: "in".to_owned(),
        transport: None,
        created_at: at,
    }
}

#[test]
fn a_repeated_connection_is_the_same_and_circles_are_not_followed() {
    let test = TestStore::new();
    for id in ["a", "b"] {
        test.commit(vec![Record::IdentityBound(identity(1, id, vec![]))]).unwrap();
    }
    for at in [5, 6] {
        for new in [connect("a", "b", at), connect("b", "a", at), connect("a", "a", at)] {
            test.commit(vec![Record::IdentitiesConnected(new)]).unwrap();
        }
    }
    let graph = test.store.graph();
    assert_eq!(graph.connection(&connect("a", "b", 9)).unwrap(), Some(connect("a", "b", 5)));
    let by_wire = ConnectionRecord { transport: Some("din".to_owned()), ..connect("a", "b", 7) };
    assert_eq!(graph.connection(&by_wire).unwrap(), None);
    test.commit(vec![Record::IdentitiesConnected(by_wire.clone())]).unwrap();
    let from = graph.connections_from(&key(1, "a"), &own(1), 10).unwrap();
    assert_eq!(from, [by_wire, connect("a", "a", 5), connect("a", "b", 5)]);
    assert_eq!(graph.connections_from(&key(1, "a"), &own(2), 10).unwrap(), []);
    let missing = test.commit(vec![Record::IdentitiesConnected(connect("a", "nothing", 1))]);
    assert!(matches!(missing, Err(CommitError::NoIdentity { .. })));
}

/// Rule: identities, hints and tags are bounded, and a refused record changes nothing.
#[test]
fn identities_hints_and_tags_are_limited() {
    let test = TestStore::new();
    let many = |n: u32| (0..n).map(|n| hint(&n.to_string(), 1.0)).collect::<Vec<_>>();
    let refused = |records| match test.commit(records) {
        Err(CommitError::TooMany { max, .. }) => max,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(vec![Record::IdentityBound(identity(1, "x", many(65)))]), 64);
    test.commit(vec![Record::IdentityBound(identity(1, "x", many(64)))]).unwrap();
    test.commit(vec![Record::IdentityBound(identity(1, "x", many(64)))]).unwrap();
    assert_eq!(refused(vec![Record::IdentityBound(identity(1, "x", vec![hint("y", 1.0)]))]), 64);
    let tag = |n: u32| Record::IdentityTagged {
        identity: key(1, "x"),
        namespace: "n".to_owned(),
        value: n.to_string(),
        at: 1,
    };
    test.commit((0..64).map(tag).collect()).unwrap();
    test.commit(vec![tag(3)]).unwrap();
    assert_eq!(refused(vec![tag(64)]), 64);
    let all = (0..1000).map(|n| Record::IdentityBound(identity(2, &n.to_string(), vec![])));
    test.commit(all.collect()).unwrap();
    assert_eq!(refused(vec![Record::IdentityBound(identity(2, "more", vec![]))]), 1000);
    test.commit(vec![Record::IdentityBound(identity(2, "3", vec![]))]).unwrap();
}
