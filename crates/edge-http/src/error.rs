//! Errors as HTTP: a status, a code and a JSON body.

use axum::Json;
use axum::http::header::{CONTENT_RANGE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use ringback_proto::error::{Certainty, ErrorContext};
use ringback_proto::{Error, ErrorKind};
use schemars::JsonSchema;
use serde::Serialize;

/// An error that becomes a response.
#[derive(Debug)]
pub(crate) enum HttpError {
    /// An error of the broker.
    Said(Error),
    /// The path exists, the method does not. The router adds `Allow`.
    WrongMethod,
    /// The body stalled.
    Stalled,
    /// The range starts past the end of the content.
    Range {
        /// The length of the content.
        size: u64,
    },
    /// The HTTP version does not support streams.
    NoStreaming,
}

/// The body of every error.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    error: ErrorFields,
}

/// What went wrong.
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorFields {
    /// The stable name of the kind of error.
    code: &'static str,
    /// What happened, for a person.
    message: String,
    /// Whether the tool ran, so that you know if a retry is safe.
    certainty: Certainty,
    /// Further fields of this kind of error.
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<ErrorContext>,
}

impl From<Error> for HttpError {
    fn from(error: Error) -> Self {
        Self::Said(error)
    }
}

impl From<&Error> for ErrorBody {
    fn from(error: &Error) -> Self {
        let context = error.context();
        Self {
            error: ErrorFields {
                code: status(error.kind()).1,
                message: error.message().to_owned(),
                certainty: error.certainty(),
                details: (*context != ErrorContext::default()).then(|| context.clone()),
            },
        }
    }
}

impl ErrorBody {
    /// Builds an error that only HTTP knows: nothing was started.
    fn plain(code: &'static str, message: &str) -> Self {
        let certainty = Certainty::NotStarted;
        Self { error: ErrorFields { code, message: message.to_owned(), certainty, details: None } }
    }
}

impl HttpError {
    fn parts(&self) -> (u16, ErrorBody) {
        match self {
            Self::Said(error) => (status(error.kind()).0, error.into()),
            Self::WrongMethod => {
                let message = "this path does not support the method; `Allow` lists those it does";
                (405, ErrorBody::plain("METHOD_NOT_ALLOWED", message))
            }
            Self::Stalled => {
                let message = "the body stalled; send it without long pauses";
                (408, ErrorBody::plain("REQUEST_TIMEOUT", message))
            }
            Self::Range { size } => {
                let message = format!("the range starts past the end of {size} bytes");
                (416, ErrorBody::plain("RANGE_NOT_SATISFIABLE", &message))
            }
            Self::NoStreaming => {
                (500, ErrorBody::plain("INTERNAL_ERROR", "streaming not supported"))
            }
        }
    }
}

impl IntoResponse for HttpError {
    fn into_response(self) -> Response {
        let (code, body) = self.parts();
        let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (code, Json(body)).into_response();
        let headers = response.headers_mut();
        match self {
            Self::Said(error) if error.kind() == ErrorKind::Unauthenticated => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            Self::Said(error) if error.kind().is_retryable() => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            Self::Range { size } => {
                if let Ok(range) = HeaderValue::from_str(&format!("bytes */{size}")) {
                    headers.insert(CONTENT_RANGE, range);
                }
            }
            Self::Said(_) | Self::WrongMethod | Self::Stalled | Self::NoStreaming => {}
        }
        response
    }
}

/// The status and the code of each kind.
pub(crate) const fn status(kind: ErrorKind) -> (u16, &'static str) {
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
        ErrorKind::Damaged => (500, "DAMAGED"),
        ErrorKind::ToolFailed => (502, "TOOL_ERROR"),
        ErrorKind::Busy => (503, "BUSY"),
        ErrorKind::Gone => (503, "CLIENT_GONE"),
        ErrorKind::Timeout => (504, "TIMEOUT"),
    }
}
