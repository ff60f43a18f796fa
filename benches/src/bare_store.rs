//! The store alone: durable jobs with many in flight (created and started in one commit, ended in
//! another), without calls, tasks or sockets.

use std::path::Path;
use std::sync::mpsc;
use std::time::Instant;

use anyhow::Context as _;
use bytes::Bytes;
use camino::Utf8Path;
use ringback_proto::ids::{BlobHash, JobId, RequestId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{JobEnd, JobRecord, JobState, Record, RepeatKey};
use ringback_store::{CommitError, Store};

enum Answer {
    Started(u64),
    Ended,
}

/// Returns the jobs per second of a new store in a directory.
pub(crate) fn jobs_per_second(dir: &Path, in_flight: usize, n_jobs: usize) -> anyhow::Result<f64> {
    let dir = tempfile::tempdir_in(dir)?;
    let store = Store::open(Utf8Path::from_path(dir.path()).context("the path is not UTF-8")?)?;
    let (sender, answers) = mpsc::channel();
    let send = |records, answer| {
        let sender: mpsc::Sender<Result<Answer, CommitError>> = sender.clone();
        let done = move |outcome: Result<_, _>| drop(sender.send(outcome.map(|_| answer)));
        store.commit(records, Box::new(done))
    };
    let mut n_started = 0;
    let mut begin = || {
        n_started += 1;
        send(vec![created(n_started), started(n_started)], Answer::Started(n_started))
    };
    let start = Instant::now();
    for _ in 0..in_flight {
        begin()?;
    }
    let mut n_ended = 0;
    while n_ended < n_jobs {
        match answers.recv()?? {
            Answer::Started(n) => send(vec![ended(n)], Answer::Ended)?,
            Answer::Ended => {
                n_ended += 1;
                if n_ended + in_flight <= n_jobs {
                    begin()?;
                }
            }
        }
    }
    let rate = n_jobs as f64 / start.elapsed().as_secs_f64();
    store.close();
    Ok(rate)
}

/// Spreads the ids as random ones are: an odd factor makes each number another.
fn id(n: u64) -> [u8; 16] {
    const ODD: u128 = 0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835;
    u128::from(n).wrapping_mul(ODD).to_be_bytes()
}

fn created(n: u64) -> Record {
    Record::JobCreated(Box::new(JobRecord {
        id: JobId::from_random(id(n)),
        tool: "job_sleep".to_owned(),
        owner: PrincipalId::Local,
        project: None,
        session: None,
        repeat: Some(RepeatKey {
            request_id: RequestId::from_bytes(id(n)),
            body_hash: BlobHash::from_bytes([1; 32]),
        }),
        request: Bytes::from_static(&[0x80; 40]),
        state: JobState::Pending,
        result: None,
        result_blob: None,
        error: None,
        created_at: n,
        started_at: None,
        completed_at: None,
        expires_at: None,
    }))
}

fn started(n: u64) -> Record {
    Record::JobStarted { id: JobId::from_random(id(n)), at: n }
}

fn ended(n: u64) -> Record {
    let end = JobEnd {
        state: JobState::Complete,
        result: Some(Bytes::from_static(&[0x80; 40])),
        result_blob: None,
        error: None,
        completed_at: n,
        expires_at: n + 1,
    };
    Record::JobEnded { id: JobId::from_random(id(n)), end: Box::new(end) }
}
