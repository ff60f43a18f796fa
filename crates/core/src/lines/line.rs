//! A line: its streams, their outboxes, and the choice of stream for the next call.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use ringback_proto::ids::CallId;
use ringback_proto::principal::PrincipalId;

use super::{CancelReason, LineKind, LineName, LineTool, Links, StreamNo};
use crate::time::MonoMs;

/// A position in the order of calls.
pub(super) type Turn = u64;

#[derive(Debug)]
pub(super) struct Line<L: Links> {
    pub(super) name: LineName,
    pub(super) owner: PrincipalId,
    pub(super) grace_ms: u64,
    pub(super) tools: BTreeMap<u64, Arc<LineTool<L::Tool>>>,
    pub(super) by_name: HashMap<Arc<str>, u64>,
    pub(super) streams: BTreeMap<StreamNo, Stream<L>>,
    /// Calls that have not ended, in order of arrival.
    pub(super) calls: BTreeMap<Turn, CallId>,
    /// When it ends if no stream is opened. A caller's line does not end then: its caller counts as
    /// absent.
    pub(super) lapses_at: Option<MonoMs>,
}

#[derive(Debug)]
pub(super) struct Stream<L: Links> {
    pub(super) bell: L::Bell,
    pub(super) outbox: VecDeque<Post>,
    /// Calls assigned to it, taken or not.
    pub(super) load: usize,
    /// The tools that only this stream answers for, on a worker's line. A client answers on any
    /// stream.
    pub(super) offers: BTreeSet<Arc<str>>,
}

/// A message waiting to be sent.
#[derive(Debug)]
pub(super) enum Post {
    Call(CallId),
    Cancel { call: CallId, custom_id: Option<Arc<str>>, reason: CancelReason },
}

impl<L: Links> Line<L> {
    pub(super) fn new(name: LineName, owner: PrincipalId) -> Self {
        Self {
            name,
            owner,
            grace_ms: 0,
            tools: BTreeMap::new(),
            by_name: HashMap::new(),
            streams: BTreeMap::new(),
            calls: BTreeMap::new(),
            lapses_at: None,
        }
    }

    /// Returns the stream for a call to this tool: a client's newest, a worker's least busy.
    pub(super) fn pick(&self, tool: &str) -> Option<StreamNo> {
        match self.name.kind() {
            LineKind::Client | LineKind::Caller => {
                self.streams.last_key_value().map(|(number, _)| *number)
            }
            LineKind::Worker => self
                .streams
                .iter()
                .filter(|(_, stream)| stream.offers.contains(tool))
                .min_by_key(|(number, stream)| (stream.load, **number))
                .map(|(number, _)| *number),
        }
    }

    /// Returns whether a delivered call may be delivered again.
    pub(super) fn redelivers(&self, tool: &LineTool<L::Tool>) -> bool {
        match self.name.kind() {
            LineKind::Client | LineKind::Worker => tool.idempotent || self.grace_ms > 0,
            // It answers by call id, regardless of the stream that delivered it.
            LineKind::Caller => true,
        }
    }

    /// Returns whether any stream still answers for a tool.
    pub(super) fn is_offered(&self, tool: &str) -> bool {
        match self.name.kind() {
            LineKind::Client | LineKind::Caller => true,
            LineKind::Worker => self.streams.values().any(|stream| stream.offers.contains(tool)),
        }
    }

    /// Returns whether its party has a stream open, or had one a moment ago.
    pub(super) fn is_attended(&self) -> bool {
        !self.streams.is_empty() || self.lapses_at.is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tools.is_empty() && self.streams.is_empty() && self.calls.is_empty()
    }

    pub(super) fn add_tool(&mut self, tool: Arc<LineTool<L::Tool>>) {
        if let Some(seq) = self.by_name.insert(Arc::clone(&tool.name), tool.seq) {
            self.tools.remove(&seq);
        }
        self.tools.insert(tool.seq, tool);
    }

    pub(super) fn remove_tool(&mut self, name: &str) -> Option<Arc<LineTool<L::Tool>>> {
        let seq = self.by_name.remove(name)?;
        self.tools.remove(&seq)
    }

    /// Notes that a call left a stream in any way.
    pub(super) fn unload(&mut self, number: StreamNo, call: CallId) {
        if let Some(stream) = self.streams.get_mut(&number) {
            stream.load -= 1;
            stream.outbox.retain(|post| !matches!(post, Post::Call(posted) if *posted == call));
        }
    }
}
