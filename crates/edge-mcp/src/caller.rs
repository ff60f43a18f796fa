//! The caller of a request: a bearer token, checked at every request, and the challenge that
//! explains which tokens are accepted.

use std::sync::Arc;

use axum::extract::State as With;
use axum::http::header::{AUTHORIZATION, HOST, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ringback_broker::{Credential, Door};
use ringback_mcp_wire::{Code, Fault, Id};
use ringback_proto::principal::Level;
use ringback_proto::{Error, ErrorKind};
use serde::Serialize;

use crate::response;
use crate::state::State;

/// The path of the document about this resource (RFC 9728, section 3.1).
pub(crate) const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";

/// Returns the caller of a request, or the challenge.
pub(crate) fn authenticate(
    state: &State,
    headers: &HeaderMap,
) -> Result<Credential, Box<Response>> {
    if state.config.door == Door::Open {
        return Ok(Credential::local());
    }
    let Some(secret) = secret(headers) else {
        let message = "send the header `Authorization: Bearer TOKEN`";
        let error = Error::new(ErrorKind::Unauthenticated, message);
        return Err(Box::new(unauthenticated(state, headers, None, &error)));
    };
    state
        .broker
        .authenticate(secret)
        .map_err(|error| Box::new(unauthenticated(state, headers, Some("invalid_token"), &error)))
}

/// 401 with a challenge that points to the metadata.
pub(crate) fn unauthenticated(
    state: &State,
    headers: &HeaderMap,
    code: Option<&'static str>,
    error: &Error,
) -> Response {
    let code = code.map(|code| format!("error=\"{code}\", ")).unwrap_or_default();
    let challenge = format!("Bearer {code}resource_metadata=\"{}\"", metadata_url(state, headers));
    challenged(StatusCode::UNAUTHORIZED, &challenge, None, error)
}

/// Whether a client could get a better token on its own. If not, the model gets the error instead.
pub(crate) const fn can_ask_for_more(state: &State) -> bool {
    !state.config.authorization_servers.is_empty()
}

/// 403 with the scope that would suffice, for clients that can get it.
pub(crate) fn forbidden(state: &State, headers: &HeaderMap, id: &Id, error: &Error) -> Response {
    let scope = error.context().scope.unwrap_or(Level::Admin);
    let challenge = format!(
        "Bearer error=\"insufficient_scope\", scope=\"{scope}\", resource_metadata=\"{}\"",
        metadata_url(state, headers)
    );
    challenged(StatusCode::FORBIDDEN, &challenge, Some(id), error)
}

fn challenged(status: StatusCode, challenge: &str, id: Option<&Id>, error: &Error) -> Response {
    let fault = Fault::new(Code::InvalidRequest, error.message());
    let mut response = response::refusal(status, id, &fault);
    if let Ok(value) = HeaderValue::from_str(challenge) {
        response.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
    response
}

/// The bearer token of a request, if it has exactly one.
pub(crate) fn secret(headers: &HeaderMap) -> Option<&str> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let only = values.next().filter(|_| values.next().is_none());
    only.and_then(|value| value.to_str().ok()).and_then(bearer)
}

/// The scheme is case-insensitive.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, secret) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| secret.trim())
}

/// `GET /.well-known/oauth-protected-resource[/mcp]`.
pub(crate) async fn metadata(With(state): With<Arc<State>>, headers: HeaderMap) -> Response {
    #[derive(Serialize)]
    struct Metadata<'a> {
        resource: String,
        authorization_servers: &'a [String],
        bearer_methods_supported: [&'static str; 1],
        scopes_supported: [Level; 3],
        resource_name: &'static str,
    }
    let metadata = Metadata {
        resource: format!("{}/mcp", origin(&state, &headers)),
        authorization_servers: &state.config.authorization_servers,
        bearer_methods_supported: ["header"],
        scopes_supported: Level::ALL,
        resource_name: "Ringback",
    };
    axum::Json(metadata).into_response()
}

fn metadata_url(state: &State, headers: &HeaderMap) -> String {
    format!("{}{METADATA_PATH}/mcp", origin(state, headers))
}

/// Our own address as the client knows it. The listener accepts only known names, and a name
/// contains no quotes.
fn origin(state: &State, headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok()).unwrap_or("localhost");
    let host: String = host.chars().filter(|c| !matches!(c, '"' | '\\')).collect();
    let scheme = if state.config.is_https { "https" } else { "http" };
    format!("{scheme}://{host}")
}
