//! Messages from the daemon, and the state of its connection.

use std::time::Instant;

use ringback_mcp_wire::outgoing::{self, ServerNotification};
use ringback_mcp_wire::{Line, RawValue};

use super::{Link, Server};
use crate::relay::{self, DaemonMessage, Garbage, RelayError};
use crate::result::{self, Failure};

impl Server {
    /// The daemon is connected.
    pub(crate) fn on_daemon_up(&mut self) {
        self.link = Link::Up { has_config: false };
        self.to_daemon.clear();
        self.discovery.restart();
    }

    /// The daemon is gone: its running calls will not be answered. The tools stay listed, because
    /// it may come back with them.
    pub(crate) fn on_daemon_down(&mut self) {
        self.link = Link::Down;
        self.to_daemon.clear();
        self.discovery.restart();
        for call in self.calls.drain() {
            let line = result::failure(&call.id, Failure::Lost, self.stamp(call.era));
            self.to_client.push(&line);
        }
    }

    /// Handles a line from the daemon.
    ///
    /// # Errors
    /// When it is invalid: then answers may be lost, and the connection is useless.
    pub(crate) fn on_daemon_line(&mut self, line: &Line<'_>, now: Instant) -> Result<(), Garbage> {
        let line = match line {
            Line::Whole(line) => line,
            Line::TooLong(start) => return self.on_too_long(start),
        };
        match relay::decode(line)? {
            DaemonMessage::Config { caller_id, tools } => {
                self.on_config(caller_id.as_deref(), &tools);
            }
            DaemonMessage::Remote { tools } => self.on_remote(&tools),
            DaemonMessage::ToolsChanged => self.discovery.on_changed(),
            DaemonMessage::Progress { asked, percent, message } => {
                self.on_progress(asked, percent, &message);
            }
            DaemonMessage::Reply { asked, outcome } if self.discovery.is_asked(asked) => {
                self.on_discovery(&outcome, now);
            }
            DaemonMessage::Reply { asked, outcome } => self.on_reply(asked, &outcome),
            DaemonMessage::Complaint(error) => return self.on_complaint(&error),
            DaemonMessage::Unknown => {}
        }
        Ok(())
    }

    fn on_config(&mut self, caller_id: Option<&str>, tools: &[&RawValue]) {
        // The first of a connection: earlier callers may be gone.
        if self.link == (Link::Up { has_config: false }) {
            self.link = Link::Up { has_config: true };
            self.catalog.clear_callers();
        }
        self.has_config = true;
        let Some(caller_id) = caller_id else { return self.catalog.clear_callers() };
        if let Err(reason) = self.catalog.set_caller(caller_id, tools) {
            self.warn(format!("not offering all tools of a caller: {reason}"));
        }
    }

    fn on_remote(&mut self, tools: &[&RawValue]) {
        // On a socket this message means nothing.
        if !self.is_remote {
            return;
        }
        self.has_config = true;
        if let Err(reason) = self.catalog.set_remote(tools) {
            self.warn(format!("not offering all tools of the session: {reason}"));
        }
    }

    fn on_progress(&mut self, asked: u64, percent: f64, message: &str) {
        if let Some(token) = self.calls.progressed(asked, percent) {
            let told = ServerNotification::Progress { token, percent, message };
            self.to_client.push(&outgoing::notification(&told));
        }
    }

    /// A reply without a call belongs to one that was cancelled in the meantime.
    fn on_reply(&mut self, asked: u64, outcome: &Result<&RawValue, RelayError<'_>>) {
        let Some(call) = self.calls.end(asked) else { return };
        let stamp = self.stamp(call.era);
        let line = match outcome {
            Ok(value) => result::value(&call.id, value, stamp),
            Err(error) => result::error(&call.id, error, stamp),
        };
        self.to_client.push(&line);
    }

    /// The daemon refused a line whose id it could not read. If it was a call, nothing else will
    /// answer it; if several could be meant, the connection is closed.
    fn on_complaint(&mut self, error: &RelayError<'_>) -> Result<(), Garbage> {
        let message = self.without_key(&error.message);
        self.warn(format!("the daemon reports an error: {message}"));
        if self.calls.len() > 1 {
            return Err(Garbage::Complaint);
        }
        for call in self.calls.drain() {
            let line = result::error(&call.id, error, self.stamp(call.era));
            self.to_client.push(&line);
        }
        Ok(())
    }

    fn on_too_long(&mut self, start: &[u8]) -> Result<(), Garbage> {
        let asked = relay::id_at_start(start).ok_or(Garbage::TooLong)?;
        if let Some(call) = self.calls.end(asked) {
            let line = result::failure(&call.id, Failure::AnswerTooLarge, self.stamp(call.era));
            self.to_client.push(&line);
        }
        Ok(())
    }
}
