//! The CPU of a call with many stored records against the same with few.

use std::path::Path;

use anyhow::Context;
use bytes::Bytes;
use camino::Utf8Path;
use ringback_proto::ids::{ArtifactId, BlobHash, JobId, SessionId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{ArtifactRecord, JobEnd, JobRecord, JobState, Record};
use ringback_proto::request::{
    ArtifactGetRequest, ArtifactListRequest, JobListRequest, JobStatusRequest, SleptResponse,
};
use ringback_proto::{RequestEnvelope, ToolRequest, ToolResponse};
use ringback_store::Store;

use crate::figure::{Figure, Line, Round};
use crate::load::{self, Load};
use crate::process::Server;
use crate::settings::Settings;

const FEW: usize = 10;
const MANY: usize = 100_000;
const CALLS: usize = 10_000;
const IN_FLIGHT: usize = 16;
/// The same number of rows on both sides.
const PAGE: u32 = 10;
/// Records per commit.
pub(crate) const COMMIT: usize = 1000;
/// Later than any measurement: the year 2100.
const FAR_MS: u64 = 4_102_444_800_000;
/// A prime that does not divide the numbers of records: calls hop through all of them.
const STRIDE: usize = 7919;

type Request = fn(usize, usize) -> ToolRequest;

const CASES: [(&str, Request); 4] = [
    ("job_status, 100,000 stored", |n_records, call_idx| {
        let number = call_idx * STRIDE % n_records;
        ToolRequest::JobStatus(JobStatusRequest { job_id: JobId::from_random(id(number)) })
    }),
    ("artifact_get, 100,000 stored", |n_records, call_idx| {
        let number = call_idx * STRIDE % n_records;
        ToolRequest::ArtifactGet(ArtifactGetRequest { id: ArtifactId::from_random(id(number)) })
    }),
    ("job_list page, 100,000 stored", |_, _| {
        let limit = Some(PAGE);
        ToolRequest::JobList(JobListRequest { limit, ..JobListRequest::default() })
    }),
    ("artifact_list page, 100,000 stored", |_, _| {
        let limit = Some(PAGE);
        ToolRequest::ArtifactList(ArtifactListRequest { limit, ..ArtifactListRequest::default() })
    }),
];

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let (few_dir, many_dir) = (settings.temporary()?, settings.temporary()?);
    let n_many = settings.size(MANY);
    fill(few_dir.path(), FEW).await?;
    fill(many_dir.path(), n_many).await?;
    let few = Server::daemon(settings, few_dir.path(), few_dir.path())?;
    let many = Server::daemon(settings, many_dir.path(), many_dir.path())?;
    let mut to_few = Load::connect(&few.endpoint, &few.token).await?;
    let mut to_many = Load::connect(&many.endpoint, &many.token).await?;

    let n_calls = settings.size(CALLS);
    let mut rounds = CASES.map(|_| Vec::new());
    for _ in 0..settings.n_rounds {
        for ((_, request), rounds) in CASES.iter().zip(&mut rounds) {
            let body = |call_idx| encoded(request(FEW, call_idx));
            let bare = to_few.measure(&few, IN_FLIGHT, n_calls, body, load::succeeded).await?;
            let body = |call_idx| encoded(request(n_many, call_idx));
            let ours = to_many.measure(&many, IN_FLIGHT, n_calls, body, load::succeeded).await?;
            rounds.push(Round { bare: bare.cpu_us, ours: ours.cpu_us });
        }
    }
    let figures = CASES.iter().zip(&rounds);
    Ok(figures
        .map(|((name, _), rounds)| {
            Figure::ratio(name, "CPU µs", rounds, Line::AtMost(1.3)).with_cpu(rounds)
        })
        .collect())
}

fn encoded(request: ToolRequest) -> Bytes {
    RequestEnvelope::plain(request).encode().into()
}

/// Writes finished jobs and artifacts, the same number of each.
pub(crate) async fn fill(dir: &Path, n_records: usize) -> anyhow::Result<()> {
    fill_with(dir, n_records, None, |_| Vec::new()).await
}

/// Like [`fill`], with the session that made each artifact, and more records after each.
pub(crate) async fn fill_with(
    dir: &Path,
    n_records: usize,
    session: Option<fn(usize) -> SessionId>,
    more: impl Fn(usize) -> Vec<Record>,
) -> anyhow::Result<()> {
    let dir = Utf8Path::from_path(dir).context("the path is not valid UTF-8")?;
    let store = Store::open(dir)?;
    let result = ToolResponse::Slept(SleptResponse { milliseconds: 0 });
    let result = Bytes::from(rmp_serde::to_vec_named(&result)?);
    let numbers: Vec<usize> = (0..n_records).collect();
    for numbers in numbers.chunks(COMMIT) {
        let mut records = Vec::new();
        for number in numbers {
            records.extend(job(*number, &result));
            records.push(artifact(*number, session.map(|session| session(*number))));
            records.extend(more(*number));
        }
        store.commit_async(records).await??;
    }
    tokio::task::spawn_blocking(move || store.close()).await?;
    Ok(())
}

fn job(number: usize, result: &Bytes) -> [Record; 3] {
    let (id, at) = (JobId::from_random(id(number)), number as u64 + 1);
    let record = JobRecord {
        id,
        tool: "job_sleep".to_owned(),
        owner: PrincipalId::Local,
        project: None,
        session: None,
        repeat: None,
        request: Bytes::from_static(&[0x80; 40]),
        state: JobState::Pending,
        result: None,
        result_blob: None,
        error: None,
        created_at: at,
        started_at: None,
        completed_at: None,
        expires_at: None,
    };
    let end = JobEnd {
        state: JobState::Complete,
        result: Some(result.clone()),
        result_blob: None,
        error: None,
        completed_at: at,
        expires_at: FAR_MS,
    };
    [
        Record::JobCreated(Box::new(record)),
        Record::JobStarted { id, at },
        Record::JobEnded { id, end: Box::new(end) },
    ]
}

/// An artifact. One with a session was made by its job.
fn artifact(number: usize, session: Option<SessionId>) -> Record {
    Record::ArtifactCreated(Box::new(ArtifactRecord {
        id: ArtifactId::from_random(id(number)),
        content_hash: BlobHash::from_bytes([7; 32]),
        mime_type: "audio/midi".to_owned(),
        size: 1,
        owner: PrincipalId::Local,
        project: None,
        tags: vec!["measured".to_owned()],
        creator: "bench".to_owned(),
        parent_id: None,
        variation_set_id: None,
        variation_index: None,
        metadata: None,
        tool: session.map(|_| "job_sleep".to_owned()),
        job: session.map(|_| JobId::from_random(id(number))),
        session,
        created_at: number as u64 + 1,
    }))
}

/// Returns IDs spread like random ones, the same at every start.
pub(crate) fn id(number: usize) -> [u8; 16] {
    let mixed =
        u128::from(number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    mixed.to_be_bytes()
}
