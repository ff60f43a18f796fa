//! Calls as HTTP and JSON.
//!
//! | route | answer |
//! |---|---|
//! | `GET /v1/tools` | the tools you may call, a page at a time |
//! | `GET /v1/tools/{name}` | one of them |
//! | `POST /v1/tools/{name}/call` | `{"result": …}`, or 202 `{"job": …}`; server-sent events if asked |
//! | `GET /v1/jobs` | jobs, newest first |
//! | `GET /v1/jobs/{id}` | one of them, with its result |
//! | `DELETE /v1/jobs/{id}` | cancels it, and answers when its work has stopped |

mod call;
mod caller;
mod error;
mod jobs;
mod tools;

use axum::Router;
use axum::routing::{get, post};
use ringback_broker::{Answer, Broker, Call, Credential, Edge};
use ringback_proto::envelope::{CallOptions, RequestEnvelope, ToolCall};
use ringback_proto::{Error, ResponseEnvelope, Tool};

pub use self::caller::Door;
pub(crate) use self::caller::{Caller, State};
pub(crate) use self::error::HttpError;

/// The routes of `/v1`.
pub fn v1(broker: Broker, door: Door) -> Router {
    let routes = Router::new()
        .route("/tools", get(tools::list))
        .route("/tools/{name}", get(tools::describe))
        .route("/tools/{name}/call", post(call::call))
        .route("/jobs", get(jobs::list))
        .route("/jobs/{id}", get(jobs::status).delete(jobs::cancel))
        .fallback(no_such_route)
        .with_state(State { broker, door });
    Router::new().nest("/v1", routes)
}

/// Calls a tool that makes no job, for routes that are a view of it.
pub(crate) async fn ask<T: Tool>(
    broker: &Broker,
    credential: &Credential,
    request: T::Request,
) -> Result<T::Response, HttpError> {
    let envelope = RequestEnvelope {
        request: ToolCall::Native(request.into()),
        options: CallOptions::default(),
    };
    let reply = match broker.call(Call { credential, edge: Edge::Http, envelope, request_id: None })
    {
        Answer::Now(reply) => Some(reply),
        Answer::Later(mut replies, _) => replies.next().await,
    };
    match reply {
        Some(ResponseEnvelope::Success { response }) => {
            T::Response::try_from(response).map_err(|_| unexpected())
        }
        Some(ResponseEnvelope::Error(error)) => Err(HttpError(error.into())),
        Some(
            ResponseEnvelope::JobStarted { .. }
            | ResponseEnvelope::Ack { .. }
            | ResponseEnvelope::StreamStart { .. }
            | ResponseEnvelope::StreamChunk { .. }
            | ResponseEnvelope::StreamEnd { .. },
        )
        | None => Err(unexpected()),
    }
}

fn unexpected() -> HttpError {
    HttpError(Error::internal("http", "a tool answered in a way its row does not allow"))
}

async fn no_such_route() -> HttpError {
    HttpError(Error::new(
        ringback_proto::ErrorKind::NotFound,
        "there is no such route; `GET /v1/tools` lists what can be called",
    ))
}
