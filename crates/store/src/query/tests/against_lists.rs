//! Each view against the reads behind the list tools, for random rows and readers.

use std::sync::mpsc::channel;

use bytes::Bytes;
use ringback_proto::ids::{AnnotationId, ArtifactId, BlobHash, JobId, WorkspaceId};
use ringback_proto::principal::KeyLevel;
use ringback_proto::record::{
    AnnotationRecord, ArtifactRecord, ConnectionRecord, HintRecord, IdentityKey, IdentityRecord,
    JobRecord, JobState, ProjectRecord, Record, SessionChoice, SessionRecord, SessionState,
    SourceRecord, SpendingRecord, WorkspaceRecord,
};
use ringback_proto::request::{HintKind, ProjectLimits, SourceRole};

use super::*;
use crate::{ArtifactFilter, IdentityFilter, SessionFilter, Store};

const PROJECTS: usize = 3;
const SESSIONS: usize = 6;
const ROWS: usize = 25;
/// More than there is of anything.
const ALL: usize = 400;

fn bytes(kind: usize, number: usize) -> [u8; 16] {
    let mut bytes = [u8::try_from(kind).unwrap(); 16];
    bytes[15] = u8::try_from(number).unwrap();
    bytes
}

fn project(number: usize) -> ProjectId {
    ProjectId::from_random(bytes(1, number))
}

fn session(number: usize) -> SessionId {
    SessionId::from_random(bytes(2, number))
}

fn art(number: usize) -> ArtifactId {
    ArtifactId::from_random(bytes(3, number))
}

fn principal(number: usize) -> PrincipalId {
    match number {
        0 => PrincipalId::Local,
        _ => PrincipalId::Token(TokenId::from_random(bytes(4, number))),
    }
}

/// Who makes a row, and where.
struct Origin {
    owner: PrincipalId,
    project: Option<ProjectId>,
    session: Option<SessionId>,
}

impl Random {
    fn origin(&mut self) -> Origin {
        // The owners after the third are keys of sessions.
        Origin {
            owner: principal(self.below(3 + SESSIONS)),
            project: (self.below(2) == 0).then(|| project(self.below(PROJECTS))),
            session: (self.below(2) == 0).then(|| session(self.below(SESSIONS))),
        }
    }
}

fn places(random: &mut Random) -> Vec<Record> {
    let mut records = Vec::new();
    for number in 0..PROJECTS {
        records.push(Record::ProjectCreated(Box::new(ProjectRecord {
            id: project(number),
            name: format!("p{number}"),
            description: None,
            owner: PrincipalId::Local,
            agent: None,
            key_level: KeyLevel::None,
            limits: ProjectLimits::default(),
            network: None,
            image: None,
            permissions: None,
            created_at: 1,
        })));
        records.push(Record::WorkspaceCreated(WorkspaceRecord {
            id: WorkspaceId::from_random(bytes(5, number)),
            project: project(number),
            created_at: 1,
            last_session_at: None,
        }));
    }
    for number in 0..SESSIONS {
        let at = random.below(PROJECTS);
        let parent = (number > 0 && random.below(3) > 0).then(|| session(random.below(number)));
        records.push(Record::SessionCreated(Box::new(SessionRecord {
            id: session(number),
            project: project(at),
            workspace: WorkspaceId::from_random(bytes(5, at)),
            owner: principal(random.below(3)),
            parent,
            root: session(0),
            depth: 0,
            agent: "script".to_owned(),
            state: SessionState::Ended,
            created_at: 1,
            updated_at: 1,
            ended_at: Some(1),
            key: None,
            network: None,
            spending: SpendingRecord::default(),
            choice: SessionChoice::default(),
        })));
    }
    records
}

