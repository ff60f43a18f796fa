//! Events as the broker publishes them and its readers wait for them.

use std::sync::{Arc, Mutex};

use ringback_core::Now;
use ringback_core::events::{EventRing, Page, Published};
use ringback_core::policy::Sight;
use ringback_proto::event::{Event, Heads};
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::PrincipalId;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::sync::lock;

/// The ring of events and a bell for its readers. Readers have cursors of their own, so a slow one
/// costs nothing but what it misses.
#[derive(Debug)]
pub(crate) struct EventHub {
    ring: Mutex<EventRing>,
    /// Wakes its waiters in the order they came, unlike a watch: a simulation repeats itself.
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
        sight: &Sight,
        wanted: impl FnMut(&Event) -> bool,
    ) -> Page {
        lock(&self.ring).after(cursor, limit, sight, wanted)
    }

    /// Resolves when something is published after this call: ask, then look, then wait.
    pub(crate) fn rung(&self) -> Notified<'_> {
        self.bell.notified()
    }

    pub(crate) fn subscribe(self: &Arc<Self>) -> Subscription {
        Subscription { hub: Arc::clone(self), cursor: lock(&self.ring).last_seq() }
    }
}

/// All events from now on, in order.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<EventHub>,
    cursor: u64,
}

impl Subscription {
    /// Waits for events and gives up to `limit` of them. A reader slower than the ring finds a jump
    /// in `seq`.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn next(&mut self, limit: usize) -> Vec<Arc<Published>> {
        loop {
            let rung = self.hub.rung();
            let page = self.hub.after(self.cursor, limit, &Sight::All, |_| true);
            self.cursor = page.cursor;
            if !page.events.is_empty() {
                return page.events;
            }
            rung.await;
        }
    }

    /// Passes over all there is now.
    pub fn skip(&mut self) {
        self.cursor = lock(&self.hub.ring).last_seq();
    }

    /// Goes back to behind an event that its reader has. One of another epoch is not known here: then
    /// everything that is kept is new.
    pub fn resume(&mut self, epoch: u64, seq: u64) {
        let ring = lock(&self.hub.ring);
        self.cursor = if epoch == ring.epoch() { seq.min(ring.last_seq()) } else { 0 };
    }

    /// The number of the last event that was given or passed over.
    #[must_use]
    pub const fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The last numbers, for everyone or for one owner's events alone.
    #[must_use]
    pub fn heads(&self, now: Now, owner: Option<PrincipalId>) -> Heads {
        let ring = lock(&self.hub.ring);
        match owner {
            None => ring.heads(now),
            Some(owner) => ring.heads_of(now, owner),
        }
    }
}
