//! Errors of lines over HTTP.

use std::io;
use std::time::Duration;

/// A cause inside the transport, whose types are not public.
type TransportError = Box<dyn std::error::Error + Send + Sync>;

/// Why an operation on a line failed.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The token cannot be sent.
    #[error("the token has characters that are not allowed in an HTTP header")]
    Token,
    /// No daemon listens there.
    #[error("no daemon answers HTTP at `{address}`")]
    Connect {
        /// The address.
        address: String,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
    /// The connection broke.
    #[error("cannot {action} at `{address}`")]
    Exchange {
        /// The attempted action.
        action: &'static str,
        /// The address.
        address: String,
        /// The error of the transport.
        #[source]
        source: TransportError,
    },
    /// No answer in time.
    #[error("cannot {action} at `{address}`: no answer within {limit:?}")]
    Timeout {
        /// The attempted action.
        action: &'static str,
        /// The address.
        address: String,
        /// How long the client waited.
        limit: Duration,
    },
    /// The daemon refused.
    #[error("cannot {action}: the daemon answered {status}, {message}")]
    Refused {
        /// The attempted action.
        action: &'static str,
        /// The HTTP status.
        status: u16,
        /// The message of the daemon.
        message: String,
    },
    /// The answer is malformed.
    #[error("cannot {action}: the answer is malformed ({reason})")]
    Unreadable {
        /// The attempted action.
        action: &'static str,
        /// The defect.
        reason: String,
    },
}

impl LineError {
    /// Returns whether trying again would give the same error.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Token | Self::Unreadable { .. } => true,
            Self::Refused { status, .. } => matches!(*status, 400..=499) && !is_passing(*status),
            Self::Connect { .. } | Self::Exchange { .. } | Self::Timeout { .. } => false,
        }
    }

    /// Returns the HTTP status with which the daemon refused.
    #[must_use]
    pub const fn status(&self) -> Option<u16> {
        match self {
            Self::Refused { status, .. } => Some(*status),
            Self::Token
            | Self::Unreadable { .. }
            | Self::Connect { .. }
            | Self::Exchange { .. }
            | Self::Timeout { .. } => None,
        }
    }
}

/// Too slow, or too many requests: both are temporary.
const fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429)
}
