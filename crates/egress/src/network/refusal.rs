//! The answers of the network proxy itself.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};
use ringback_broker::NetworkOutcome;
use ringback_broker::network::Denial;
use ringback_proto::ids::SessionId;

/// Why there is no connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The request has no destination.
    Target,
    /// The destination is not allowed.
    Denied(Denial),
    /// The name has no address.
    Unresolved,
    /// The host does not accept the connection.
    Unreachable,
    /// The host does not answer in time.
    Late,
    /// The host broke off, or its answer cannot be passed on.
    Broken,
}

impl From<Denial> for Refusal {
    fn from(denied: Denial) -> Self {
        Self::Denied(denied)
    }
}

impl Refusal {
    pub(super) const fn outcome(self) -> NetworkOutcome {
        match self {
            Self::Target | Self::Denied(Denial::NoNetwork | Denial::NotListed) => {
                NetworkOutcome::HostRefused
            }
            Self::Denied(Denial::NotPublic) => NetworkOutcome::AddressRefused,
            Self::Unresolved => NetworkOutcome::Unresolved,
            Self::Unreachable | Self::Late | Self::Broken => NetworkOutcome::Unreachable,
        }
    }

    const fn status(self) -> StatusCode {
        match self {
            Self::Target => StatusCode::BAD_REQUEST,
            Self::Denied(_) => StatusCode::FORBIDDEN,
            Self::Unresolved | Self::Unreachable | Self::Broken => StatusCode::BAD_GATEWAY,
            Self::Late => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    const fn message(self) -> &'static str {
        match self {
            Self::Target => {
                "this is a proxy: send CONNECT HOST:PORT, or a request with a full http:// URL"
            }
            Self::Denied(Denial::NoNetwork) => "this session has no network",
            Self::Denied(Denial::NotListed) => "this session may not reach that host and port",
            Self::Denied(Denial::NotPublic) => {
                "that host has a private address, which must be listed as an address"
            }
            Self::Unresolved => "that host has no address; check its name",
            Self::Unreachable => "that host does not accept connections; try again later",
            Self::Late => "that host did not answer in time; try again later",
            Self::Broken => "that host broke off its answer; try again",
        }
    }

    /// The answer, for a reader in the sandbox.
    pub(super) fn response(self, session: SessionId) -> Response<Full<Bytes>> {
        let what_to_do = match self {
            Self::Denied(_) => format!(
                "; the owner of the session can change that with \
                 `ringback session network {session} allow HOST:PORT`"
            ),
            Self::Target | Self::Unresolved | Self::Unreachable | Self::Late | Self::Broken => {
                String::new()
            }
        };
        let text = format!("ringback: {}{what_to_do}\n", self.message());
        let mut response = Response::new(Full::new(text.into()));
        *response.status_mut() = self.status();
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, plain);
        response
    }
}
