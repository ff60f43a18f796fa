//! Music services over HTTP: each answers `POST /predict` with JSON, music and sound in base64.
//! This crate knows their formats and how to retry, not what their answers are used for.
//!
//! Main types: [`Services`] sends requests to a [`Service`] at its [`Endpoint`]; [`predict`] has the
//! requests and answers of each; [`RequestError`] is the error.
//!
//! Invariants:
//!
//! - Only configured services are used, and only at their address: redirects are not followed.
//! - A call ends within the service's time limit, including retries. A dropped call closes its
//!   connection, so that the service can stop.
//! - No answer is read beyond its limit.
//! - Encoding and decoding are plain functions: the caller decides on which thread they run.

mod client;
mod endpoint;
mod error;
pub mod predict;
mod service;
mod stream;

pub use client::{ANSWER_BYTES_MAX, Health, RequestProgress, ServiceRequest, Services, Settings};
pub use endpoint::{Endpoint, EndpointError};
pub use error::RequestError;
pub use service::Service;
pub use stream::ServicePart;
