//! The HTTP edge: decodes a request, asks, encodes the answer. Three routes for operators, and `/v1`
//! for calls as JSON.
//!
//! | route | answer | token |
//! |---|---|---|
//! | `GET /health` | 200 while the process lives: `{status, version, uptime_ms}` | none |
//! | `GET /ready` | 200 `{status: "ready"}`, or 503 while starting or draining | none |
//! | `GET /metrics` | Prometheus text | none |
//!
//! `/v1` is described at [`mod@v1`] and needs a bearer token at every request. The others need none:
//! probes and scrapers have none, the listener answers only to loopback or to the names its
//! configuration lists, and nothing they show is worth stealing.
//!
//! Main types:
//!
//! * [`Status`]: what the routes report on; [`router`] makes the routes of it.
//! * [`Readiness`]: the question `/ready` asks; [`ReadyFlag`] is the plain answer.
//! * [`v1()`]: calls as HTTP and JSON; [`Door`] says how callers show who they are.
//!
//! Invariants:
//!
//! * Identity belongs to each request: the token is checked anew at every one.
//! * No rule about permissions, deadlines or jobs is here.
//! * No route without a token shows a secret, an argument or a name that a caller chose.
//! * This crate binds nothing and checks no `Host`: that is the listener's, in `ringback-service`.

mod readiness;
mod status;
pub mod v1;

pub use axum::Router;
pub use readiness::{Readiness, ReadyFlag, ReadyState};
pub use status::{Status, router};
pub use v1::{Door, v1};
