//! Records for the benchmarks of the graph: artifacts with everything that a query may join.

use std::path::Path;

use anyhow::Context;
use camino::Utf8Path;
use ringback_proto::ids::{AnnotationId, ArtifactId, BlobHash, ProjectId, SessionId, WorkspaceId};
use ringback_proto::principal::{KeyLevel, PrincipalId};
use ringback_proto::record::{
    AnnotationRecord, HintRecord, IdentityKey, IdentityRecord, ProjectRecord, Record,
    SessionChoice, SessionRecord, SessionState, SourceRecord, SpendingRecord, WorkspaceRecord,
};
use ringback_proto::request::{HintKind, ProjectLimits, SourceRole};
use ringback_store::Store;

use crate::stored_records::{COMMIT, fill_with, id};

/// Artifacts of a line, each made from the one before it. The last has a lineage of depth 10.
const LINE: usize = 11;
/// A session makes this many artifacts.
const SESSION: usize = 1000;
/// The identities of an owner, which are limited, with a hint each.
const IDENTITIES: usize = 900;

/// The last artifact of a line.
pub(crate) const DEEP: usize = LINE - 1;

/// The hint of an identity that every world has.
pub(crate) const HINT: (HintKind, &str) = (HintKind::UsbDeviceId, "0582:0074");

/// A session that has made as many artifacts as there are, up to a thousand.
pub(crate) fn session(number: usize) -> SessionId {
    SessionId::from_random(id(number / SESSION))
}

/// Writes jobs and artifacts, and with each artifact its job, session, source and remark.
pub(crate) async fn fill(dir: &Path, n_records: usize) -> anyhow::Result<()> {
    let path = Utf8Path::from_path(dir).context("the path is not valid UTF-8")?;
    let store = Store::open(path)?;
    let mut records = place();
    records.extend((0..n_records.div_ceil(SESSION)).map(session_record));
    records.extend((0..IDENTITIES).map(identity));
    for records in records.chunks(COMMIT) {
        store.commit_async(records.to_vec()).await??;
    }
    tokio::task::spawn_blocking(move || store.close()).await?;
    fill_with(dir, n_records, Some(session), |number| {
        let mut more = vec![remark(number)];
        if number % LINE > 0 {
            more.push(source(number));
        }
        more
    })
    .await
}

/// The project and the workspace of the sessions.
fn place() -> Vec<Record> {
    let project = ProjectRecord {
        id: ProjectId::from_random(id(0)),
        name: "bench".to_owned(),
        description: None,
        owner: PrincipalId::Local,
        agent: None,
        key_level: KeyLevel::None,
        limits: ProjectLimits::default(),
        network: None,
        image: None,
        permissions: None,
        created_at: 1,
    };
    let workspace = WorkspaceRecord {
        id: WorkspaceId::from_random(id(0)),
        project: project.id,
        created_at: 1,
        last_session_at: None,
    };
    vec![Record::ProjectCreated(Box::new(project)), Record::WorkspaceCreated(workspace)]
}

fn session_record(number: usize) -> Record {
    let session = SessionId::from_random(id(number));
    Record::SessionCreated(Box::new(SessionRecord {
        id: session,
        project: ProjectId::from_random(id(0)),
        workspace: WorkspaceId::from_random(id(0)),
        owner: PrincipalId::Local,
        parent: None,
        root: session,
        depth: 0,
        agent: "bench".to_owned(),
        state: SessionState::Ended,
        created_at: 1,
        updated_at: 1,
        ended_at: Some(1),
        key: None,
        network: None,
        spending: SpendingRecord::default(),
        choice: SessionChoice::default(),
    }))
}

fn identity(number: usize) -> Record {
    let value = if number == 0 { HINT.1.to_owned() } else { number.to_string() };
    Record::IdentityBound(IdentityRecord {
        key: IdentityKey { owner: PrincipalId::Local, id: format!("device {number}") },
        project: None,
        session: None,
        name: format!("Device {number}"),
        hints: vec![HintRecord { kind: HINT.0, value, confidence: 1.0 }],
        tags: Vec::new(),
        created_at: 1,
    })
}

fn remark(number: usize) -> Record {
    Record::AnnotationAdded(AnnotationRecord {
        id: AnnotationId::from_random(id(number)),
        artifact_id: ArtifactId::from_random(id(number)),
        message: format!("remark {number}"),
        source: "bench".to_owned(),
        vibe: Some("warm and slow".to_owned()),
        created_at: number as u64 + 1,
    })
}

/// What an artifact was made from: the one before it.
fn source(number: usize) -> Record {
    Record::SourceAdded(SourceRecord {
        artifact_id: ArtifactId::from_random(id(number)),
        source: Some(ArtifactId::from_random(id(number - 1))),
        source_hash: BlobHash::from_bytes([7; 32]),
        role: SourceRole::Input,
        is_hidden: false,
    })
}
