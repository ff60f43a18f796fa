//! `POST /client-tools/register` and `DELETE /client-tools/unregister`.

use axum::Json;
use axum::extract::State as With;
use bytes::Bytes;
use ringback_broker::{Audience, LineOffer, ToolOffer};
use ringback_proto::Error;
use ringback_proto::any::{Any, Format};
use ringback_proto::ids::TokenId;
use ringback_proto::value::Value;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::{TAG, line};
use crate::api::{Content, Operation, Route};
use crate::caller::LineCaller;
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::{RawBody, read_json};

/// Tools to register.
#[derive(Deserialize, JsonSchema)]
struct Register<'a> {
    /// The name the client chose for itself.
    #[serde(rename = "clientID")]
    client_id: String,
    /// The tools. Tools registered before stay; one with the same id is replaced.
    #[serde(borrow)]
    tools: Vec<Tool<'a>>,
    /// How long calls wait for a new stream after the last one closed; not at all if absent.
    #[serde(default, rename = "graceMs")]
    grace_ms: Option<u64>,
    /// Who else may call them: `"project"`, or a list of token ids. No one if absent.
    #[serde(default)]
    share: Option<Share>,
}

/// A tool to register.
#[derive(Deserialize, JsonSchema)]
struct Tool<'a> {
    /// The client's own name for the tool.
    id: String,
    /// What it does.
    #[serde(default)]
    description: String,
    /// The JSON Schema of its input; any object if absent.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    parameters: Option<&'a RawValue>,
    /// The timeout of a call.
    #[serde(default, rename = "timeoutMs")]
    timeout_ms: Option<u64>,
}

/// Who may call the tools.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Share {
    /// Tokens of the same project.
    Project(ShareProject),
    /// These tokens.
    Tokens(Vec<TokenId>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ShareProject {
    Project,
}

/// Registered tools.
#[derive(Serialize, JsonSchema)]
struct Registered {
    /// Full ids, in the order of the request.
    registered: Vec<String>,
}

/// Tools to unregister.
#[derive(Deserialize, JsonSchema)]
struct Unregister {
    /// The client.
    #[serde(rename = "clientID")]
    client_id: String,
    /// The tools by their own or full ids; all if absent.
    #[serde(default, rename = "toolIDs")]
    tool_ids: Option<Vec<String>>,
}

/// Unregistered tools.
#[derive(Serialize, JsonSchema)]
struct Unregistered {
    /// Always true.
    success: bool,
    /// Their full ids.
    unregistered: Vec<String>,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::post(
            "/client-tools/register",
            register,
            Operation::new(TAG, "register_client_tools", "Registers tools, all or none.")
                .body(Content::json::<Register<'_>>())
                .answers(200, "The tools are registered.", Content::json::<Registered>())
                .fails([409]),
        ),
        Route::delete(
            "/client-tools/unregister",
            unregister,
            Operation::new(TAG, "unregister_client_tools", "Unregisters tools.")
                .body(Content::json::<Unregister>())
                .answers(200, "The tools are unregistered.", Content::json::<Unregistered>()),
        ),
    ]
}

async fn register(
    With(state): With<State>,
    LineCaller(credential): LineCaller,
    RawBody(body): RawBody,
) -> Result<Json<Registered>, HttpError> {
    let register: Register<'_> = read_json(&body)?;
    let audience = match register.share {
        None => Audience::Owner,
        Some(Share::Project(ShareProject::Project)) => Audience::Project,
        Some(Share::Tokens(tokens)) => Audience::Tokens(tokens),
    };
    let timeout_ms_max = state.client_tools().timeout_ms_max;
    let offer = |tool: Tool<'_>| {
        check_timeout(tool.timeout_ms, timeout_ms_max)?;
        let schema = tool.parameters.map(|schema| Bytes::copy_from_slice(schema.get().as_bytes()));
        Ok(ToolOffer {
            name: tool.id,
            description: tool.description,
            input_schema: schema.map(|bytes| Any { format: Format::Json, bytes }),
            timeout_ms: tool.timeout_ms,
            progress_extends: true,
            audience: audience.clone(),
            ..ToolOffer::default()
        })
    };
    let tools = register.tools.into_iter().map(offer).collect::<Result<_, Error>>()?;
    let line = line(&register.client_id)?;
    let offer = LineOffer { line, grace_ms: register.grace_ms, tools };
    let registered = state.broker().lines().offer(&credential, offer)?;
    Ok(Json(Registered { registered: registered.iter().map(ToString::to_string).collect() }))
}

async fn unregister(
    With(state): With<State>,
    LineCaller(credential): LineCaller,
    RawBody(body): RawBody,
) -> Result<Json<Unregistered>, HttpError> {
    let request: Unregister = read_json(&body)?;
    let line = line(&request.client_id)?;
    let gone = state.broker().lines().withdraw(&credential, &line, request.tool_ids.as_deref())?;
    let unregistered = gone.iter().map(ToString::to_string).collect();
    Ok(Json(Unregistered { success: true, unregistered }))
}

/// Checks that a timeout is within the configured maximum.
pub(super) fn check_timeout(timeout_ms: Option<u64>, max: u64) -> Result<(), Error> {
    match timeout_ms {
        Some(ms) if ms > max => {
            let message = format!("at most {max} ms (clientTools.maxTimeout), not {ms}");
            Err(Error::invalid_field("timeout", message))
        }
        Some(_) | None => Ok(()),
    }
}

/// Deserializes a present value, null included.
fn present<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    Deserialize::deserialize(from).map(Some)
}
