//! Who calls: a bearer token, checked at every request.

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use ringback_broker::{Broker, Credential};
use ringback_proto::{Error, ErrorKind};

use super::HttpError;

/// How callers show who they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// By a bearer token.
    Token,
    /// Not at all: whoever reaches the listener is the daemon's own user. Only ever on loopback.
    Open,
}

/// What every route works with.
#[derive(Debug, Clone)]
pub(crate) struct State {
    pub(crate) broker: Broker,
    pub(crate) door: Door,
}

/// The caller of one request.
#[derive(Debug)]
pub(crate) struct Caller(pub(crate) Credential);

impl FromRequestParts<State> for Caller {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        if state.door == Door::Open {
            return Ok(Self(Credential::local()));
        }
        let header = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let secret = header.and_then(bearer).ok_or_else(|| {
            let message = "send the header `Authorization: Bearer TOKEN`";
            HttpError(Error::new(ErrorKind::Unauthenticated, message))
        })?;
        state.broker.authenticate(secret).map(Self).map_err(HttpError)
    }
}

/// The scheme is case-insensitive.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, secret) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}
