//! `POST /client-tools/execute`: calls a client's tool and waits for its result.

use std::num::NonZeroU64;
use std::sync::Arc;

use axum::extract::State as With;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use ringback_broker::{Answer, CallContext, Edge, LineRequest};
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::CallOptions;
use ringback_proto::value::Value;
use ringback_proto::{Error, ResponseEnvelope, ToolResponse};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::TAG;
use super::register::check_timeout;
use crate::api::{Content, Operation};
use crate::caller::LineCaller;
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::{RawBody, read_json};
use crate::v1::unexpected;

/// A call.
#[derive(Deserialize, JsonSchema)]
struct Execute<'a> {
    /// The tool's full id.
    #[serde(rename = "toolID")]
    tool_id: String,
    /// Your own id for the call, not in use; generated if absent.
    #[serde(default, rename = "requestID")]
    request_id: Option<String>,
    /// Passed on to the client.
    #[serde(default, rename = "sessionID")]
    session_id: Option<String>,
    /// Passed on to the client.
    #[serde(default, rename = "messageID")]
    message_id: Option<String>,
    /// Passed on to the client.
    #[serde(default, rename = "callID")]
    call_id: Option<String>,
    /// The tool's input; an empty object if absent.
    #[serde(borrow, default)]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    input: Option<&'a RawValue>,
    /// The timeout in milliseconds; the default if absent or 0.
    #[serde(default)]
    timeout: Option<u64>,
}

/// The client's answer.
#[derive(Serialize, JsonSchema)]
pub(super) struct Executed<'a> {
    /// Always `success`.
    pub(super) status: &'static str,
    /// A heading.
    #[schemars(with = "String")]
    pub(super) title: &'a RawValue,
    /// The result.
    #[schemars(with = "String")]
    pub(super) output: &'a RawValue,
    /// Anything else from the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    pub(super) metadata: Option<&'a RawValue>,
}

pub(super) fn operation() -> Operation {
    Operation::new(TAG, "execute_client_tool", "Calls a client's tool and waits for its result.")
        .body(Content::json::<Execute<'_>>())
        .answers(200, "The client's answer.", Content::json::<Executed<'_>>())
        .fails([404, 409, 499, 502, 504])
}

pub(super) async fn execute(
    With(state): With<State>,
    LineCaller(credential): LineCaller,
    RawBody(body): RawBody,
) -> Result<Response, HttpError> {
    let execute: Execute<'_> = read_json(&body)?;
    check_timeout(execute.timeout, state.client_tools().timeout_ms_max)?;
    if execute.request_id.as_deref() == Some("") {
        return Err(Error::invalid_field("requestID", "an id must not be empty").into());
    }
    let input = execute
        .input
        .map_or(Bytes::from_static(b"{}"), |input| body.slice_ref(input.get().as_bytes()));
    let request = LineRequest {
        credential: &credential,
        edge: Edge::Http,
        tool: execute.tool_id,
        arguments: Any { format: Format::Json, bytes: input },
        options: CallOptions {
            deadline_ms: execute.timeout.and_then(NonZeroU64::new),
            ..CallOptions::default()
        },
        request_id: None,
        custom_id: execute.request_id.map(Arc::from),
        context: CallContext {
            session_id: execute.session_id.map(Arc::from),
            message_id: execute.message_id.map(Arc::from),
            call_id: execute.call_id.map(Arc::from),
        },
    };
    let answer = state.broker().lines().call(request);
    drop(body);
    let reply = match answer {
        Answer::Now(reply) => reply,
        // A caller that hangs up drops this, and the client is notified.
        Answer::Later(mut replies, _) => replies.next().await.ok_or_else(unexpected)?,
    };
    answered(reply)
}

/// The client's own bytes.
fn answered(reply: ResponseEnvelope) -> Result<Response, HttpError> {
    match reply {
        ResponseEnvelope::Success { response: ToolResponse::Passed(Any { bytes, .. }) } => {
            Ok(([(CONTENT_TYPE, "application/json")], bytes).into_response())
        }
        ResponseEnvelope::Error(error) => Err(Error::from(error).into()),
        ResponseEnvelope::Success { .. }
        | ResponseEnvelope::JobStarted { .. }
        | ResponseEnvelope::Ack { .. }
        | ResponseEnvelope::StreamStart { .. }
        | ResponseEnvelope::StreamChunk { .. }
        | ResponseEnvelope::StreamEnd { .. } => Err(unexpected()),
    }
}
