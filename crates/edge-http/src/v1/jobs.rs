//! `/v1/jobs`.

use axum::Json;
use axum::extract::{Path, Query, State as With};
use ringback_proto::Error;
use ringback_proto::ids::JobId;
use ringback_proto::request::{
    JobCancelRequest, JobCancelledResponse, JobListRequest, JobListResponse, JobStatusRequest,
    JobStatusResponse,
};
use ringback_proto::tool::tools::{JobCancel, JobList, JobStatus};

use super::{Caller, HttpError, State, ask};

pub(super) async fn list(
    With(state): With<State>,
    Caller(credential): Caller,
    Query(request): Query<JobListRequest>,
) -> Result<Json<JobListResponse>, HttpError> {
    ask::<JobList>(&state.broker, &credential, request).await.map(Json)
}

pub(super) async fn status(
    With(state): With<State>,
    Caller(credential): Caller,
    Path(id): Path<String>,
) -> Result<Json<JobStatusResponse>, HttpError> {
    let request = JobStatusRequest { job_id: job_id(&id)? };
    ask::<JobStatus>(&state.broker, &credential, request).await.map(Json)
}

pub(super) async fn cancel(
    With(state): With<State>,
    Caller(credential): Caller,
    Path(id): Path<String>,
) -> Result<Json<JobCancelledResponse>, HttpError> {
    let request = JobCancelRequest { job_id: job_id(&id)? };
    ask::<JobCancel>(&state.broker, &credential, request).await.map(Json)
}

fn job_id(id: &str) -> Result<JobId, HttpError> {
    id.parse::<JobId>()
        .map_err(|error| HttpError(Error::invalid_field("job_id", error.to_string())))
}
