//! The HTTP edge: decodes a request, asks, encodes the answer. For now it has the three routes that
//! operators need; the rest hangs on the same router.
//!
//! | route | answer | token |
//! |---|---|---|
//! | `GET /health` | 200 while the process lives: `{status, version, uptime_ms}` | none |
//! | `GET /ready` | 200 `{status: "ready"}`, or 503 while starting or draining | none |
//! | `GET /metrics` | Prometheus text | none |
//!
//! These routes need no token: probes and scrapers have none, the listener answers only to loopback
//! or to the names its configuration lists, and nothing they show is worth stealing.
//!
//! Main types:
//!
//! * [`Status`]: what the routes report on; [`router`] makes the routes of it.
//! * [`Readiness`]: the question `/ready` asks; [`ReadyFlag`] is the plain answer.
//!
//! Invariants:
//!
//! * No route here shows a secret, an argument or a name that a caller chose.
//! * This crate binds nothing and checks no `Host`: that is the listener's, in `ringback-service`.

mod readiness;
mod status;

pub use readiness::{Readiness, ReadyFlag, ReadyState};
pub use status::{Status, router};
