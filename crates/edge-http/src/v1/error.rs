//! The one error as HTTP: a status, a code and a JSON body.

use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ringback_proto::error::{Certainty, ErrorContext};
use ringback_proto::{Error, ErrorKind};
use serde::Serialize;

/// An error that becomes a response.
#[derive(Debug)]
pub(crate) struct HttpError(pub(crate) Error);

/// The body of every error.
#[derive(Debug, Serialize)]
pub(crate) struct ErrorBody<'a> {
    error: ErrorFields<'a>,
}

#[derive(Debug, Serialize)]
struct ErrorFields<'a> {
    code: &'static str,
    message: &'a str,
    certainty: Certainty,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<&'a ErrorContext>,
}

impl<'a> From<&'a Error> for ErrorBody<'a> {
    fn from(error: &'a Error) -> Self {
        let context = error.context();
        Self {
            error: ErrorFields {
                code: status(error.kind()).1,
                message: error.message(),
                certainty: error.certainty(),
                retryable: error.kind().is_retryable(),
                details: (*context != ErrorContext::default()).then_some(context),
            },
        }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let (code, _) = status(self.0.kind());
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (code, Json(ErrorBody::from(&self.0))).into_response();
        let headers = response.headers_mut();
        if code == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if self.0.kind().is_retryable() {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}

/// The status and the code of each kind.
const fn status(kind: ErrorKind) -> (u16, &'static str) {
    match kind {
        ErrorKind::Invalid => (400, "INVALID_REQUEST"),
        ErrorKind::Unauthenticated => (401, "UNAUTHENTICATED"),
        ErrorKind::Forbidden => (403, "FORBIDDEN"),
        ErrorKind::NotFound => (404, "NOT_FOUND"),
        ErrorKind::Conflict => (409, "CONFLICT"),
        ErrorKind::TooLarge => (413, "TOO_LARGE"),
        ErrorKind::UnsupportedContentType => (415, "UNSUPPORTED_MEDIA_TYPE"),
        ErrorKind::RateLimited => (429, "RATE_LIMITED"),
        ErrorKind::Cancelled => (499, "CANCELLED"),
        ErrorKind::Internal => (500, "INTERNAL_ERROR"),
        ErrorKind::ToolFailed => (502, "TOOL_ERROR"),
        ErrorKind::Busy => (503, "BUSY"),
        ErrorKind::Gone => (503, "CLIENT_GONE"),
        ErrorKind::Timeout => (504, "TIMEOUT"),
    }
}
