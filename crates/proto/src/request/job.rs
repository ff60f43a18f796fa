//! Jobs: `job_*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire_struct;
use crate::error::ToolError;
use crate::ids::{JobId, ProjectId};
use crate::record::JobState;
use crate::tool::ToolResponse;

/// Whether to wait for any or for all of the jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PollMode {
    /// Until one job has ended.
    #[default]
    Any,
    /// Until all jobs have ended.
    All,
}

wire_struct! {
    /// The job to look up.
    JobStatusRequest {
        /// The id of the job.
        job_id: JobId,
    }

    /// The state of a job.
    JobStatusResponse {
        /// The id of the job.
        job_id: JobId,
        /// Its state.
        status: JobState,
        /// The tool it runs.
        source: String,
        /// The project it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        project_id: Option<ProjectId>,
        /// Its result, once complete. Lists leave it out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[schemars(with = "Option<crate::value::Value>")]
        result: Option<Box<ToolResponse>>,
        /// The error, if it failed or was cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
        /// When it was accepted.
        created_at: u64,
        /// When it started to run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<u64>,
        /// When it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        completed_at: Option<u64>,
    }

    /// The filter for jobs.
    #[derive(Default)]
    JobListRequest {
        /// Only jobs in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<JobState>,
        /// The maximum number of jobs to return: default 50, at most 500.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// The `next_cursor` of the previous page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A page of jobs, newest first.
    JobListResponse {
        /// The jobs, without their results.
        jobs: Vec<JobStatusResponse>,
        /// The total number of jobs that you may see.
        total: u64,
        /// The number of jobs in each state.
        by_status: JobCounts,
        /// The cursor of the next page; absent on the last page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    /// The number of jobs in each state.
    #[derive(Default, Copy)]
    JobCounts {
        /// Jobs waiting for their turn.
        pending: u64,
        /// Jobs that are running.
        running: u64,
        /// Jobs that ended with a result.
        complete: u64,
        /// Jobs that ended with an error.
        failed: u64,
        /// Jobs that were cancelled.
        cancelled: u64,
    }

    /// The jobs to wait for.
    JobPollRequest {
        /// The ids of 1 to 100 jobs.
        job_ids: Vec<JobId>,
        /// How long to wait, in milliseconds: at most 30 s.
        timeout_ms: u64,
        /// Whether to wait for any or for all of them; `any` if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<PollMode>,
    }

    /// The jobs by outcome.
    JobPollResponse {
        /// Jobs that ended with a result.
        completed: Vec<JobId>,
        /// Jobs that ended with an error or were cancelled.
        failed: Vec<JobId>,
        /// Jobs that have not ended.
        pending: Vec<JobId>,
        /// Whether the wait timed out.
        timed_out: bool,
    }

    /// The job to cancel.
    JobCancelRequest {
        /// The id of the job.
        job_id: JobId,
    }

    /// The cancelled job.
    JobCancelledResponse {
        /// The id of the job.
        job_id: JobId,
        /// Its state; a job that had already ended keeps the state it had.
        status: JobState,
    }

    /// The duration of the sleep.
    JobSleepRequest {
        /// The number of milliseconds to sleep, at most an hour.
        milliseconds: u64,
    }

    /// The result of sleeping.
    SleptResponse {
        /// The number of milliseconds slept.
        milliseconds: u64,
    }
}
