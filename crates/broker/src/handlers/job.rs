//! Jobs: `job_*`.

use std::time::Duration;

use futures_util::future::{join_all, select_all};
use ringback_core::jobs::StopReason;
use ringback_proto::error::ToolError;
use ringback_proto::ids::JobId;
use ringback_proto::record::{JobRecord, JobState};
use ringback_proto::request::{
    JobCancelRequest, JobCancelledResponse, JobCounts, JobListRequest, JobListResponse,
    JobPollRequest, JobPollResponse, JobSleepRequest, JobStatusRequest, JobStatusResponse,
    PollMode, SleptResponse,
};
use ringback_proto::tool::tools;
use ringback_proto::{Error, Result, StreamChunk};
use ringback_store::JobSummary;
use tokio::time::Instant;

use super::{Native, list_limit};
use crate::handler::{Context, Handler};

/// The longest `job_poll`.
const POLL_MS_MAX: u64 = 30_000;
/// The most jobs that one `job_poll` waits for.
const POLL_JOBS_MAX: usize = 100;
/// The longest `job_sleep`.
const SLEEP_MS_MAX: u64 = 60 * 60 * 1000;
/// The most progress reports of a sleep.
const SLEEP_STEPS: u32 = 20;
/// The shortest time between two of them: readers are no faster.
const SLEEP_STEP_MIN: Duration = Duration::from_millis(50);

impl Handler<tools::JobStatus> for Native {
    async fn handle(ctx: Context, request: JobStatusRequest) -> Result<JobStatusResponse> {
        let record = visible_job(&ctx, request.job_id).await?;
        let result = match record.state {
            JobState::Complete => Some(Box::new(ctx.rooms.jobs.stored_result(&record).await?)),
            JobState::Pending | JobState::Running | JobState::Failed | JobState::Cancelled => None,
        };
        Ok(JobStatusResponse {
            job_id: record.id,
            status: record.state,
            source: record.tool,
            project_id: record.project,
            result,
            error: record.error.as_deref().and_then(ToolError::decode),
            created_at: record.created_at,
            started_at: record.started_at,
            completed_at: record.completed_at,
        })
    }
}

impl Handler<tools::JobList> for Native {
    async fn handle(ctx: Context, request: JobListRequest) -> Result<JobListResponse> {
        let limit = list_limit(request.limit)?;
        let visible = ctx.visible();
        let (page, counts) = ctx
            .read(move |store| {
                let cursor = request.cursor.as_deref();
                let page = store.jobs(&visible, request.status, cursor, limit)?;
                Ok((page, store.job_counts(&visible)?))
            })
            .await?;
        Ok(JobListResponse {
            jobs: page.items.into_iter().map(summary).collect(),
            total: counts.total(),
            by_status: JobCounts {
                pending: counts.get(JobState::Pending),
                running: counts.get(JobState::Running),
                complete: counts.get(JobState::Complete),
                failed: counts.get(JobState::Failed),
                cancelled: counts.get(JobState::Cancelled),
            },
            next_cursor: page.next_cursor,
        })
    }
}

impl Handler<tools::JobPoll> for Native {
    async fn handle(ctx: Context, request: JobPollRequest) -> Result<JobPollResponse> {
        let JobPollRequest { job_ids, timeout_ms, mode } = request;
        if job_ids.is_empty() || job_ids.len() > POLL_JOBS_MAX {
            let message = format!("`job_poll` accepts 1 to {POLL_JOBS_MAX} jobs");
            return Err(Error::invalid_field("job_ids", message));
        }
        for id in &job_ids {
            visible_job(&ctx, *id).await?;
        }
        let live: Vec<_> = job_ids.iter().filter_map(|id| ctx.rooms.jobs.live(*id)).collect();
        let wait = async {
            let ended = live.iter().map(|job| Box::pin(job.outcome()));
            match mode.unwrap_or_default() {
                // A job that is no longer live has ended, so there is nothing to wait for.
                PollMode::Any if live.len() == job_ids.len() => drop(select_all(ended).await),
                PollMode::Any => {}
                PollMode::All => drop(join_all(ended).await),
            }
        };
        let timeout = Duration::from_millis(timeout_ms.min(POLL_MS_MAX));
        let timed_out = tokio::time::timeout(timeout, wait).await.is_err();
        let mut polled = JobPollResponse {
            completed: Vec::new(),
            failed: Vec::new(),
            pending: Vec::new(),
            timed_out,
        };
        for id in job_ids {
            match visible_job(&ctx, id).await?.state {
                JobState::Complete => polled.completed.push(id),
                JobState::Failed | JobState::Cancelled => polled.failed.push(id),
                JobState::Pending | JobState::Running => polled.pending.push(id),
            }
        }
        Ok(polled)
    }
}

impl Handler<tools::JobCancel> for Native {
    async fn handle(ctx: Context, request: JobCancelRequest) -> Result<JobCancelledResponse> {
        let job_id = request.job_id;
        visible_job(&ctx, job_id).await?;
        let live = ctx.rooms.jobs.live(job_id);
        ctx.rooms.jobs.stop_job(job_id, StopReason::Cancelled).await?;
        if let Some(live) = live {
            live.outcome().await;
        }
        let status = visible_job(&ctx, job_id).await?.state;
        Ok(JobCancelledResponse { job_id, status })
    }
}

impl Handler<tools::JobSleep> for Native {
    async fn handle(ctx: Context, request: JobSleepRequest) -> Result<SleptResponse> {
        let milliseconds = request.milliseconds;
        if milliseconds > SLEEP_MS_MAX {
            let message = format!("`job_sleep` can sleep at most {SLEEP_MS_MAX} ms");
            return Err(Error::invalid_field("milliseconds", message));
        }
        let total = Duration::from_millis(milliseconds);
        let step = (total / SLEEP_STEPS).max(SLEEP_STEP_MIN);
        let started = Instant::now();
        while started.elapsed() < total {
            tokio::time::sleep(step.min(total.saturating_sub(started.elapsed()))).await;
            let slept = started.elapsed().min(total);
            let percent = slept.as_secs_f32() / total.as_secs_f32() * 100.0;
            let message = format!("slept {} of {milliseconds} ms", slept.as_millis());
            ctx.send(StreamChunk::Progress { percent, message }).await;
        }
        Ok(SleptResponse { milliseconds })
    }
}

pub(super) async fn visible_job(ctx: &Context, id: JobId) -> Result<JobRecord> {
    let visible = ctx.visible();
    ctx.read(move |store| store.visible_job(id, &visible))
        .await?
        .ok_or_else(|| Error::not_found("job", id))
}

fn summary(job: JobSummary) -> JobStatusResponse {
    JobStatusResponse {
        job_id: job.id,
        status: job.state,
        source: job.tool,
        project_id: job.project,
        result: None,
        error: job.error.as_deref().and_then(ToolError::decode),
        created_at: job.created_at,
        started_at: job.started_at,
        completed_at: job.completed_at,
    }
}
