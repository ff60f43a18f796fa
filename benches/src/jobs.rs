//! Durable jobs against one sync per job on the same disk.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use bytes::Bytes;
use ringback_proto::envelope::CallOptions;
use ringback_proto::request::JobSleepRequest;
use ringback_proto::{RequestEnvelope, ToolCall, ToolRequest};

use crate::figure::{Figure, Line, Round};
use crate::load::{self, Load};
use crate::process::Server;
use crate::settings::Settings;

/// The size of a job's record.
const RECORD_BYTES: usize = 256;
/// Enough to even out variations of the disk.
const SYNCS: usize = 1500;
const JOBS_PER_SLOT: usize = 100;
/// Longer than any of these jobs takes, so that the reply is the result.
const WAIT_MS: u64 = 30_000;

struct Case {
    name: &'static str,
    in_flight: usize,
    line: Line,
}

const CASES: [Case; 2] = [
    Case { name: "durable job, 64 in flight", in_flight: 64, line: Line::AtLeast(4.0) },
    Case { name: "durable job, 256 in flight", in_flight: 256, line: Line::AtLeast(6.0) },
];

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let dir = settings.temporary()?;
    let daemon = Server::daemon(settings, dir.path(), dir.path())?;
    let mut load = Load::connect(&daemon.endpoint, &daemon.token).await?;
    let body = job();
    let mut rounds = [Vec::new(), Vec::new()];
    let mut cpu_rounds = [Vec::new(), Vec::new()];
    for _ in 0..settings.n_rounds {
        for (case_idx, case) in CASES.iter().enumerate() {
            let bare = syncs_per_second(dir.path(), settings.size(SYNCS))?;
            let n_jobs = case.in_flight * settings.size(JOBS_PER_SLOT);
            let jobs = load
                .measure(&daemon, case.in_flight, n_jobs, |_| body.clone(), load::succeeded)
                .await?;
            rounds[case_idx].push(Round { bare, ours: 1e6 / jobs.us });
            cpu_rounds[case_idx].push(jobs.cpu_us);
        }
    }
    let figures = CASES.iter().zip(rounds.iter().zip(&cpu_rounds));
    Ok(figures
        .map(|(case, (rounds, cpu))| {
            Figure::ratio(case.name, "jobs/s", rounds, case.line).with_own_cpu(cpu.iter().copied())
        })
        .collect())
}

/// Returns the body of a job that takes no time; the reply comes when it is complete.
fn job() -> Bytes {
    let request = ToolRequest::JobSleep(JobSleepRequest { milliseconds: 0 });
    let options = CallOptions { wait_ms: Some(WAIT_MS), ..CallOptions::default() };
    RequestEnvelope { request: ToolCall::Native(request), options }.encode().into()
}

/// Appends and syncs records.
fn syncs_per_second(dir: &Path, n_syncs: usize) -> anyhow::Result<f64> {
    let path = dir.join("one-sync-per-job");
    let mut file = File::create(&path)?;
    let start = Instant::now();
    for _ in 0..n_syncs {
        file.write_all(&[1; RECORD_BYTES])?;
        file.sync_data()?;
    }
    let rate = n_syncs as f64 / start.elapsed().as_secs_f64();
    std::fs::remove_file(&path)?;
    Ok(rate)
}
