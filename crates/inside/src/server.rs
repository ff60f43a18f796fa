//! The protocol. No IO, and the time is passed in: data to write waits in two outboxes, log lines
//! in a list.

mod client;
mod daemon;
mod discovery;

#[cfg(test)]
mod tests;

use std::time::{Duration, Instant};

use ringback_mcp_wire::outgoing::{self, Implementation, ListenEnd, ServerNotification, Stamp};
use ringback_mcp_wire::{Era, Id};

use self::client::HeldRequests;
use self::discovery::Discovery;
use crate::calls::Calls;
use crate::catalog::Catalog;
use crate::options::{Key, Options, Target};
use crate::outbox::Outbox;

/// How long a list waits for tools that may come: many agents list once and never again.
const PATIENCE: Duration = Duration::from_secs(2);
/// Subscriptions of one agent; it needs one.
const LISTENS_MAX: usize = 16;

/// The state of both conversations.
#[derive(Debug)]
pub(crate) struct Server {
    /// Messages to the agent.
    pub(crate) to_client: Outbox,
    /// Messages to the daemon.
    pub(crate) to_daemon: Outbox,
    /// Lines for the log.
    pub(crate) warnings: Vec<String>,
    info: Implementation,
    key: Option<Key>,
    /// Whether the session is at a URL; its token gives access, and there is no key.
    is_remote: bool,
    catalog: Catalog,
    link: Link,
    discovery: Discovery,
    calls: Calls,
    held: HeldRequests,
    /// Whether a handshake is complete, so that changes can be announced unasked.
    is_initialized: bool,
    /// Subscriptions to changes.
    listens: Vec<Id>,
    /// When lists stop waiting.
    patience_ends: Instant,
    /// Whether lists have waited long enough.
    is_settled: bool,
    /// Whether the daemon ever sent a caller's tools, or that there are no callers.
    has_config: bool,
    n_asked: u64,
}

/// Whether there is a connection to the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Link {
    Down,
    Up {
        /// Whether it has sent the current callers; until then the earlier ones stand.
        has_config: bool,
    },
}

impl Server {
    pub(crate) fn new(options: Options, now: Instant) -> Self {
        let is_remote = matches!(options.target, Target::Url(..));
        let key = options.key.filter(|_| !is_remote);
        let mut catalog = Catalog::default();
        if options.has_session_tools && !is_remote {
            catalog.offer_session();
        }
        Self {
            to_client: Outbox::default(),
            to_daemon: Outbox::default(),
            warnings: Vec::new(),
            info: Implementation {
                name: "ringback-inside".to_owned(),
                title: "Ringback".to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            discovery: Discovery::new(key.is_some()),
            key,
            is_remote,
            catalog,
            link: Link::Down,
            calls: Calls::default(),
            held: HeldRequests::default(),
            is_initialized: false,
            listens: Vec::new(),
            patience_ends: now + PATIENCE,
            is_settled: false,
            has_config: false,
            n_asked: 0,
        }
    }

    /// Does what is due, after everything that has arrived was handled: several changes count as
    /// one, and a list is complete.
    pub(crate) fn settle(&mut self, now: Instant) {
        self.discover(now);
        let is_changed = self.catalog.publish();
        if self.is_settled {
            if is_changed {
                self.announce();
            }
            return;
        }
        let is_complete = self.has_config && self.discovery.has_outcome();
        if is_complete || now >= self.patience_ends {
            self.is_settled = true;
            for line in self.held.take() {
                self.on_client_line(&line);
            }
        }
    }

    /// When [`Self::settle`] has something to do, if nothing arrives.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let patience = (!self.is_settled).then_some(self.patience_ends);
        let discovery = match self.link {
            Link::Up { .. } => self.discovery.deadline(),
            Link::Down => None,
        };
        patience.into_iter().chain(discovery).min()
    }

    /// Whether no call waits for an answer.
    pub(crate) fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.held.is_empty()
    }

    /// Handles the end of the agent's input.
    pub(crate) fn on_client_end(&mut self) {
        for id in std::mem::take(&mut self.listens) {
            let line = outgoing::answer(&id, &ListenEnd { id: &id }, Stamp::Modern(&self.info));
            self.to_client.push(&line);
        }
    }

    fn announce(&mut self) {
        if self.is_initialized {
            let told = ServerNotification::ToolsListChanged { subscription: None };
            self.to_client.push(&outgoing::notification(&told));
        }
        for id in &self.listens {
            let told = ServerNotification::ToolsListChanged { subscription: Some(id) };
            self.to_client.push(&outgoing::notification(&told));
        }
    }

    const fn stamp(&self, era: Era) -> Stamp<'_> {
        match era {
            Era::Legacy => Stamp::Legacy,
            Era::Modern => Stamp::Modern(&self.info),
        }
    }

    fn warn(&mut self, line: String) {
        self.warnings.push(line);
    }
}
