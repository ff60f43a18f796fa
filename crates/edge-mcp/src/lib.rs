//! The MCP edge: any MCP client, of either era, sees and calls the tools that its token allows. It
//! decodes a message, calls the broker and encodes the answer; `/mcp` is the one endpoint of both
//! eras.
//!
//! | request | answer |
//! |---|---|
//! | `POST /mcp` | one JSON-RPC message; a request is answered with JSON or server-sent events |
//! | `GET /mcp` | other messages to a legacy MCP session; resumed by `Last-Event-ID` |
//! | `DELETE /mcp` | ends a legacy MCP session |
//! | the same at `/mcp/s/{session_id}` | the tools of one agent session, for its token |
//! | `GET /.well-known/oauth-protected-resource[/mcp]` | the accepted tokens (RFC 9728) |
//!
//! Main types:
//!
//! * [`McpEdge`]: serves the routes, sweeps MCP sessions, announces changed lists.
//! * [`Config`], [`Door`], [`SessionLimits`]: its configuration.
//!
//! Invariants:
//!
//! * Identity belongs to each request: an MCP session lends no one its opener's rights, and is
//!   invisible to other principals.
//! * Rules about permissions, deadlines and jobs are not here. The only timer here is how long an
//!   answer is held back before it becomes a job's id, which depends on the tool's timing.
//! * A call whose caller has left is cancelled, unless the caller knows its job's id.
//! * Caller tools are held by an open stream, and are gone immediately when it closes.
//! * MCP sessions, streams and what they keep are bounded; a slow reader costs only itself.
//! * A client that is asked for a permission may write to the session that asks; its answer takes
//!   the same path as every other, and the first one counts.
//! * Invalid input that some clients are known to send is corrected here and nowhere else.
//! * The URL of a session offers that session's tools and no others, to any client.
//! * This crate binds nothing and checks no `Host` or `Origin`: the listener does.

mod agent;
mod caller;
mod changes;
mod config;
mod edge;
mod legacy;
mod modern;
mod peer;
mod post;
mod questions;
mod reach;
mod response;
mod state;
mod tools;

pub use config::{Config, SessionLimits};
pub use edge::McpEdge;
pub use ringback_broker::Door;
