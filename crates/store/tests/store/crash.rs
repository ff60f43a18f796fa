//! Rule: everything that was acknowledged exists after `kill -9`.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::mpsc;

use crate::common::{created, ended, job_id, started};
use camino::Utf8Path;
use ringback_proto::record::JobState;
use ringback_store::Store;

/// Where the child finds its data directory; without it the child's test has nothing to do.
const DIR: &str = "RINGBACK_TEST_CRASH_DIR";
const FIRST: &str = "RINGBACK_TEST_CRASH_FIRST";

const N_ROUNDS: u64 = 8;

/// Requests that the child keeps waiting, so that a kill hits a full batch.
const N_IN_FLIGHT: usize = 64;

/// The process that is killed: commits forever and prints what was acknowledged.
#[test]
fn child_that_commits_until_it_is_killed() {
    let Ok(dir) = std::env::var(DIR) else { return };
    let first: u64 = std::env::var(FIRST).unwrap().parse().unwrap();
    let store = Store::open(Utf8Path::new(&dir)).unwrap();
    let (sender, permits) = mpsc::sync_channel(N_IN_FLIGHT);
    for n in first.. {
        let sender = sender.clone();
        let done = move |outcome: Result<_, _>| {
            outcome.unwrap();
            writeln!(std::io::stdout(), "ack {n}").unwrap();
            sender.send(()).unwrap();
        };
        let records = vec![created(n), started(n), ended(n, JobState::Complete)];
        store.commit(records, Box::new(done)).unwrap();
        if n - first >= N_IN_FLIGHT as u64 {
            permits.recv().unwrap();
        }
    }
}

#[test]
fn what_was_acknowledged_survives_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let path = Utf8Path::from_path(dir.path()).unwrap();
    let mut acknowledged = Vec::new();
    for round in 0..N_ROUNDS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::child_that_commits_until_it_is_killed", "--nocapture"])
            .env(DIR, path)
            .env(FIRST, (round * 1_000_000).to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        // Each round stops at another point of a batch; what is still in the pipe counts too.
        let n_wanted = 100 + usize::try_from(round).unwrap() * 37;
        let mut n_seen = 0;
        for line in lines {
            // The test harness prints its own text first, on the same line as the first answer.
            let Some((_, n)) = line.split_once("ack ") else { continue };
            acknowledged.push(n.parse::<u64>().unwrap());
            n_seen += 1;
            if n_seen == n_wanted {
                child.kill().unwrap();
            }
        }
        child.wait().unwrap();
        assert!(n_seen >= n_wanted);
        let store = Store::open(path).unwrap();
        for n in &acknowledged {
            let job = store.job(job_id(*n)).unwrap();
            assert_eq!(job.map(|job| job.state), Some(JobState::Complete), "job {n}");
        }
    }
}
