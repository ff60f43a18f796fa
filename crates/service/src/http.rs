//! The HTTP listener: everything about HTTP that is the same for every edge.
//!
//! Edges provide an `axum::Router`; the listener accepts, enforces limits, refuses foreign `Host`
//! and `Origin` headers, and drains. No route is defined here.

mod accept;
mod admission;
mod body;
mod config;
mod connection;
mod cors;
mod guard;
mod listener;
mod refusal;
mod tls;

pub use body::{StalledBody, TimedBody};
pub use config::{
    BindError, BodyLimit, DEFAULT_LISTEN, DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_CONNECTIONS,
    HttpConfig, Timeouts, check_reach,
};
pub use listener::{HttpListener, Stop};
pub use tls::{Tls, TlsError};
