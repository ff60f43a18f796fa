//! Connection errors, and the errors of calls on a lost connection.

use std::time::Duration;

use ringback_proto::{Certainty, Error, ErrorKind};

/// A cause inside the transport, whose types are not public.
pub(crate) type TransportError = Box<dyn std::error::Error + Send + Sync>;

/// Why a client could not connect.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The endpoint or an option is invalid.
    #[error("cannot open a connection to `{endpoint}`")]
    Open {
        /// The endpoint.
        endpoint: String,
        /// The error of the transport.
        #[source]
        source: TransportError,
    },
    /// The token is malformed.
    #[error("the token is malformed: it must be `oub_` and 64 hex digits")]
    Token,
    /// The server key is malformed.
    #[error("the server key is malformed: it must be 40 characters of Z85")]
    ServerKey,
    /// No daemon answers.
    #[error(
        "no daemon answers at `{endpoint}` within {timeout:?}; start one with `ringback serve`"
    )]
    Unreachable {
        /// The endpoint.
        endpoint: String,
        /// How long the client waited.
        timeout: Duration,
    },
    /// The daemon refuses the token.
    #[error("the daemon at `{endpoint}` refuses the token ({reason})")]
    Refused {
        /// The endpoint.
        endpoint: String,
        /// The reason it reports.
        reason: String,
    },
}

/// Makes the error of a call whose link was lost.
pub(crate) fn link_lost(reason: &str) -> Error {
    Error::new(ErrorKind::Gone, format!("the connection to the daemon was lost: {reason}"))
        .with_certainty(Certainty::MayHaveRun)
}

/// Makes the error of a call without a link.
pub(crate) fn no_link() -> Error {
    Error::new(ErrorKind::Gone, "not connected to the daemon; reconnecting")
}

/// Makes the error of a closed client.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Gone, "the client is closed").with_certainty(Certainty::MayHaveRun)
}

/// Makes the error of a reply that does not match the call.
pub(crate) fn unexpected(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, format!("the daemon's reply does not match the call: {what}"))
        .with_certainty(Certainty::MayHaveRun)
}
