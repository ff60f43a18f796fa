//! Shared helpers of the store's tests.

use std::sync::mpsc;

use bytes::Bytes;
use camino::Utf8Path;
use ringback_proto::ids::{ArtifactId, BlobHash, JobId, ProjectId, TokenId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{ArtifactRecord, JobEnd, JobRecord, JobState, Record};
use ringback_store::{CommitError, Limits, Store, WriteOutcome};

pub(crate) fn bytes16(n: u64) -> [u8; 16] {
    let mut bytes = [0xa5; 16];
    bytes[..8].copy_from_slice(&n.to_be_bytes());
    bytes
}

pub(crate) fn owner(n: u64) -> PrincipalId {
    if n == 0 { PrincipalId::Local } else { PrincipalId::Token(TokenId::from_random(bytes16(n))) }
}

pub(crate) fn project(n: u64) -> ProjectId {
    ProjectId::from_random(bytes16(n))
}

pub(crate) fn job_id(n: u64) -> JobId {
    JobId::from_random(bytes16(n))
}

pub(crate) fn job(n: u64, owner: PrincipalId, project: Option<ProjectId>) -> JobRecord {
    JobRecord {
        id: job_id(n),
        tool: "job_sleep".to_owned(),
        owner,
        project,
        session: None,
        repeat: None,
        request: Bytes::from_static(b"\x80"),
        state: JobState::Pending,
        result: None,
        result_blob: None,
        error: None,
        created_at: 1_000 + n,
        started_at: None,
        completed_at: None,
        expires_at: None,
    }
}

pub(crate) fn created(n: u64) -> Record {
    Record::JobCreated(Box::new(job(n, PrincipalId::Local, None)))
}

pub(crate) fn started(n: u64) -> Record {
    Record::JobStarted { id: job_id(n), at: 2_000 }
}

pub(crate) fn end(state: JobState) -> JobEnd {
    JobEnd {
        state,
        result: None,
        result_blob: None,
        error: None,
        completed_at: 3_000,
        expires_at: 4_000,
    }
}

pub(crate) fn ended(n: u64, state: JobState) -> Record {
    Record::JobEnded { id: job_id(n), end: Box::new(end(state)) }
}

pub(crate) fn artifact(n: u64, owner: PrincipalId, project: Option<ProjectId>) -> ArtifactRecord {
    ArtifactRecord {
        id: ArtifactId::from_random(bytes16(n)),
        content_hash: BlobHash::from_bytes([7; 32]),
        mime_type: "audio/midi".to_owned(),
        size: 5,
        owner,
        project,
        tags: Vec::new(),
        creator: "somebody".to_owned(),
        parent_id: None,
        variation_set_id: None,
        variation_index: None,
        metadata: None,
        tool: None,
        job: None,
        session: None,
        created_at: 1,
    }
}

pub(crate) struct TestStore {
    pub(crate) store: Store,
    pub(crate) dir: tempfile::TempDir,
}

impl TestStore {
    pub(crate) fn new() -> Self {
        Self::with(Limits::default())
    }

    pub(crate) fn with(limits: Limits) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open_with(Utf8Path::from_path(dir.path()).unwrap(), limits).unwrap();
        Self { store, dir }
    }

    pub(crate) fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.dir.path()).unwrap()
    }

    pub(crate) fn commit(&self, records: Vec<Record>) -> Result<Vec<WriteOutcome>, CommitError> {
        commit(&self.store, records)
    }

    /// Keeps the writer inside a callback until the sender is dropped.
    pub(crate) fn hold_writer(&self) -> mpsc::Sender<()> {
        let (release, held) = mpsc::channel::<()>();
        let (entered_tx, entered) = mpsc::channel();
        let done = move |_| {
            entered_tx.send(()).unwrap();
            held.recv().unwrap_err();
        };
        self.store.commit(Vec::new(), Box::new(done)).unwrap();
        entered.recv().unwrap();
        release
    }
}

pub(crate) fn commit(
    store: &Store,
    records: Vec<Record>,
) -> Result<Vec<WriteOutcome>, CommitError> {
    let (sender, receiver) = mpsc::channel();
    store.commit(records, Box::new(move |outcome| sender.send(outcome).unwrap())).unwrap();
    receiver.recv().unwrap()
}
