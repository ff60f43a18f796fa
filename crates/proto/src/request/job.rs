//! Jobs: `job_*`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::wire_struct;
use crate::error::ToolError;
use crate::ids::{JobId, ProjectId};
use crate::record::JobState;
use crate::tool::ToolResponse;

/// Whether to wait for the first of some jobs or for the last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PollMode {
    /// Until one has ended.
    #[default]
    Any,
    /// Until all have ended.
    All,
}

wire_struct! {
    /// Which job.
    JobStatusRequest {
        /// Its id.
        job_id: JobId,
    }

    /// Where a job stands.
    JobStatusResponse {
        /// Its id.
        job_id: JobId,
        /// Where it stands.
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
        /// Why it failed or was cancelled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<ToolError>,
        /// When it was accepted.
        created_at: u64,
        /// When it began to run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_at: Option<u64>,
        /// When it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        completed_at: Option<u64>,
    }

    /// Which jobs.
    #[derive(Default)]
    JobListRequest {
        /// Only in this state.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<JobState>,
        /// At most so many: 50 if absent, 500 at most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        limit: Option<u32>,
        /// Where the page before this one ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    }

    /// A page of jobs, newest first.
    JobListResponse {
        /// The jobs, without their results.
        jobs: Vec<JobStatusResponse>,
        /// How many you may see in all.
        total: u64,
        /// The same by state.
        by_status: JobCounts,
        /// Where the next page starts; absent on the last.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    }

    /// How many jobs are in each state.
    #[derive(Default, Copy)]
    JobCounts {
        /// Wait for their turn.
        pending: u64,
        /// Run.
        running: u64,
        /// Ended with a result.
        complete: u64,
        /// Ended with an error.
        failed: u64,
        /// Were cancelled.
        cancelled: u64,
    }

    /// Which jobs to wait for.
    JobPollRequest {
        /// Their ids, 1 to 100.
        job_ids: Vec<JobId>,
        /// How long, 30 s at most.
        timeout_ms: u64,
        /// Until the first or the last; the first if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mode: Option<PollMode>,
    }

    /// Which of them have ended.
    JobPollResponse {
        /// Ended with a result.
        completed: Vec<JobId>,
        /// Ended with an error, or cancelled.
        failed: Vec<JobId>,
        /// Not ended.
        pending: Vec<JobId>,
        /// Whether the time ran out first.
        timed_out: bool,
    }

    /// Which job to cancel.
    JobCancelRequest {
        /// Its id.
        job_id: JobId,
    }

    /// The job has ended.
    JobCancelledResponse {
        /// Its id.
        job_id: JobId,
        /// How it ended: a job that had ended before keeps its state.
        status: JobState,
    }

    /// How long to sleep.
    JobSleepRequest {
        /// At most an hour.
        milliseconds: u64,
    }

    /// Slept.
    SleptResponse {
        /// How long.
        milliseconds: u64,
    }
}