fn content(random: &mut Random, number: usize) -> Vec<Record> {
    let Origin { owner, project, session } = random.origin();
    let tags = ["a", "b", "c"].iter().filter(|_| random.below(2) == 0);
    let mut records = vec![Record::ArtifactCreated(Box::new(ArtifactRecord {
        id: art(number),
        content_hash: BlobHash::from_bytes([7; 32]),
        mime_type: "audio/midi".to_owned(),
        size: 5,
        owner,
        project,
        tags: tags.map(|tag| (*tag).to_owned()).collect(),
        creator: "ada".to_owned(),
        parent_id: None,
        variation_set_id: None,
        variation_index: None,
        metadata: None,
        tool: None,
        job: None,
        session,
        created_at: 1,
    }))];
    for _ in 0..random.below(3) {
        let hash = u8::try_from(random.below(5)).unwrap();
        records.push(Record::SourceAdded(SourceRecord {
            artifact_id: art(number),
            source: (number > 0 && random.below(4) > 0).then(|| art(random.below(number))),
            source_hash: BlobHash::from_bytes([hash; 32]),
            role: SourceRole::ALL[random.below(SourceRole::ALL.len())],
            is_hidden: random.below(2) == 0,
        }));
    }
    records.push(Record::AnnotationAdded(AnnotationRecord {
        id: AnnotationId::from_random(bytes(6, number)),
        artifact_id: art(random.below(number + 1)),
        message: "fine".to_owned(),
        source: "ada".to_owned(),
        vibe: None,
        created_at: 1,
    }));
    let Origin { owner, project, session } = random.origin();
    records.push(Record::JobCreated(Box::new(JobRecord {
        id: JobId::from_random(bytes(7, number)),
        tool: "job_sleep".to_owned(),
        owner,
        project,
        session,
        repeat: None,
        request: Bytes::from_static(b"\x80"),
        state: JobState::Pending,
        result: None,
        result_blob: None,
        error: None,
        created_at: 1,
        started_at: None,
        completed_at: None,
        expires_at: None,
    })));
    records
}

fn identities(random: &mut Random) -> Vec<Record> {
    let mut records = Vec::new();
    let mut keys: Vec<IdentityKey> = Vec::new();
    for number in 0..ROWS {
        let Origin { owner, project, session } = random.origin();
        let key = IdentityKey { owner, id: format!("i{number}") };
        let hint = HintRecord {
            kind: HintKind::ALL[random.below(HintKind::ALL.len())],
            value: number.to_string(),
            confidence: 0.5,
        };
        records.push(Record::IdentityBound(IdentityRecord {
            key: key.clone(),
            project,
            session,
            name: "x".to_owned(),
            hints: vec![hint],
            tags: Vec::new(),
            created_at: 1,
        }));
        records.push(Record::IdentityTagged {
            identity: key.clone(),
            namespace: "n".to_owned(),
            value: number.to_string(),
            at: 1,
        });
        keys.push(key);
        for port in 0..3 {
            let Origin { owner, project, session } = random.origin();
            records.push(Record::IdentitiesConnected(ConnectionRecord {
                owner,
                project,
                session,
                from: keys[random.below(keys.len())].clone(),
                from_port: format!("{number}.{port}"),
                to: keys[random.below(keys.len())].clone(),
                to_port: "in".to_owned(),
                transport: None,
                created_at: 1,
            }));
        }
    }
    records
}

/// Rows of several owners, projects and sessions, one of which is deleted. Returns its number.
fn fill(store: &Store, random: &mut Random) -> usize {
    let mut records = places(random);
    for number in 0..ROWS {
        records.extend(content(random, number));
    }
    records.extend(identities(random));
    let deleted = 1 + random.below(SESSIONS - 1);
    records.push(Record::SessionDeleted { id: session(deleted) });
    let (sender, receiver) = channel();
    let done = Box::new(move |outcome| sender.send(outcome).unwrap());
    store.commit(records, done).unwrap();
    receiver.recv().unwrap().unwrap();
    deleted
}

/// A reader, but none with the key of the deleted session: its keys went with it.
fn reader(random: &mut Random, deleted: usize) -> RowVisibility {
    match random.below(7) {
        0 => RowVisibility::All,
        1..=3 => {
            let projects = (0..PROJECTS).filter(|_| random.below(2) == 0).map(project);
            let projects = projects.collect();
            RowVisibility::Owner { owner: principal(random.below(4)), projects }
        }
        _ => {
            let number = random.below(SESSIONS);
            let number = if number == deleted { 0 } else { number };
            RowVisibility::Tree { owner: principal(3 + number), session: session(number) }
        }
    }
}

/// Returns the rows of a query in order, each as its values with a space between them.
fn rows(store: &Store, visible: &RowVisibility, sql: &str) -> Vec<String> {
    let (sender, receiver) = channel();
    let query = Query {
        sql: sql.to_owned(),
        variables: Vec::new(),
        rows_max: 1000,
        visible: visible.clone(),
    };
    store.query(query, Box::new(|| false), Box::new(move |answer| sender.send(answer).unwrap()));
    let answer = receiver.recv().unwrap().unwrap_or_else(|error| panic!("{sql}: {error}"));
    assert!(!answer.is_truncated);
    let one = |row: &Value| {
        let answer = QueryAnswer { rows: vec![row.clone()], is_truncated: false };
        flat(&answer).join(" ")
    };
    sorted(answer.rows.iter().map(one).collect())
}

