//! `POST /client-tools/result` and `POST /client-tools/progress`: a client's messages about a call.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State as With;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use ringback_proto::any::{Any, Format};
use ringback_proto::error::Certainty;
use ringback_proto::value::Value;
use ringback_proto::{Error, ErrorKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::TAG;
use super::execute::Executed;
use crate::api::{Content, Operation, Route};
use crate::caller::LineCaller;
use crate::edge::State;
use crate::error::{ErrorBody, HttpError};
use crate::extractors::{RawBody, invalid, read_json};

/// The part of a client's error that is passed on: enough for a stack trace, too little to flood a
/// log.
const ERROR_CHARS_MAX: usize = 16_384;

/// The call that a result belongs to, and whether the result is nested.
#[derive(Deserialize)]
struct PostedResult<'a> {
    #[serde(rename = "requestID")]
    request_id: String,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
}

/// The outcome of a call.
#[derive(Deserialize, JsonSchema)]
struct Outcome<'a> {
    /// `success` or `error`.
    status: Status,
    /// A heading, for a success.
    #[serde(borrow, default)]
    #[schemars(with = "Option<String>")]
    title: Option<&'a RawValue>,
    /// The result, for a success.
    #[serde(borrow, default)]
    #[schemars(with = "Option<String>")]
    output: Option<&'a RawValue>,
    /// Anything else, for a success.
    #[serde(borrow, default)]
    #[schemars(with = "Option<BTreeMap<String, Value>>")]
    metadata: Option<&'a RawValue>,
    /// What went wrong, for an error.
    #[serde(default)]
    error: Option<String>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Success,
    Error,
}

/// The two dialects: the shape of the request decides the shape of the answer.
#[derive(Clone, Copy)]
enum Dialect {
    Nested,
    Flat,
}

/// A result: nested in `result`, or flat beside the id.
#[derive(JsonSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "it describes a body that is read in parts")]
enum ResultBody {
    /// Nested.
    Nested {
        /// The call.
        #[serde(rename = "requestID")]
        request_id: String,
        /// The outcome; a success has `title` and `output`.
        result: Outcome<'static>,
    },
    /// Flat.
    Flat {
        /// The call.
        #[serde(rename = "requestID")]
        request_id: String,
        /// The outcome.
        #[serde(flatten)]
        outcome: Outcome<'static>,
    },
}

/// The result is accepted: an object in the nested dialect, `true` in the flat one.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Counted {
    /// Nested.
    Nested {
        /// Always true.
        success: bool,
    },
    /// Flat.
    Flat(bool),
}

/// No call with this id is waiting for you.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum Unknown {
    /// Nested.
    Nested {
        /// Always the same text.
        error: &'static str,
    },
    /// Flat.
    Flat(Box<ErrorBody>),
}

/// The progress of a call.
#[derive(Deserialize, JsonSchema)]
struct Progress {
    /// The call.
    #[serde(rename = "requestID")]
    request_id: String,
    /// 0 to 100.
    percent: f32,
    /// What is being done.
    #[serde(default)]
    message: String,
}

pub(super) fn routes() -> Vec<Route> {
    const UNKNOWN: &str = "No call with this id is waiting for your answer.";
    vec![
        Route::post(
            "/client-tools/result",
            result,
            Operation::new(TAG, "post_client_result", "Answers a call. The first result counts.")
                .body(Content::json::<ResultBody>())
                .answers(200, "The result is accepted.", Content::json::<Counted>())
                .answers(404, UNKNOWN, Content::json::<Unknown>()),
        ),
        Route::post(
            "/client-tools/progress",
            progress,
            Operation::new(TAG, "post_client_progress", "Reports the progress of a call.")
                .body(Content::json::<Progress>())
                .answers(
                    200,
                    "The progress is passed to the caller, if it follows the call.",
                    Content::json::<Counted>(),
                )
                .fails([404]),
        ),
    ]
}

