//! CORS headers, so that pages of the configured origins may send requests and read the answers.
//!
//! The guard decides which origins those are; requests of any other never get here.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;

/// Every method of every route; the request itself will show which ones a path supports.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, PUT, DELETE");

/// Headers that pages may send in addition to those that browsers always allow.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Authorization, Content-Type, Prefer, Idempotency-Key, Last-Event-ID, Range, If-None-Match, \
     If-Range, Traceparent, Mcp-Session-Id, Mcp-Protocol-Version",
);

/// Headers that pages may read in addition to those that browsers always show.
const RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static(
    "Location, ETag, Accept-Ranges, Content-Range, Content-Length, Retry-After, WWW-Authenticate, \
     Allow, Mcp-Session-Id",
);

/// Ten minutes: a page that calls often rarely asks, and a changed list soon takes effect.
const PREFLIGHT_SECS: HeaderValue = HeaderValue::from_static("600");

/// Whether a request is a preflight.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS
        && request.headers().contains_key(header::ORIGIN)
        && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight.
pub(super) fn preflight() -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_SECS);
    response
}

/// Lets pages of an admitted origin read an answer.
pub(super) fn share(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
}
