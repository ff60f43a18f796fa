//! The events of a session, numbered from 0 without gaps; the oldest are dropped and counted.

use std::collections::VecDeque;
use std::sync::Arc;

use ringback_proto::ids::SessionId;

/// An event in the ring of a session.
#[derive(Debug)]
pub struct RingEvent<E> {
    /// Its index in this ring.
    pub index: u64,
    /// The session it comes from: the ring's own or a descendant.
    pub session: SessionId,
    /// The event.
    pub event: Arc<E>,
}

impl<E> Clone for RingEvent<E> {
    fn clone(&self) -> Self {
        Self { index: self.index, session: self.session, event: Arc::clone(&self.event) }
    }
}

/// A page of a session's events.
#[derive(Debug)]
pub struct EventPage<E> {
    /// The events, in order.
    pub events: Vec<RingEvent<E>>,
    /// The index to continue after: that of the last event examined. `None` when there never was an
    /// event.
    pub last_index: Option<u64>,
    /// The index of the oldest kept event.
    pub oldest_index: u64,
    /// The number of requested events that are no longer kept.
    pub n_dropped: u64,
}

/// Limits on kept events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventLimits {
    /// Events of one session.
    pub events_max: usize,
    /// Bytes of the events of one session.
    pub bytes_max: usize,
    /// Bytes of the events of all sessions.
    pub total_bytes_max: usize,
}

#[derive(Debug)]
pub(super) struct Ring<E> {
    kept: VecDeque<(RingEvent<E>, usize)>,
    n_bytes: usize,
    next_index: u64,
    /// The first index that was ever kept here; earlier events are elsewhere.
    first_index: u64,
    limits: EventLimits,
}

impl<E> Ring<E> {
    pub(super) const fn new(next_index: u64, limits: EventLimits) -> Self {
        let first_index = next_index;
        Self { kept: VecDeque::new(), n_bytes: 0, next_index, first_index, limits }
    }

    /// Adds an event of the given size; the oldest are dropped to make room.
    pub(super) fn push(&mut self, session: SessionId, event: Arc<E>, n_bytes: usize) -> u64 {
        let index = self.next_index;
        self.next_index += 1;
        self.n_bytes += n_bytes;
        self.kept.push_back((RingEvent { index, session, event }, n_bytes));
        while self.kept.len() > self.limits.events_max
            || (self.n_bytes > self.limits.bytes_max && self.kept.len() > 1)
        {
            self.drop_oldest();
        }
        index
    }

    /// Drops the oldest event. Returns its size; `None` if the ring is empty.
    pub(super) fn drop_oldest(&mut self) -> Option<usize> {
        let (_, n_bytes) = self.kept.pop_front()?;
        self.n_bytes -= n_bytes;
        Some(n_bytes)
    }

    /// Drops events down to the given size. If none are left, the next event is the first again.
    pub(super) fn shrink(&mut self, bytes_max: usize) {
        while self.n_bytes > bytes_max || (bytes_max == 0 && !self.kept.is_empty()) {
            self.drop_oldest();
        }
        if self.kept.is_empty() {
            self.kept = VecDeque::new();
            self.first_index = self.next_index;
        }
    }

    /// Returns the number of bytes kept.
    pub(super) const fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns whether the events after an index were ever kept here.
    pub(super) const fn has_after(&self, since: Option<u64>) -> bool {
        let from = match since {
            None => 0,
            Some(since) => since.saturating_add(1),
        };
        from >= self.first_index
    }

    pub(super) const fn next_index(&self) -> u64 {
        self.next_index
    }

    fn oldest_index(&self) -> u64 {
        self.kept.front().map_or(self.next_index, |(said, _)| said.index)
    }

    /// Returns up to `limit` events after an index, optionally only those of this session.
    pub(super) fn after(
        &self,
        since: Option<u64>,
        limit: usize,
        only: Option<SessionId>,
    ) -> EventPage<E> {
        let from = since.map_or(0, |since| since.saturating_add(1));
        let oldest_index = self.oldest_index();
        let skipped = usize::try_from(from.saturating_sub(oldest_index)).unwrap_or(usize::MAX);
        let mut events = Vec::new();
        let mut last_index = since.or_else(|| oldest_index.checked_sub(1));
        for (said, _) in self.kept.iter().skip(skipped) {
            if events.len() == limit {
                break;
            }
            last_index = Some(said.index);
            if only.is_none_or(|only| only == said.session) {
                events.push(said.clone());
            }
        }
        EventPage { events, last_index, oldest_index, n_dropped: oldest_index.saturating_sub(from) }
    }
}
