//! Errors of a service.

use std::error::Error;
use std::time::Duration;

use crate::endpoint::Endpoint;
use crate::service::Service;

/// An error of a service.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// It is not configured.
    #[error(
        "no {service} service is configured: start one, and set `studio.services.{service}` to its address, such as `http://127.0.0.1:2000`"
    )]
    NotConfigured {
        /// The service.
        service: Service,
    },
    /// It does not answer.
    #[error(
        "the {service} service does not answer at {endpoint}: start it, or correct `studio.services.{service}`"
    )]
    Unreachable {
        /// The service.
        service: Service,
        /// Its address.
        endpoint: Endpoint,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// The connection broke before the answer was complete.
    #[error("the connection to the {service} service at {endpoint} broke while it worked")]
    Broken {
        /// The service.
        service: Service,
        /// Its address.
        endpoint: Endpoint,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// It took too long.
    #[error("the {service} service did not answer within {} s", limit.as_secs_f32())]
    Timeout {
        /// The service.
        service: Service,
        /// The time limit.
        limit: Duration,
    },
    /// It is busy, and the time limit does not allow a retry.
    #[error("the {service} service is busy; retry in {} s", retry_after.as_secs())]
    Busy {
        /// The service.
        service: Service,
        /// When to retry.
        retry_after: Duration,
    },
    /// It rejects the request.
    #[error("the {service} service refused the request ({status}): {message}")]
    Refused {
        /// The service.
        service: Service,
        /// The HTTP status.
        status: u16,
        /// Its message.
        message: String,
    },
    /// It failed.
    #[error("the {service} service failed ({status}): {message}")]
    Failed {
        /// The service.
        service: Service,
        /// The HTTP status.
        status: u16,
        /// Its message.
        message: String,
    },
    /// Its answer is too large.
    #[error("the answer of the {service} service has over {bytes_max} bytes: ask for less")]
    TooLarge {
        /// The service.
        service: Service,
        /// The limit.
        bytes_max: usize,
    },
    /// Its answer has an unexpected format.
    #[error("the {service} service sent an unusable answer: {reason}")]
    Malformed {
        /// The service.
        service: Service,
        /// What is wrong.
        reason: String,
    },
}

impl RequestError {
    /// Returns the service.
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
