//! `/v1/jobs`.

use axum::Json;
use axum::extract::State as With;
use ringback_proto::request::{
    JobCancelRequest, JobCancelledResponse, JobListRequest, JobListResponse, JobStatusRequest,
    JobStatusResponse,
};
use ringback_proto::tool::tools::{JobCancel, JobList, JobStatus};

use super::{ask, id, job_events};
use crate::api::{Auth, Content, Operation, Route};
use crate::caller::{Caller, ToolCaller};
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::{PathValue, QueryValue};

pub(super) fn routes() -> Vec<Route> {
    const TAG: &str = "jobs";
    vec![
        Route::get(
            "/v1/jobs",
            list,
            Operation::new(TAG, "list_jobs", "Lists jobs, newest first.")
                .query::<JobListRequest>()
                .answers(200, "A page of jobs.", Content::json::<JobListResponse>())
                .fails([504]),
        ),
        Route::get(
            "/v1/jobs/{job_id}",
            status,
            Operation::new(
                TAG,
                "get_job",
                "Returns one job, with its result or error once it has ended.",
            )
            .answers(200, "The job.", Content::json::<JobStatusResponse>())
            .fails([404, 504]),
        ),
        Route::delete(
            "/v1/jobs/{job_id}",
            cancel,
            Operation::new(
                TAG,
                "cancel_job",
                "Cancels a job and answers when its work has stopped.",
            )
            .answers(200, "How the job ended.", Content::json::<JobCancelledResponse>())
            .fails([404, 504]),
        ),
        Route::get(
            "/v1/jobs/{job_id}/events",
            job_events::events,
            Operation::new(TAG, "follow_job", "Follows a job until it ends.")
                .auth(Auth::TokenOrTicket)
                .answers(200, "The events of the job.", Content::Events(job_events::ABOUT))
                .fails([404, 504]),
        ),
    ]
}

async fn list(
    With(state): With<State>,
    Caller(credential): Caller,
    QueryValue(request): QueryValue<JobListRequest>,
) -> Result<Json<JobListResponse>, HttpError> {
    ask::<JobList>(&state, &credential, request).await.map(Json)
}

async fn status(
    With(state): With<State>,
    Caller(credential): Caller,
    PathValue(job_id): PathValue<String>,
) -> Result<Json<JobStatusResponse>, HttpError> {
    let request = JobStatusRequest { job_id: id("job_id", &job_id)? };
    ask::<JobStatus>(&state, &credential, request).await.map(Json)
}

async fn cancel(
    With(state): With<State>,
    ToolCaller(credential, _): ToolCaller<JobCancel>,
    PathValue(job_id): PathValue<String>,
) -> Result<Json<JobCancelledResponse>, HttpError> {
    let request = JobCancelRequest { job_id: id("job_id", &job_id)? };
    ask::<JobCancel>(&state, &credential, request).await.map(Json)
}
