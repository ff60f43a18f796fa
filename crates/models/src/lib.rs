//! Model services over HTTP: each answers `POST /predict` with JSON, music and sound in base64. This
//! crate knows their shapes and manners; what their answers are for, it does not know.
//!
//! Main types: [`Models`] asks a [`Service`] at its [`Endpoint`]; [`predict`] has what each takes and
//! gives; [`AskError`] is what goes wrong.
//!
//! Invariants:
//!
//! - Only configured services are asked, and only at their address: redirects are not followed.
//! - A call ends within the service's time, waits for its turn included. A dropped call closes its
//!   connection, so that the service can stop.
//! - No answer is read beyond its limit.
//! - Encoding and decoding are plain functions: whoever calls decides on which thread.

mod ask;
mod endpoint;
mod error;
pub mod predict;
mod service;

pub use ask::{ANSWER_BYTES_MAX, Ask, Health, Models, Settings, Told};
pub use endpoint::{Endpoint, EndpointError};
pub use error::AskError;
pub use service::Service;
