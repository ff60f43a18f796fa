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

#[derive(Debug)]
pub(super) struct Ring<E> {
    kept: VecDeque<Said<E>>,
    next_index: u64,
    kept_max: usize,
}

impl<E> Ring<E> {
    pub(super) const fn new(next_index: u64, kept_max: usize) -> Self {
        Self { kept: VecDeque::new(), next_index, kept_max }
    }

    pub(super) fn push(&mut self, session: SessionId, event: Arc<E>) -> u64 {
        if self.kept.len() >= self.kept_max {
            self.kept.pop_front();
        }
        let index = self.next_index;
        self.next_index += 1;
        self.kept.push_back(Said { index, session, event });
        index
    }

    pub(super) const fn next_index(&self) -> u64 {
        self.next_index
    }

    fn oldest_index(&self) -> u64 {
        self.kept.front().map_or(self.next_index, |said| said.index)
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
        for said in self.kept.iter().skip(skipped) {
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
