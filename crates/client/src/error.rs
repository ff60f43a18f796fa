//! Why there is no connection, and how a lost one looks to the calls that were on it.

use std::time::Duration;

use ringback_proto::{Certainty, Error, ErrorKind};

/// A cause inside the transport, whose types are not shown outside.
pub(crate) type TransportError = Box<dyn std::error::Error + Send + Sync>;

/// Why a client could not connect.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The endpoint or an option makes no sense.
    #[error("cannot open a connection to `{endpoint}`")]
    Open {
        /// Where to.
        endpoint: String,
        /// What the transport says.
        #[source]
        source: TransportError,
    },
    /// The token is none.
    #[error("the token is not `oub_` and 64 hex digits")]
    Token,
    /// The server's key is none.
    #[error("the server key is not 40 characters of Z85")]
    ServerKey,
    /// Nobody answers.
    #[error(
        "no daemon answers at `{endpoint}` within {timeout:?}; start one with `ringback serve`"
    )]
    Unreachable {
        /// Where to.
        endpoint: String,
        /// How long was waited.
        timeout: Duration,
    },
    /// The daemon does not take the token.
    #[error("the daemon at `{endpoint}` refuses the token ({reason})")]
    Refused {
        /// Where to.
        endpoint: String,
        /// What it says.
        reason: String,
    },
}

/// The link ended while a call was on it.
pub(crate) fn link_lost(reason: &str) -> Error {
    Error::new(ErrorKind::Gone, format!("the connection to the daemon was lost: {reason}"))
        .with_certainty(Certainty::MayHaveRun)
}

/// There is no link to put a call on.
pub(crate) fn no_link() -> Error {
    Error::new(ErrorKind::Gone, "there is no connection to the daemon; it is being made again")
}

/// The client was closed.
pub(crate) fn closed() -> Error {
    Error::new(ErrorKind::Gone, "the client is closed").with_certainty(Certainty::MayHaveRun)
}

/// A reply that does not fit the call.
pub(crate) fn unexpected(what: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Internal, format!("the daemon's reply does not fit the call: {what}"))
        .with_certainty(Certainty::MayHaveRun)
}