async fn result(
    With(state): With<State>,
    LineCaller(credential): LineCaller,
    RawBody(body): RawBody,
) -> Result<Response, HttpError> {
    let posted: PostedResult<'_> = read_json(&body)?;
    if posted.request_id.is_empty() {
        return Err(Error::invalid_field("requestID", "requestID required").into());
    }
    let (dialect, outcome) = match posted.result {
        Some(nested) => {
            let outcome: Outcome<'_> =
                serde_json::from_str(nested.get()).map_err(|error| invalid("`result`", &error))?;
            check_nested(&outcome)?;
            (Dialect::Nested, taken(&outcome, || Ok(body.slice_ref(nested.get().as_bytes())))?)
        }
        None => {
            let outcome: Outcome<'_> = read_json(&body)?;
            (Dialect::Flat, taken(&outcome, || flat(&outcome))?)
        }
    };
    match state.broker().lines().answer(&credential, &posted.request_id, outcome) {
        Ok(()) => Ok(Json(counted(dialect)).into_response()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let unknown = match dialect {
                Dialect::Nested => Unknown::Nested { error: "Unknown request ID" },
                Dialect::Flat => Unknown::Flat(Box::new(ErrorBody::from(&error))),
            };
            Ok((StatusCode::NOT_FOUND, Json(unknown)).into_response())
        }
        Err(error) => Err(error.into()),
    }
}

async fn progress(
    With(state): With<State>,
    LineCaller(credential): LineCaller,
    RawBody(body): RawBody,
) -> Result<Json<Counted>, HttpError> {
    let Progress { request_id, percent, message } = read_json(&body)?;
    if !(0.0..=100.0).contains(&percent) {
        return Err(Error::invalid_field("percent", "a percentage must be from 0 to 100").into());
    }
    state.broker().lines().progress(&credential, &request_id, percent, message).await?;
    Ok(Json(counted(Dialect::Nested)))
}

const fn counted(dialect: Dialect) -> Counted {
    match dialect {
        Dialect::Nested => Counted::Nested { success: true },
        Dialect::Flat => Counted::Flat(true),
    }
}

/// The caller's result: the client's bytes, or its error.
fn taken(
    outcome: &Outcome<'_>,
    success: impl FnOnce() -> Result<Bytes, HttpError>,
) -> Result<Result<Any, Error>, HttpError> {
    match outcome.status {
        Status::Success => {
            for (name, text) in [("title", outcome.title), ("output", outcome.output)] {
                if text.is_some_and(|text| !text.get().starts_with('"')) {
                    return Err(
                        Error::invalid_field(name, format!("`{name}` must be a string")).into()
                    );
                }
            }
            Ok(Ok(Any { format: Format::Json, bytes: success()? }))
        }
        Status::Error => {
            let text = outcome.error.as_deref().unwrap_or("the client gave no reason");
            let text: String = text.chars().take(ERROR_CHARS_MAX).collect();
            Ok(Err(Error::new(ErrorKind::ToolFailed, text).with_certainty(Certainty::Ran)))
        }
    }
}

/// Checks that a nested result has all its fields.
fn check_nested(outcome: &Outcome<'_>) -> Result<(), HttpError> {
    let missing = match outcome.status {
        Status::Success if outcome.title.is_none() => "title",
        Status::Success if outcome.output.is_none() => "output",
        Status::Error if outcome.error.is_none() => "error",
        Status::Success | Status::Error => return Ok(()),
    };
    Err(Error::invalid_field(missing, format!("`result.{missing}` is missing")).into())
}

/// Converts a flat result to the nested form.
fn flat(outcome: &Outcome<'_>) -> Result<Bytes, HttpError> {
    let empty = serde_json::from_str::<&RawValue>("\"\"").map_err(|_| crate::v1::unexpected())?;
    let executed = Executed {
        status: "success",
        title: outcome.title.unwrap_or(empty),
        output: outcome.output.unwrap_or(empty),
        metadata: outcome.metadata,
    };
    serde_json::to_vec(&executed).map(Bytes::from).map_err(|_| crate::v1::unexpected())
}
