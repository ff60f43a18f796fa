//! `/v1/sessions`: running agents.

use axum::Json;
use axum::extract::State as With;
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use ringback_proto::request::{
    AckResponse, SessionEndRequest, SessionGetRequest, SessionListRequest, SessionListResponse,
    SessionMessageRequest, SessionMessagedResponse, SessionResponse,
};
use ringback_proto::tool::tools::{SessionEnd, SessionGet, SessionList, SessionMessage};

use super::preferences::idempotency_key;
use super::{ask, ask_once, id, session_events};
use crate::api::{Content, Operation, Route};
use crate::caller::{Caller, ToolCaller};
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::{JsonBody, PathValue, QueryValue};

const PATH: &str = "/v1/sessions";

pub(super) fn routes() -> Vec<Route> {
    const TAG: &str = "sessions";
    const ONE: &str = "/v1/sessions/{session_id}";
    let messaged = Content::json::<SessionMessagedResponse>;
    vec![
        Route::get(
            PATH,
            list,
            Operation::new(TAG, "list_sessions", "Lists sessions, newest first.")
                .query::<SessionListRequest>()
                .answers(200, "A page of sessions.", Content::json::<SessionListResponse>())
                .fails([504]),
        ),
        Route::post(
            PATH,
            message,
            Operation::new(TAG, "message_session", "Sends a message to an agent, new or running.")
                .header(
                    "Idempotency-Key",
                    "The same key from the same token identifies the same message.",
                )
                .body(Content::json::<SessionMessageRequest>())
                .answers(200, "The agent received the message.", messaged())
                .answers(201, "A session was started for the message.", messaged())
                .with("Location", "The URL of the session.")
                .fails([404, 409, 429, 504]),
        ),
        Route::get(
            ONE,
            get,
            Operation::new(TAG, "get_session", "Returns one session.")
                .answers(200, "The session.", Content::json::<SessionResponse>())
                .fails([404, 504]),
        ),
        Route::delete(
            ONE,
            end,
            Operation::new(
                TAG,
                "end_session",
                "Ends a session, its agent and everything it started.",
            )
            .answers(200, "The session has ended.", Content::json::<AckResponse>())
            .fails([404, 409, 504]),
        ),
        Route::get(
            "/v1/sessions/{session_id}/events",
            session_events::events,
            session_events::operation(TAG),
        ),
    ]
}

async fn list(
    With(state): With<State>,
    Caller(credential): Caller,
    QueryValue(request): QueryValue<SessionListRequest>,
) -> Result<Json<SessionListResponse>, HttpError> {
    ask::<SessionList>(&state, &credential, request).await.map(Json)
}

async fn message(
    With(state): With<State>,
    ToolCaller(credential, _): ToolCaller<SessionMessage>,
    headers: HeaderMap,
    JsonBody(request): JsonBody<SessionMessageRequest>,
) -> Result<Response, HttpError> {
    let key = idempotency_key(&headers)?;
    let told = ask_once::<SessionMessage>(&state, &credential, request, key).await?;
    if !told.spawned {
        return Ok(Json(told).into_response());
    }
    let location = [(LOCATION, format!("{PATH}/{}", told.session_id))];
    Ok((StatusCode::CREATED, location, Json(told)).into_response())
}

async fn get(
    With(state): With<State>,
    Caller(credential): Caller,
    PathValue(session_id): PathValue<String>,
) -> Result<Json<SessionResponse>, HttpError> {
    let request = SessionGetRequest { session_id: id("session_id", &session_id)? };
    ask::<SessionGet>(&state, &credential, request).await.map(Json)
}

async fn end(
    With(state): With<State>,
    ToolCaller(credential, _): ToolCaller<SessionEnd>,
    PathValue(session_id): PathValue<String>,
) -> Result<Json<AckResponse>, HttpError> {
    let request = SessionEndRequest { session_id: id("session_id", &session_id)? };
    ask::<SessionEnd>(&state, &credential, request).await.map(Json)
}
