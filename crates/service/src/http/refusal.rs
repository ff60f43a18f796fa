//! The answers of the listener itself, before any router sees the request.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

/// Why a request was not passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// HTTP/1.1 without exactly one readable `Host`.
    BadHost,
    /// A `Host` that is on no list, as from a page that rebound its name to this machine.
    ForeignHost,
    /// An `Origin` that is on no list: a page of another site.
    ForeignOrigin,
    /// A browser's request for a page of another site that does not open a page here.
    ForeignSite,
    /// A body that announces a size over the limit.
    TooLarge,
    /// Too many connections.
    Busy,
}

impl Refusal {
    /// The name of the reason in logs and metrics.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Self::BadHost => "bad_host",
            Self::ForeignHost => "foreign_host",
            Self::ForeignOrigin => "foreign_origin",
            Self::ForeignSite => "foreign_site",
            Self::TooLarge => "too_large",
            Self::Busy => "busy",
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::BadHost => StatusCode::BAD_REQUEST,
            Self::ForeignHost => StatusCode::MISDIRECTED_REQUEST,
            Self::ForeignOrigin | Self::ForeignSite => StatusCode::FORBIDDEN,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// Constant text: nothing a stranger sent is repeated.
    const fn body(self) -> &'static str {
        match self {
            Self::BadHost => {
                r#"{"error":{"code":"INVALID_REQUEST","message":"the request needs exactly one valid Host header","certainty":"not_started"}}"#
            }
            Self::ForeignHost => {
                r#"{"error":{"code":"FORBIDDEN","message":"the daemon does not serve this Host; add it to http.hosts in the configuration","certainty":"not_started"}}"#
            }
            Self::ForeignOrigin => {
                r#"{"error":{"code":"FORBIDDEN","message":"pages of this Origin may not send requests; add it to http.origins in the configuration","certainty":"not_started"}}"#
            }
            Self::ForeignSite => {
                r#"{"error":{"code":"FORBIDDEN","message":"pages of other sites may not load this (Sec-Fetch-Site); a page whose origin is in http.origins may fetch it with CORS","certainty":"not_started"}}"#
            }
            Self::TooLarge => {
                r#"{"error":{"code":"TOO_LARGE","message":"the body is larger than this route accepts; most accept http.max_body","certainty":"not_started"}}"#
            }
            Self::Busy => {
                r#"{"error":{"code":"BUSY","message":"too many connections (http.max_connections); try again","certainty":"not_started"}}"#
            }
        }
    }
}

impl Refusal {
    /// The whole answer on the wire, for a connection that is not served.
    pub(super) fn message(self) -> String {
        metrics::counter!("ringback_http_refused_total", "reason" => self.reason()).increment(1);
        let (status, body) = (self.status(), self.body());
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\nRetry-After: 1\r\n\r\n{body}",
            body.len()
        )
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        metrics::counter!("ringback_http_refused_total", "reason" => self.reason()).increment(1);
        let json = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let mut response = (self.status(), json, self.body()).into_response();
        let headers = response.headers_mut();
        // What was refused unread stays unread, so the connection cannot carry another request.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        if self == Self::Busy {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }
}
