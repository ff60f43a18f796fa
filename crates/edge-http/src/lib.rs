//! The HTTP edge: decodes a request, asks the broker, encodes the answer.
//!
//! * `/v1`: calls, jobs, content, artifacts and tokens as JSON and server-sent events.
//! * `/client-tools`: tools that an HTTP program offers, and `/event`: what happens.
//! * `/docs` and `/v1/openapi.json`: what all routes take and give.
//! * `/health`, `/ready` and `/metrics`, for operators.
//!
//! Calls need a bearer token at every request. The status and the docs need none: probes, scrapers
//! and readers have none, the listener answers only to loopback or to the names its configuration
//! lists, and nothing they show is worth stealing.
//!
//! Main types:
//!
//! * [`HttpEdge`]: what the edge works with; [`HttpEdge::router`] is all its routes. [`Door`] says
//!   how callers show who they are.
//! * [`Status`]: what the status routes report on; [`Readiness`] is the question `/ready` asks, and
//!   [`ReadyFlag`] the plain answer.
//! * [`ClientToolSettings`]: what the routes of client tools are told.
//! * [`openapi()`]: the document, as it is committed.
//!
//! Invariants:
//!
//! * A route exists in one place, the table in `api`; router and document both come from it.
//! * Identity belongs to each request: the token is checked anew at every one, and a stream ends
//!   with its token.
//! * Every error has one form, whoever found it.
//! * No rule about permissions, deadlines or jobs is here.
//! * No route without a token shows a secret, an argument or a name that a caller chose.
//! * No body is held whole where content is moved.
//! * This crate binds nothing and checks no `Host`: that is the listener's, in `ringback-service`.

mod api;
mod caller;
mod client_tools;
mod docs;
mod edge;
mod error;
mod event;
mod extract;
mod readiness;
mod sse;
mod status;
mod tickets;
mod v1;

pub use axum::Router;
pub use client_tools::ClientToolSettings;
pub use docs::openapi;
pub use edge::{Door, HttpEdge};
pub use readiness::{Readiness, ReadyFlag, ReadyState};
pub use status::Status;
pub use v1::BLOBS;

/// What a browser may open from a page of another site.
pub const PAGES: [&str; 1] = ["/docs"];
