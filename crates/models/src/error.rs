//! What goes wrong with a service.

use std::error::Error;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::service::Service;

/// What goes wrong with a service.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// Nobody said where it is.
    #[error(
        "no {service} service is configured: start one, and set `models.{service}` to its address, such as `http://127.0.0.1:2000`"
    )]
    NotConfigured {
        /// Which.
        service: Service,
    },
    /// Nobody answers there.
    #[error(
        "the {service} service does not answer at {endpoint}: start it, or correct `models.{service}`"
    )]
    Unreachable {
        /// Which.
        service: Service,
        /// Where.
        endpoint: Endpoint,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The connection broke before the answer was complete.
    #[error("the connection to the {service} service at {endpoint} broke while it worked")]
    Broken {
        /// Which.
        service: Service,
        /// Where.
        endpoint: Endpoint,
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It took too long.
    #[error("the {service} service did not answer within {} s", limit.as_secs_f32())]
    Timeout {
        /// Which.
        service: Service,
        /// How long it had.
        limit: Duration,
    },
    /// It has other work, and its turn did not come in time.
    #[error("the {service} service is busy, and asks to come back in {} s", retry_after.as_secs())]
    Busy {
        /// Which.
        service: Service,
        /// When to come back.
        retry_after: Duration,
    },
    /// It does not like the request.
    #[error("the {service} service refused the request ({status}): {message}")]
    Refused {
        /// Which.
        service: Service,
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// It failed.
    #[error("the {service} service failed ({status}): {message}")]
    Failed {
        /// Which.
        service: Service,
        /// The HTTP status.
        status: u16,
        /// What it said.
        message: String,
    },
    /// Its answer is too large.
    #[error("the answer of the {service} service has over {bytes_max} bytes: ask for less")]
    TooLarge {
        /// Which.
        service: Service,
        /// The limit.
        bytes_max: usize,
    },
    /// Its answer is not what such a service answers.
    #[error("the {service} service answered what cannot be used: {reason}")]
    Malformed {
        /// Which.
        service: Service,
        /// What is wrong.
        reason: String,
    },
}

impl AskError {
    /// Which service.
    #[must_use]
    pub const fn service(&self) -> Service {
        match self {
            Self::NotConfigured { service }
            | Self::Unreachable { service, .. }
            | Self::Broken { service, .. }
            | Self::Timeout { service, .. }
            | Self::Busy { service, .. }
            | Self::Refused { service, .. }
            | Self::Failed { service, .. }
            | Self::TooLarge { service, .. }
            | Self::Malformed { service, .. } => *service,
        }
    }
}
