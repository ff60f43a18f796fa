//! `ringback jobs`: jobs and their states.

mod watch;

use clap::{Args, Subcommand, ValueEnum};
use ringback_client::Client;
use ringback_proto::record::JobState;
use ringback_proto::request::{
    JobCancelRequest, JobListRequest, JobListResponse, JobStatusRequest, JobStatusResponse,
};
use ringback_proto::tool::tools::{JobCancel, JobList, JobStatus};

use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::pick::JobArg;
use crate::screen::{Screen, json_text, maybe_moment, moment, span};

/// The largest page size.
const PAGE: u32 = 500;

/// `ringback jobs`
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  ringback jobs --status running\n  ringback jobs job_…           one job, with \
                  its result\n  ringback jobs watch job_…     until it ends; fails if the job does\n  \
                  ringback jobs cancel job_…"
)]
pub struct JobsArgs {
    /// What to do
    #[command(subcommand)]
    pub action: Option<JobsAction>,
    /// One job, with its result: its id, the start of it, or `last`
    pub id: Option<JobArg>,
    /// Only jobs in this state
    #[arg(long, conflicts_with = "id")]
    pub status: Option<State>,
    /// Maximum number of results, newest first
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub limit: u32,
    /// Print JSON: one document, or one object per change when watching
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Actions on jobs.
#[derive(Debug, Subcommand)]
pub enum JobsAction {
    /// Show changes as they happen: one job until it ends, or all jobs
    Watch {
        /// The job: its id, the start of it, or `last`
        id: Option<JobArg>,
    },
    /// Cancel a job and wait until its work has stopped
    Cancel {
        /// The job: its id, the start of it, or `last`
        id: JobArg,
    },
}

/// The state of a job.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum State {
    /// Waiting to run
    Pending,
    /// Running
    Running,
    /// Ended with a result
    Complete,
    /// Ended with an error
    Failed,
    /// Cancelled
    Cancelled,
}

impl From<State> for JobState {
    fn from(state: State) -> Self {
        match state {
            State::Pending => Self::Pending,
            State::Running => Self::Running,
            State::Complete => Self::Complete,
            State::Failed => Self::Failed,
            State::Cancelled => Self::Cancelled,
        }
    }
}

pub(crate) async fn run(args: JobsArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let target = args.connect.target(environment)?;
    target
        .run(async |client| match (args.action, args.id) {
            (Some(JobsAction::Watch { id: Some(id) }), _) => {
                watch::one(client, screen, id.find(client).await?).await
            }
            (Some(JobsAction::Watch { id: None }), _) => watch::all(client, screen).await,
            (Some(JobsAction::Cancel { id }), _) => {
                let job_id = id.find(client).await?;
                let done = client.call::<JobCancel>(JobCancelRequest { job_id }).await?;
                screen.answer(&done, |done| format!("{} is {}", done.job_id, done.status.as_str()))
            }
            (None, Some(id)) => {
                let job_id = id.find(client).await?;
                let job = client.call::<JobStatus>(JobStatusRequest { job_id }).await?;
                show(screen, &job)
            }
            (None, None) => {
                let listed = list(client, args.status.map(Into::into), args.limit).await?;
                screen.answer(&listed, |listed| table(screen, listed))
            }
        })
        .await
}

/// Lists up to `limit` jobs, page by page.
async fn list(
    client: &Client,
    status: Option<JobState>,
    limit: u32,
) -> Result<JobListResponse, Failure> {
    let request = |limit: u32, cursor| JobListRequest { status, limit: Some(limit), cursor };
    let mut listed = client.call::<JobList>(request(limit.min(PAGE), None)).await?;
    while let Some(cursor) = listed.next_cursor.clone() {
        let so_far = u32::try_from(listed.jobs.len()).unwrap_or(u32::MAX);
        let Some(left @ 1..) = limit.checked_sub(so_far) else { break };
        let page = client.call::<JobList>(request(left.min(PAGE), Some(cursor))).await?;
        listed.jobs.extend(page.jobs);
        listed.next_cursor = page.next_cursor;
    }
    Ok(listed)
}

/// Shows one job, with its result or error.
fn show(screen: Screen, job: &JobStatusResponse) -> Result<(), Failure> {
    let result = job.result.as_ref().map(|result| json_text(result, false)).transpose()?;
    screen.answer(job, |job| {
        let mut pairs = vec![
            ("job", job.job_id.to_string()),
            ("tool", job.source.clone()),
            ("status", job.status.as_str().to_owned()),
            ("created", moment(job.created_at)),
            ("started", maybe_moment(job.started_at)),
            ("ended", maybe_moment(job.completed_at)),
        ];
        pairs.extend(result.map(|result| ("result", result)));
        pairs.extend(job.error.as_ref().map(|error| ("error", error.message.clone())));
        screen.pairs(&pairs)
    })
}

fn table(screen: Screen, listed: &JobListResponse) -> String {
    let rows = listed.jobs.iter().map(|job| {
        let took = job
            .started_at
            .zip(job.completed_at)
            .map_or_else(|| "-".to_owned(), |(started, ended)| span(ended.saturating_sub(started)));
        let (id, status) = (job.job_id.to_string(), job.status.as_str().to_owned());
        [id, job.source.clone(), status, moment(job.created_at), took]
    });
    let table = screen.table(["JOB", "TOOL", "STATUS", "CREATED", "TOOK"], rows, "no jobs");
    let more = if listed.next_cursor.is_some() {
        format!("\n… {} in total; more with a larger `--limit`", listed.total)
    } else {
        String::new()
    };
    table + &more
}
