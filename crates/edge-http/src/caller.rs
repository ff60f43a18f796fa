//! The caller of a request: a bearer token, checked at every request, or a ticket for one stream.

use std::marker::PhantomData;

use axum::extract::{FromRequestParts, Query};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use ringback_broker::{Credential, Door, Edge};
use ringback_proto::{Error, ErrorKind, Tool};
use serde::Deserialize;

use crate::edge::State;
use crate::error::HttpError;

/// The caller of one request.
#[derive(Debug)]
pub(crate) struct Caller(pub(crate) Credential);

/// The caller of one request, who may call this tool: checked before anything else of the request
/// is read.
#[derive(Debug)]
pub(crate) struct ToolCaller<T>(pub(crate) Credential, pub(crate) PhantomData<T>);

/// The caller of one request, who may have tools on lines: checked before anything else is read.
#[derive(Debug)]
pub(crate) struct LineCaller(pub(crate) Credential);

/// The caller of a stream, who may use a ticket: a browser's `EventSource` sends no headers.
#[derive(Debug)]
pub(crate) struct StreamCaller(pub(crate) Credential);

#[derive(Debug, Deserialize)]
struct TicketQuery {
    ticket: Option<String>,
}

impl FromRequestParts<State> for Caller {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        if state.door() == Door::Open {
            return Ok(Self(Credential::local()));
        }
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let secret = header
            .and_then(bearer)
            .ok_or_else(|| unauthenticated("send the header `Authorization: Bearer TOKEN`"))?;
        Ok(state.broker().authenticate(secret).map(Self)?)
    }
}

impl<T: Tool> FromRequestParts<State> for ToolCaller<T> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        let Caller(credential) = Caller::from_request_parts(parts, state).await?;
        state.broker().may_call(&credential, Edge::Http, T::NAME)?;
        Ok(Self(credential, PhantomData))
    }
}

impl FromRequestParts<State> for LineCaller {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        let Caller(credential) = Caller::from_request_parts(parts, state).await?;
        state.broker().lines().may_offer(&credential)?;
        Ok(Self(credential))
    }
}

impl FromRequestParts<State> for StreamCaller {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        let ticket = match Query::<TicketQuery>::try_from_uri(&parts.uri) {
            Ok(Query(TicketQuery { ticket: Some(ticket) })) => ticket,
            Ok(Query(TicketQuery { ticket: None })) | Err(_) => {
                let Caller(credential) = Caller::from_request_parts(parts, state).await?;
                return Ok(Self(credential));
            }
        };
        let used = state.tickets().redeem(&ticket, state.broker().now());
        let credential = used.ok_or_else(|| {
            unauthenticated(
                "the ticket is used, expired or unknown; get one with `POST /v1/tickets`",
            )
        })?;
        credential.principal(state.broker().now())?;
        Ok(Self(credential))
    }
}

/// The scheme is case-insensitive.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, secret) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

fn unauthenticated(message: &str) -> HttpError {
    Error::new(ErrorKind::Unauthenticated, message).into()
}
