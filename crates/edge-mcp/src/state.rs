//! The state of the edge.

use ringback_broker::Broker;
use ringback_mcp_wire::outgoing::Implementation;
use ringback_mcp_wire::{Limits, outgoing::Stamp};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::config::Config;
use crate::legacy::Sessions;
use crate::modern::ParkedCalls;

/// How to use the server, for the model behind a client.
pub(crate) const INSTRUCTIONS: &str = "Tools answer with their result. Long-running work is \
    answered with a job_id instead: wait for it with job_poll, then read it with job_status; \
    job_cancel stops it.";

/// The same for an agent at the URL of its session.
pub(crate) const AGENT_INSTRUCTIONS: &str = "These are the tools of one session: those of the \
    program that started it, and, with the prefix oubliette_, those of the daemon. Long-running \
    work is answered with a job_id: wait for it with oubliette_job_poll.";

/// Shared by all requests of the edge.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) broker: Broker,
    pub(crate) config: Config,
    pub(crate) server: Implementation,
    pub(crate) sessions: Sessions,
    /// Calls that wait for the answer to a question.
    pub(crate) parked: ParkedCalls,
    /// Calls of MCP sessions, which may outlive their connection.
    pub(crate) calls: TaskTracker,
    /// Fires when streams that wait for changes are to end.
    pub(crate) stopping: CancellationToken,
}

impl State {
    pub(crate) fn new(config: Config, broker: Broker) -> Self {
        Self {
            server: Implementation {
                name: "ringback".to_owned(),
                title: "Ringback".to_owned(),
                version: config.version.clone(),
            },
            sessions: Sessions::new(config.sessions),
            parked: ParkedCalls::default(),
            calls: TaskTracker::new(),
            stopping: CancellationToken::new(),
            broker,
            config,
        }
    }

    /// The stamp of modern results.
    pub(crate) const fn stamp(&self) -> Stamp<'_> {
        Stamp::Modern(&self.server)
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits { bytes_max: self.config.message_bytes_max, ..Limits::default() }
    }
}
