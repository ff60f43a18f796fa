//! `GET /v1/tools` and `GET /v1/tools/{name}`.

use axum::Json;
use axum::extract::{Path, Query, State as With};
use ringback_proto::Error;
use ringback_proto::request::{ListToolsRequest, ToolInfo, ToolsListResponse};
use ringback_proto::tool::tools::ListTools;

use super::{Caller, HttpError, State, ask};

pub(super) async fn list(
    With(state): With<State>,
    Caller(credential): Caller,
    Query(request): Query<ListToolsRequest>,
) -> Result<Json<ToolsListResponse>, HttpError> {
    ask::<ListTools>(&state.broker, &credential, request).await.map(Json)
}

pub(super) async fn describe(
    With(state): With<State>,
    Caller(credential): Caller,
    Path(name): Path<String>,
) -> Result<Json<ToolInfo>, HttpError> {
    let request = ListToolsRequest { cursor: None, prefix: Some(name.clone()) };
    let listed = ask::<ListTools>(&state.broker, &credential, request).await?;
    let tool = listed.tools.into_iter().find(|tool| tool.name == name);
    tool.map(Json).ok_or_else(|| HttpError(Error::not_found("tool", name)))
}
