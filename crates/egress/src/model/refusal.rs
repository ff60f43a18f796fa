//! The answers of the model proxy itself.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use serde_json::json;

/// Why a request was not answered by the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It asks for another protocol.
    Upgrade,
    /// Its path could leave the configured one.
    Path,
    /// Its body is too large.
    TooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// Its body stalled.
    Stalled,
    /// Too many requests are running.
    Busy {
        /// The limit.
        max: usize,
    },
    /// The session has used up its requests.
    UsedUp {
        /// The limit.
        max: u64,
    },
    /// The session has reached a limit, and its caller did not allow more.
    Spent {
        /// The limit.
        limit: &'static str,
    },
    /// The daemon cannot use the key.
    Key,
    /// The provider cannot be reached.
    Unreachable {
        /// The cause.
        reason: &'static str,
    },
    /// The provider broke off, or its answer cannot be passed on.
    Broken,
    /// The provider's answer has an encoding in which the key cannot be found.
    Encoded,
    /// The provider does not answer.
    Late {
        /// The timeout.
        seconds: u64,
    },
}

impl Refusal {
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Upgrade => StatusCode::NOT_IMPLEMENTED,
            Self::Path => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Stalled => StatusCode::REQUEST_TIMEOUT,
            Self::Busy { .. } => StatusCode::TOO_MANY_REQUESTS,
            // Not 429: clients would retry, which would not help.
            Self::UsedUp { .. } | Self::Spent { .. } => StatusCode::FORBIDDEN,
            Self::Key => StatusCode::SERVICE_UNAVAILABLE,
            Self::Unreachable { .. } | Self::Broken | Self::Encoded => StatusCode::BAD_GATEWAY,
            Self::Late { .. } => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    const fn kind(self) -> &'static str {
        match self {
            Self::Upgrade => "upgrade_refused",
            Self::Path => "bad_path",
            Self::TooLarge { .. } => "too_large",
            Self::Stalled => "stalled",
            Self::Busy { .. } => "busy",
            Self::UsedUp { .. } | Self::Spent { .. } => "used_up",
            Self::Key => "key_unusable",
            Self::Unreachable { .. } => "unreachable",
            Self::Broken => "broken",
            Self::Encoded => "encoded",
            Self::Late { .. } => "timeout",
        }
    }

    pub(crate) fn message(self, model: &str) -> String {
        match self {
            Self::Upgrade => "only plain HTTP requests are supported: no upgrade, no tunnel".into(),
            Self::Path => "the path leaves the model's `url`; send one without dot segments".into(),
            Self::TooLarge { bytes_max } => {
                format!("the body has more than {bytes_max} bytes; send a smaller request")
            }
            Self::Stalled => "the body stalled; send the request again".into(),
            Self::Busy { max } => {
                format!("{max} requests of this session are running; wait for one to end")
            }
            Self::UsedUp { max } => format!(
                "this session has used its {max} requests to the model `{model}`; the operator of \
                 the daemon can allow more"
            ),
            Self::Spent { limit } => format!(
                "this session has reached its limit `{limit}`; its caller was asked and did not \
                 allow more"
            ),
            Self::Key => format!(
                "the daemon cannot use its key for the model `{model}`; its log says why, and \
                 `ringback doctor` says what to do"
            ),
            Self::Unreachable { reason } => format!(
                "the model `{model}` cannot be reached: {reason}; try again later, or check its \
                 `url` in the daemon's configuration"
            ),
            Self::Broken => format!("the model `{model}` broke off its answer; try again"),
            Self::Encoded => format!(
                "the model `{model}` compressed its answer, though asked not to; compressed \
                 answers are not passed on"
            ),
            Self::Late { seconds } => format!(
                "the model `{model}` did not start to answer within {seconds} s; try again, or ask \
                 for a stream"
            ),
        }
    }

    /// The answer, in the form in which clients of models expect errors.
    pub(crate) fn response(self, model: &str) -> Response<Full<Bytes>> {
        let error = json!({ "type": self.kind(), "message": self.message(model) });
        let body = json!({ "type": "error", "error": error }).to_string();
        let mut response = Response::new(Full::new(body.into()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if self.status() == StatusCode::TOO_MANY_REQUESTS {
            headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
