//! The HTTP edge: decodes a request, asks the broker, encodes the answer.
//!
//! * `/v1`: calls, jobs, content, artifacts and tokens as JSON and server-sent events.
//! * `/client-tools`: tools that an HTTP program offers, and `/event`: events as they happen.
//! * `/docs` and `/v1/openapi.json`: the requests and answers of all routes.
//! * `/health`, `/ready` and `/metrics`, for operators.
//!
//! Calls need a bearer token on every request. The status and docs routes need none: probes,
//! scrapers and readers have none, the listener answers only to loopback or to the names in its
//! configuration, and nothing they show is secret.
//!
//! Main types:
//!
//! * [`HttpEdge`]: the state of the edge; [`HttpEdge::router`] returns all its routes. [`Door`]
//!   says how callers authenticate.
//! * [`Status`]: what the status routes report on; [`Readiness`] is what `/ready` asks, and
//!   [`ReadyFlag`] its simplest implementation.
//! * [`ClientToolSettings`]: settings of the client tool routes.
//! * [`openapi()`]: the document, as committed.
//! * [`picture::TimelinePicture`]: the garden's timeline as SVG.
//!
//! Invariants:
//!
//! * A route is defined in one place, the table in `api`; router and document both come from it.
//! * Identity belongs to each request: the token is checked at every one, and a stream ends with
//!   its token.
//! * Every error has the same form, wherever it arises.
//! * Rules about permissions, deadlines and jobs are not here.
//! * No route without a token shows a secret, an argument or a name that a caller chose.
//! * Content is never held in memory as a whole.
//! * This crate binds nothing and checks no `Host`: that is the listener's, in `ringback-service`.

mod api;
mod caller;
mod client_tools;
mod docs;
mod edge;
mod error;
mod event;
mod extractors;
pub mod picture;
mod readiness;
mod sse;
mod status;
mod tickets;
mod v1;

pub use axum::Router;
pub use client_tools::ClientToolSettings;
pub use docs::openapi;
pub use edge::HttpEdge;
pub use readiness::{Readiness, ReadyFlag, ReadyState};
pub use ringback_broker::Door;
pub use status::Status;
pub use v1::BLOBS;

/// Paths that a browser may open from a page of another site.
pub const PAGES: [&str; 1] = ["/docs"];
