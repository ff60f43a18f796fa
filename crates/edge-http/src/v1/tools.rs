//! `/v1/tools`.

use axum::Json;
use axum::extract::State as With;
use ringback_proto::Error;
use ringback_proto::request::{ListToolsRequest, ToolInfo, ToolsListResponse};
use ringback_proto::tool::tools::ListTools;

use super::{ask, call};
use crate::api::{Content, Operation, Route};
use crate::caller::Caller;
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::{PathValue, QueryValue};

pub(super) fn routes() -> Vec<Route> {
    const TAG: &str = "tools";
    vec![
        Route::get(
            "/v1/tools",
            list,
            Operation::new(TAG, "list_tools", "Lists the tools you may call, by name.")
                .query::<ListToolsRequest>()
                .answers(200, "A page of tools.", Content::json::<ToolsListResponse>())
                .fails([504]),
        ),
        Route::get(
            "/v1/tools/{name}",
            describe,
            Operation::new(TAG, "get_tool", "Returns one tool with its input schema.")
                .answers(200, "The tool.", Content::json::<ToolInfo>())
                .fails([404, 504]),
        ),
        Route::post("/v1/tools/{name}/call", call::call, call::operation(TAG)),
    ]
}

async fn list(
    With(state): With<State>,
    Caller(credential): Caller,
    QueryValue(request): QueryValue<ListToolsRequest>,
) -> Result<Json<ToolsListResponse>, HttpError> {
    ask::<ListTools>(&state, &credential, request).await.map(Json)
}

async fn describe(
    With(state): With<State>,
    Caller(credential): Caller,
    PathValue(name): PathValue<String>,
) -> Result<Json<ToolInfo>, HttpError> {
    let request = ListToolsRequest { cursor: None, prefix: Some(name.clone()) };
    let listed = ask::<ListTools>(&state, &credential, request).await?;
    let tool = listed.tools.into_iter().find(|tool| tool.name == name);
    tool.map(Json).ok_or_else(|| Error::not_found("tool", name).into())
}
