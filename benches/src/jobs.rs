//! Durable jobs against the store alone on the same disk.

use bytes::Bytes;
use ringback_proto::envelope::CallOptions;
use ringback_proto::request::JobSleepRequest;
use ringback_proto::{RequestEnvelope, ToolCall, ToolRequest};

use crate::bare_store;
use crate::figure::{Figure, Line, Round};
use crate::load::{self, Load};
use crate::process::Server;
use crate::settings::Settings;

/// Enough to even out variations of the disk.
const JOBS_PER_SLOT: usize = 100;
/// Longer than any of these jobs takes, so that the reply is the result.
const WAIT_MS: u64 = 30_000;

struct Case {
    name: &'static str,
    cpu_name: &'static str,
    in_flight: usize,
    cpu_us_max: f64,
}

/// The least share of the jobs that the store alone could do.
const SHARE_MIN: f64 = 0.3;

const CASES: [Case; 2] = [
    Case {
        name: "durable job, 64 in flight",
        cpu_name: "durable job, 64 in flight: CPU",
        in_flight: 64,
        cpu_us_max: 65.0,
    },
    Case {
        name: "durable job, 256 in flight",
        cpu_name: "durable job, 256 in flight: CPU",
        in_flight: 256,
        cpu_us_max: 50.0,
    },
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
            let n_jobs = case.in_flight * settings.size(JOBS_PER_SLOT);
            let bare = bare_store::jobs_per_second(dir.path(), case.in_flight, n_jobs)?;
            let jobs = load
                .measure(&daemon, case.in_flight, n_jobs, |_| body.clone(), load::succeeded)
                .await?;
            rounds[case_idx].push(Round { bare, ours: 1e6 / jobs.us });
            cpu_rounds[case_idx].push(jobs.cpu_us);
        }
    }
    let figures = CASES.iter().zip(rounds.iter().zip(&cpu_rounds));
    Ok(figures
        .flat_map(|(case, (rounds, cpu))| {
            let share = Figure::ratio(case.name, "jobs/s", rounds, Line::AtLeast(SHARE_MIN));
            let cpu = Figure::values(case.cpu_name, "CPU µs", cpu, Line::AtMost(case.cpu_us_max));
            [share, cpu]
        })
        .collect())
}

/// Returns the body of a job that takes no time; the reply comes when it is complete.
fn job() -> Bytes {
    let request = ToolRequest::JobSleep(JobSleepRequest { milliseconds: 0 });
    let options = CallOptions { wait_ms: Some(WAIT_MS), ..CallOptions::default() };
    RequestEnvelope { request: ToolCall::Native(request), options }.encode().into()
}
