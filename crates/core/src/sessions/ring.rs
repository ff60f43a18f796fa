//! What a session has said, numbered from 0 without gaps; the oldest are dropped and counted.

use std::collections::VecDeque;
use std::sync::Arc;

use ringback_proto::ids::SessionId;

/// One thing that was said, in the ring of a session.
#[derive(Debug)]
pub struct Said<E> {
    /// Its number in this ring.
    pub index: u64,
    /// Who said it: the session itself or one that comes from it.
    pub session: SessionId,
    /// What.
    pub event: Arc<E>,
}

impl<E> Clone for Said<E> {
    fn clone(&self) -> Self {
        Self { index: self.index, session: self.session, event: Arc::clone(&self.event) }
    }
}

/// Some of what a session said.
#[derive(Debug)]
pub struct EventPage<E> {
    /// In order.
    pub events: Vec<Said<E>>,
    /// The number to go on after: of the last one looked at. `None` when nothing was ever said.
    pub last_index: Option<u64>,
    /// The oldest number that is still kept.
    pub oldest_index: u64,
    /// How many of those asked for are no longer kept.
    pub n_dropped: u64,
}

/// How much of what sessions say is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptEvents {
    /// Events of one session.
    pub events_max: usize,
    /// Bytes of them.
    pub bytes_max: usize,
    /// Bytes of the events of all sessions together.
    pub total_bytes_max: usize,
}

#[derive(Debug)]
pub(super) struct Ring<E> {
    kept: VecDeque<(Said<E>, usize)>,
    n_bytes: usize,
    next_index: u64,
    /// The first number that was ever kept here; what is before is elsewhere.
    first_index: u64,
    limits: KeptEvents,
}

impl<E> Ring<E> {
    pub(super) const fn new(next_index: u64, limits: KeptEvents) -> Self {
        let first_index = next_index;
        Self { kept: VecDeque::new(), n_bytes: 0, next_index, first_index, limits }
    }

    /// Takes an event of so many bytes; the oldest go for it.
    pub(super) fn push(&mut self, session: SessionId, event: Arc<E>, n_bytes: usize) -> u64 {
        let index = self.next_index;
        self.next_index += 1;
        self.n_bytes += n_bytes;
        self.kept.push_back((Said { index, session, event }, n_bytes));
        while self.kept.len() > self.limits.events_max
            || (self.n_bytes > self.limits.bytes_max && self.kept.len() > 1)
        {
            self.drop_oldest();
        }
        index
    }

    /// Drops the oldest event. How many bytes it had; nothing if there is none.
    pub(super) fn drop_oldest(&mut self) -> Option<usize> {
        let (_, n_bytes) = self.kept.pop_front()?;
        self.n_bytes -= n_bytes;
        Some(n_bytes)
    }

    /// Keeps no more than so many bytes. With nothing left, what comes next is the first again.
    pub(super) fn shrink(&mut self, bytes_max: usize) {
        while self.n_bytes > bytes_max || (bytes_max == 0 && !self.kept.is_empty()) {
            self.drop_oldest();
        }
        if self.kept.is_empty() {
            self.kept = VecDeque::new();
            self.first_index = self.next_index;
        }
    }

    /// Bytes that are kept.
    pub(super) const fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Whether what comes after a number was ever kept here.
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

    /// Up to `limit` of what was said after a number, by this session alone if asked.
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
