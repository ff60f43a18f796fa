//! `POST /v1/tickets`.

use axum::Json;
use axum::extract::State as With;
use axum::http::StatusCode;
use axum::http::header::CACHE_CONTROL;
use axum::response::{IntoResponse, Response};
use ringback_proto::secret::Secret;
use schemars::JsonSchema;
use serde::Serialize;

use crate::api::{Content, Operation, Route};
use crate::caller::Caller;
use crate::edge::State;
use crate::error::HttpError;
use crate::tickets::TICKET_MS;

/// A ticket.
#[derive(Debug, Serialize, JsonSchema)]
struct TicketResponse {
    /// The secret, for `?ticket=`.
    ticket: Secret,
    /// How long it is valid.
    expires_in_ms: u64,
}

pub(super) fn routes() -> Vec<Route> {
    let about = "Issues a ticket for one stream, valid once and for a minute: `EventSource` \
                 cannot send a header, so it sends `?ticket=…` instead.";
    vec![Route::post(
        "/v1/tickets",
        issue,
        Operation::new("tokens", "issue_ticket", about)
            .answers(201, "The ticket.", Content::json::<TicketResponse>())
            .fails([429]),
    )]
}

async fn issue(
    With(state): With<State>,
    Caller(credential): Caller,
) -> Result<Response, HttpError> {
    let now = state.broker().now();
    credential.principal(now)?;
    let ticket = state.tickets().issue(credential, now)?;
    let response = TicketResponse { ticket, expires_in_ms: TICKET_MS };
    Ok((StatusCode::CREATED, [(CACHE_CONTROL, "no-store")], Json(response)).into_response())
}
