//! Events as the broker publishes them and subscribers wait for them.

use std::sync::{Arc, Mutex};

use ringback_core::Now;
use ringback_core::events::{EventRing, Page, Published};
use ringback_core::policy::Visibility;
use ringback_proto::event::{Event, Heads};
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::PrincipalId;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::sync::lock;

/// The ring of events, and a bell for its readers. Each reader has its own cursor, so a slow one
/// only misses events and costs nothing else.
#[derive(Debug)]
pub(crate) struct EventHub {
    ring: Mutex<EventRing>,
    /// Wakes its waiters in order of arrival, unlike a watch, so that simulations are repeatable.
    bell: Notify,
}

impl EventHub {
    pub(crate) fn new(epoch: u64, kept_max: usize) -> Self {
        Self { ring: Mutex::new(EventRing::new(epoch, kept_max)), bell: Notify::new() }
    }

    pub(crate) fn publish(
        &self,
        now: Now,
        event: Event,
        owner: PrincipalId,
        project: Option<ProjectId>,
    ) {
        lock(&self.ring).publish(now, event, owner, project);
        self.bell.notify_waiters();
    }

    pub(crate) fn epoch(&self) -> u64 {
        lock(&self.ring).epoch()
    }

    pub(crate) fn after(
        &self,
        cursor: u64,
        limit: usize,
        sight: &Visibility,
        wanted: impl FnMut(&Event) -> bool,
    ) -> Page {
        lock(&self.ring).after(cursor, limit, sight, wanted)
    }

    /// Resolves when something is published after this call. Call it first, then look, then wait.
    pub(crate) fn rung(&self) -> Notified<'_> {
        self.bell.notified()
    }

    pub(crate) fn subscribe(self: &Arc<Self>) -> Subscription {
        let ring = lock(&self.ring);
        Subscription {
            hub: Arc::clone(self),
            cursor: ring.last_seq(),
            live_cursor: ring.last_live(),
        }
    }
}

/// A subscription to all events from now on, in order.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<EventHub>,
    cursor: u64,
    live_cursor: u64,
}

impl Subscription {
    /// Waits for events and returns up to `limit` of them, and the live ones of the meantime. A
    /// reader slower than the ring sees a jump in `seq`.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn next(&mut self, limit: usize) -> Vec<Arc<Published>> {
        loop {
            let rung = self.hub.rung();
            let events = {
                let ring = lock(&self.hub.ring);
                let page = ring.after(self.cursor, limit, &Visibility::All, |_| true);
                let live = ring.live_after(self.live_cursor);
                (self.cursor, self.live_cursor) = (page.cursor, ring.last_live());
                page.events.into_iter().chain(live).collect::<Vec<_>>()
            };
            if !events.is_empty() {
                return events;
            }
            rung.await;
        }
    }

    /// Skips all events so far.
    pub fn skip(&mut self) {
        let ring = lock(&self.hub.ring);
        (self.cursor, self.live_cursor) = (ring.last_seq(), ring.last_live());
    }

    /// Rewinds to just after an event that the reader already has. The position of an event of
    /// another epoch is unknown here, so everything kept is new.
    pub fn resume(&mut self, epoch: u64, seq: u64) {
        let ring = lock(&self.hub.ring);
        self.cursor = if epoch == ring.epoch() { seq.min(ring.last_seq()) } else { 0 };
    }

    /// Returns the number of the last event that was returned or skipped.
    #[must_use]
    pub const fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Returns the last numbers of the events of one project.
    #[must_use]
    pub fn heads_of_project(&self, now: Now, project: ProjectId) -> Heads {
        lock(&self.hub.ring).heads_of_project(now, project)
    }

    /// Returns the last numbers, for everyone or for one owner's events alone.
    #[must_use]
    pub fn heads(&self, now: Now, owner: Option<PrincipalId>) -> Heads {
        let ring = lock(&self.hub.ring);
        match owner {
            None => ring.heads(now),
            Some(owner) => ring.heads_of(now, owner),
        }
    }
}
