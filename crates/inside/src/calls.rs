//! Running calls.

use std::collections::HashMap;

use ringback_mcp_wire::{Era, Id};

/// More than any agent has; the daemon has its own limit.
const CALLS_MAX: usize = 1024;

/// A call that was sent to the daemon.
#[derive(Debug)]
pub(crate) struct Call {
    /// The agent's id of the call.
    pub(crate) id: Id,
    /// The era of its answer.
    pub(crate) era: Era,
    /// The agent's request for progress.
    pub(crate) progress: Option<Progress>,
}

/// A request for progress.
#[derive(Debug)]
pub(crate) struct Progress {
    /// The agent's token for it.
    pub(crate) token: Id,
    /// The last reported value: it only ever grows.
    pub(crate) percent: Option<f64>,
}

/// Calls by both of their ids.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    by_asked: HashMap<u64, Call>,
    by_id: HashMap<Id, u64>,
}

impl Calls {
    pub(crate) fn is_full(&self) -> bool {
        self.by_asked.len() >= CALLS_MAX
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_asked.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.by_asked.len()
    }

    pub(crate) fn has(&self, id: &Id) -> bool {
        self.by_id.contains_key(id)
    }

    pub(crate) fn insert(&mut self, asked: u64, call: Call) {
        self.by_id.insert(call.id.clone(), asked);
        self.by_asked.insert(asked, call);
    }

    /// Takes an ended call.
    pub(crate) fn end(&mut self, asked: u64) -> Option<Call> {
        let call = self.by_asked.remove(&asked)?;
        self.by_id.remove(&call.id);
        Some(call)
    }

    /// Takes a call that the agent cancelled, and returns the daemon's id of it.
    pub(crate) fn cancel(&mut self, id: &Id) -> Option<u64> {
        let asked = self.by_id.remove(id)?;
        self.by_asked.remove(&asked);
        Some(asked)
    }

    /// Takes all calls, in the order in which they were sent.
    pub(crate) fn drain(&mut self) -> Vec<Call> {
        self.by_id.clear();
        let mut calls: Vec<_> = self.by_asked.drain().collect();
        calls.sort_by_key(|(asked, _)| *asked);
        calls.into_iter().map(|(_, call)| call).collect()
    }

    /// The token for progress of a call, if there is any to report.
    pub(crate) fn progressed(&mut self, asked: u64, percent: f64) -> Option<&Id> {
        let progress = self.by_asked.get_mut(&asked)?.progress.as_mut()?;
        if progress.percent.is_some_and(|told| percent <= told) {
            return None;
        }
        progress.percent = Some(percent);
        Some(&progress.token)
    }
}
