//! Measures durable jobs (created and started in one commit, ended in another) with many in flight
//! against one commit per job: `cargo run --release -p ringback-store --example durable -- DIR
//! [SECONDS]`.
#![expect(clippy::print_stdout, reason = "a measurement is for the screen")]

use std::error::Error;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use camino::Utf8PathBuf;
use ringback_proto::ids::{BlobHash, JobId, RequestId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::{JobEnd, JobRecord, JobState, Record, RepeatKey};
use ringback_store::{CommitError, Store};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let dir = Utf8PathBuf::from(args.next().ok_or("usage: durable DIR [SECONDS]")?);
    let seconds = args.next().map_or(Ok(2), |text| text.parse())?;
    let store = Store::open(&dir)?;
    let mut next = 0;
    for round in 0..3 {
        let single = one_at_a_time(&store, &mut next, Duration::from_secs(seconds))?;
        for n_in_flight in [64, 256] {
            let before = store.stats();
            let rate = in_flight(&store, &mut next, n_in_flight, Duration::from_secs(seconds))?;
            let after = store.stats();
            let per_commit = (after.requests - before.requests) / (after.commits - before.commits);
            println!(
                "round {round}: {n_in_flight} in flight {rate:.0} jobs/s, {:.1} times one sync per \
                 job ({single:.0}/s), {per_commit} requests per commit",
                rate / single
            );
        }
    }
    Ok(())
}

/// One commit, and so one sync, per job.
fn one_at_a_time(store: &Store, next: &mut u64, time: Duration) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let mut n_jobs = 0.0;
    let (sender, answers) = mpsc::channel();
    while start.elapsed() < time {
        let sender = sender.clone();
        *next += 1;
        let records = vec![created(*next), started(*next), ended(*next)];
        store.commit(records, Box::new(move |outcome| drop(sender.send(outcome))))?;
        answers.recv()??;
        n_jobs += 1.0;
    }
    Ok(n_jobs / start.elapsed().as_secs_f64())
}

enum Answer {
    Started(u64),
    Ended,
}

fn in_flight(
    store: &Store,
    next: &mut u64,
    n_in_flight: usize,
    time: Duration,
) -> Result<f64, Box<dyn Error>> {
    let start = Instant::now();
    let (sender, answers) = mpsc::channel();
    let send = |records, answer| {
        let sender: mpsc::Sender<Result<Answer, CommitError>> = sender.clone();
        let done = move |outcome: Result<_, _>| drop(sender.send(outcome.map(|_| answer)));
        store.commit(records, Box::new(done))
    };
    let mut begin = || {
        *next += 1;
        send(vec![created(*next), started(*next)], Answer::Started(*next))
    };
    for _ in 0..n_in_flight {
        begin()?;
    }
    let mut n_jobs = 0.0;
    let mut n_open = n_in_flight;
    while n_open > 0 {
        match answers.recv()?? {
            Answer::Started(n) => send(vec![ended(n)], Answer::Ended)?,
            Answer::Ended => {
                n_jobs += 1.0;
                if start.elapsed() < time { begin()? } else { n_open -= 1 }
            }
        }
    }
    Ok(n_jobs / start.elapsed().as_secs_f64())
}

fn id(n: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id.copy_from_slice(&blake3::hash(&n.to_be_bytes()).as_bytes()[..16]);
    id
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
