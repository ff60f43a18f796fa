//! `/v1/artifacts`.

use axum::Json;
use axum::extract::State as With;
use ringback_proto::request::{
    ArtifactGetRequest, ArtifactInfoResponse, ArtifactListRequest, ArtifactListResponse,
};
use ringback_proto::tool::tools::{ArtifactGet, ArtifactList};

use super::{ask, id};
use crate::api::{Content, Operation, Route};
use crate::caller::Caller;
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::{PathValue, QueryValue};

pub(super) fn routes() -> Vec<Route> {
    const TAG: &str = "artifacts";
    vec![
        Route::get(
            "/v1/artifacts",
            list,
            Operation::new(TAG, "list_artifacts", "Lists artifacts, newest first.")
                .query::<ArtifactListRequest>()
                .answers(200, "A page of artifacts.", Content::json::<ArtifactListResponse>())
                .fails([504]),
        ),
        Route::get(
            "/v1/artifacts/{artifact_id}",
            get,
            Operation::new(TAG, "get_artifact", "Returns one artifact in full.")
                .answers(200, "The artifact.", Content::json::<ArtifactInfoResponse>())
                .fails([404, 504]),
        ),
    ]
}

async fn list(
    With(state): With<State>,
    Caller(credential): Caller,
    QueryValue(request): QueryValue<ArtifactListRequest>,
) -> Result<Json<ArtifactListResponse>, HttpError> {
    ask::<ArtifactList>(&state, &credential, request).await.map(Json)
}

async fn get(
    With(state): With<State>,
    Caller(credential): Caller,
    PathValue(artifact_id): PathValue<String>,
) -> Result<Json<ArtifactInfoResponse>, HttpError> {
    let request = ArtifactGetRequest { id: id("artifact_id", &artifact_id)? };
    ask::<ArtifactGet>(&state, &credential, request).await.map(Json)
}
