//! `/v1`: calls, jobs, content and tokens as HTTP and JSON. Most routes are a view of a tool.

mod artifacts;
mod audit;
mod blobs;
mod call;
mod job_events;
mod jobs;
mod monitor;
mod preferences;
mod range;
mod session_events;
mod sessions;
mod tickets;
mod timeline;
mod tokens;
mod tools;

use ringback_broker::{Call, Credential, Edge};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::ids::RequestId;
use ringback_proto::{Error, Tool};

pub use self::blobs::PATH as BLOBS;
use crate::api::Route;
use crate::edge::State;
use crate::error::HttpError;

pub(crate) fn routes() -> Vec<Route> {
    let areas = [
        tools::routes(),
        jobs::routes(),
        blobs::routes(),
        artifacts::routes(),
        sessions::routes(),
        tokens::routes(),
        tickets::routes(),
        timeline::routes(),
        monitor::routes(),
        audit::routes(),
    ];
    areas.into_iter().flatten().collect()
}

/// Calls a tool that starts no job, for routes that are a view of it.
pub(crate) async fn ask<T: Tool>(
    state: &State,
    credential: &Credential,
    request: T::Request,
) -> Result<T::Response, HttpError> {
    ask_once::<T>(state, credential, request, None).await
}

/// The same with an id: a repeated id is the same call.
async fn ask_once<T: Tool>(
    state: &State,
    credential: &Credential,
    request: T::Request,
    request_id: Option<RequestId>,
) -> Result<T::Response, HttpError> {
    let envelope = RequestEnvelope {
        request: ToolCall::Native(request.into()),
        options: CallOptions::default(),
    };
    let call = Call { credential, edge: Edge::Http, envelope, request_id };
    Ok(state.broker().call(call).wait::<T>().await?)
}

pub(crate) fn unexpected() -> HttpError {
    Error::internal("http", "a tool returned a reply that its row does not allow").into()
}

/// Parses an id in the path.
fn id<T: std::str::FromStr<Err: std::fmt::Display>>(
    field: &str,
    text: &str,
) -> Result<T, HttpError> {
    text.parse::<T>().map_err(|error| Error::invalid_field(field, error.to_string()).into())
}
