//! The MCP edge: any MCP client, of either era, sees and calls the tools its token may. Decodes a
//! message, asks the broker, encodes the answer; `/mcp` is the one endpoint of both eras.
//!
//! | request | answer |
//! |---|---|
//! | `POST /mcp` | one JSON-RPC message; a request is answered with JSON or server-sent events |
//! | `GET /mcp` | what a legacy session is told besides; resumed by `Last-Event-ID` |
//! | `DELETE /mcp` | ends a legacy session |
//! | the same at `/mcp/s/{session_id}` | the tools of one session of an agent, for that session's token |
//! | `GET /.well-known/oauth-protected-resource[/mcp]` | which tokens are taken here (RFC 9728) |
//!
//! Main types:
//!
//! * [`McpEdge`]: makes the routes, sweeps sessions, tells of changed lists.
//! * [`stdio::serve`]: the same on standard input and output, by way of a daemon.
//! * [`Config`], [`Door`], [`SessionLimits`]: what it is told.
//!
//! Invariants:
//!
//! * Identity belongs to each request: a session lends nobody its opener's rights, and is not even
//!   found by another principal.
//! * No rule about permissions, deadlines or jobs is here. The one clock here is how long an answer
//!   is held back before it becomes a job's id, which the tool's timing says.
//! * A call whose caller has left is cancelled, unless the caller was told its job's id.
//! * Whoever holds a caller's tools holds them by an open stream, and is gone at once when it closes.
//! * Sessions, streams and what they keep are bounded; a slow reader costs only itself.
//! * Whoever is asked for a permission may write to the session that asks; what it says goes the way
//!   of every other answer, and the first one counts.
//! * Input that some clients send wrongly is put right here and nowhere else.
//! * At the URL of a session there are that session's tools and no others, whoever asks.
//! * This crate binds nothing and checks no `Host` or `Origin`: that is the listener's.

mod agent;
mod asking;
mod caller;
mod changes;
mod config;
mod edge;
mod legacy;
mod modern;
mod peer;
mod post;
mod reach;
mod respond;
mod state;
pub mod stdio;
mod tools;

pub use config::{Config, Door, SessionLimits};
pub use edge::McpEdge;
