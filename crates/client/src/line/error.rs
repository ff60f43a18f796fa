//! Why a line cannot be held.

use std::io;
use std::time::Duration;

/// A cause inside the transport, whose types are not shown outside.
type TransportError = Box<dyn std::error::Error + Send + Sync>;

/// Why something on a line failed.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// The token cannot be sent.
    #[error("the token has characters that no header can carry")]
    Token,
    /// Nobody listens there.
    #[error("no daemon answers HTTP at `{address}`")]
    Connect {
        /// Where to.
        address: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The connection broke.
    #[error("cannot {action} at `{address}`")]
    Exchange {
        /// What was attempted.
        action: &'static str,
        /// With whom.
        address: String,
        /// What the transport says.
        #[source]
        source: TransportError,
    },
    /// No answer in time.
    #[error("cannot {action} at `{address}`: no answer within {limit:?}")]
    Timeout {
        /// What was attempted.
        action: &'static str,
        /// With whom.
        address: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The daemon says no.
    #[error("cannot {action}: the daemon answered {status}, {message}")]
    Refused {
        /// What was attempted.
        action: &'static str,
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// The answer makes no sense.
    #[error("cannot {action}: the answer cannot be read ({reason})")]
    Unreadable {
        /// What was attempted.
        action: &'static str,
        /// What is wrong with it.
        reason: String,
    },
}

impl LineError {
    /// Whether trying again would bring the same.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        match self {
            Self::Token | Self::Unreadable { .. } => true,
            Self::Refused { status, .. } => matches!(*status, 400..=499) && !is_passing(*status),
            Self::Connect { .. } | Self::Exchange { .. } | Self::Timeout { .. } => false,
        }
    }

    /// The HTTP status that the daemon refused with.
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

/// Too slow, or too many requests: both pass.
const fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 429)
}