fn sorted(mut rows: Vec<String>) -> Vec<String> {
    rows.sort();
    rows
}

/// What the lists show of a view.
fn listed(store: &Store, visible: &RowVisibility, view: &str) -> Vec<String> {
    let graph = store.graph();
    let artifacts = store.artifacts(visible, ArtifactFilter::default(), None, ALL).unwrap().items;
    let every = IdentityFilter::default();
    let identities = graph.identities(visible, &every, None, ALL).unwrap().items;
    let or_null = |value: Option<String>| value.unwrap_or_else(|| "NULL".to_owned());
    sorted(match view {
        "artifacts" => artifacts.iter().map(|it| it.id.to_string()).collect(),
        "artifact_tags" => artifacts
            .iter()
            .flat_map(|it| it.tags.iter().map(|tag| format!("{} {tag}", it.id)))
            .collect(),
        "annotations" => artifacts
            .iter()
            .flat_map(|it| store.annotations(it.id, ALL).unwrap())
            .map(|it| format!("{} {}", it.id, it.artifact_id))
            .collect(),
        "sources" => artifacts
            .iter()
            .flat_map(|it| {
                let sources = graph.sources(it.id, visible, ALL).unwrap();
                sources.into_iter().map(|source| {
                    let from = or_null(source.artifact.map(|id| id.to_string()));
                    let hash = or_null(source.content_hash.map(|hash| hash.to_string()));
                    format!("{} {from} {hash} {}", it.id, source.role.as_str())
                })
            })
            .collect(),
        "jobs" => {
            let jobs = store.jobs(visible, None, None, ALL).unwrap().items;
            jobs.iter().map(|it| it.id.to_string()).collect()
        }
        "sessions" => {
            let sessions = store.sessions(visible, SessionFilter::default(), None, ALL).unwrap();
            sessions.items.iter().map(|it| it.id.to_string()).collect()
        }
        "identities" => identities.iter().map(|it| it.key.id.clone()).collect(),
        "hints" => identities
            .iter()
            .flat_map(|it| it.hints.iter().map(|hint| (it.key.id.clone(), hint)))
            .map(|(id, hint)| format!("{id} {} {}", hint.kind.as_str(), hint.value))
            .collect(),
        "identity_tags" => identities
            .iter()
            .flat_map(|it| {
                it.tags.iter().map(|(space, value)| format!("{} {space} {value}", it.key.id))
            })
            .collect(),
        "connections" => identities
            .iter()
            .flat_map(|it| graph.connections_from(&it.key, visible, ALL).unwrap())
            .map(|it| format!("{} {} {}", it.from.id, it.from_port, it.to.id))
            .collect(),
        other => panic!("{other}"),
    })
}

/// Rule: a view shows a reader what the list tools show.
#[test]
fn each_view_shows_a_random_reader_what_the_lists_show() {
    let views = [
        ("artifacts", "SELECT id FROM artifacts"),
        ("artifact_tags", "SELECT artifact_id, tag FROM artifact_tags"),
        ("annotations", "SELECT id, artifact_id FROM annotations"),
        ("sources", "SELECT artifact_id, source_id, source_hash, role FROM sources"),
        ("jobs", "SELECT id FROM jobs"),
        ("sessions", "SELECT id FROM sessions"),
        ("identities", "SELECT id FROM identities"),
        ("hints", "SELECT identity_id, kind, value FROM hints"),
        ("identity_tags", "SELECT identity_id, namespace, value FROM identity_tags"),
        ("connections", "SELECT from_identity, from_port, to_identity FROM connections"),
    ];
    let mut random = Random(0x0517_2026);
    for _ in 0..6 {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Utf8Path::from_path(dir.path()).unwrap()).unwrap();
        let deleted = fill(&store, &mut random);
        for _ in 0..25 {
            let visible = reader(&mut random, deleted);
            for (view, sql) in views {
                let shown = rows(&store, &visible, sql);
                assert_eq!(shown, listed(&store, &visible, view), "{view} for {visible:?}");
            }
        }
        for (view, sql) in views {
            assert!(rows(&store, &RowVisibility::All, sql).len() > 3, "{view} has hardly a row");
        }
    }
}
