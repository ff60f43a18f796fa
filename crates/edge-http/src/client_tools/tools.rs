//! `GET /client-tools/tools` and `GET /client-tools/tools/{client_id}`, in order of registration.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State as With;
use axum::response::{IntoResponse, Response};
use ringback_broker::{LineKind, OfferedTool};
use ringback_proto::value::Value;
use schemars::JsonSchema;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{TAG, line, no_client, nobody};
use crate::api::{Content, Operation, Route};
use crate::caller::Caller;
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::PathValue;
use crate::v1::unexpected;

/// A registered tool.
#[derive(Serialize, JsonSchema)]
struct Definition<'a> {
    /// Its full id.
    id: &'a str,
    /// What it does.
    description: &'a str,
    /// The JSON Schema of its input, as registered.
    #[schemars(with = "BTreeMap<String, Value>")]
    parameters: &'a RawValue,
}

/// Tools by full id, in order.
struct ToolsById<'a>(Vec<Definition<'a>>);

impl Serialize for ToolsById<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for tool in &self.0 {
            map.serialize_entry(tool.id, tool)?;
        }
        map.end()
    }
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(
            "/client-tools/tools",
            all,
            Operation::new(
                TAG,
                "list_client_tools",
                "Lists the tools of all clients that you may see.",
            )
            .answers(
                200,
                "The tools by full id.",
                Content::json::<BTreeMap<String, Definition<'_>>>(),
            ),
        ),
        Route::get(
            "/client-tools/tools/{client_id}",
            of_client,
            Operation::new(TAG, "list_tools_of_client", "Lists the tools of one client.").answers(
                200,
                "The client's tools.",
                Content::json::<Vec<Definition<'_>>>(),
            ),
        ),
        Route::get("/client-tools/tools/", no_client, nobody("list_tools_of_unnamed_client")),
    ]
}

async fn all(With(state): With<State>, Caller(credential): Caller) -> Result<Response, HttpError> {
    let tools = state.broker().lines().tools(&credential, LineKind::Client)?;
    Ok(Json(ToolsById(definitions(&tools)?)).into_response())
}

async fn of_client(
    With(state): With<State>,
    Caller(credential): Caller,
    PathValue(client_id): PathValue<String>,
) -> Result<Response, HttpError> {
    let tools = state.broker().lines().tools_of(&credential, &line(&client_id)?)?;
    Ok(Json(definitions(&tools)?).into_response())
}

fn definitions(tools: &[Arc<OfferedTool>]) -> Result<Vec<Definition<'_>>, HttpError> {
    tools.iter().map(|tool| definition(tool)).collect()
}

fn definition(tool: &OfferedTool) -> Result<Definition<'_>, HttpError> {
    let parameters = serde_json::from_slice(tool.info.schema_json()).map_err(|_| unexpected())?;
    Ok(Definition { id: &tool.full_name, description: &tool.info.description, parameters })
}
