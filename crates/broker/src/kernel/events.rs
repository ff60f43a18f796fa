//! Events as the broker publishes them and subscribers wait for them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ringback_core::Now;
use ringback_core::events::{EventRing, Page, Published};
use ringback_core::policy::Visibility;
use ringback_core::stream_data::{NewData, PublishedData};
use ringback_proto::event::{Event, Heads};
use ringback_proto::ids::ProjectId;
use ringback_proto::principal::PrincipalId;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use crate::broker::Broker;
use crate::sync::lock;

/// The ring of events, and a bell for its readers. Each reader has its own cursor, so a slow one
/// only misses events and costs nothing else.
#[derive(Debug)]
pub(crate) struct EventHub {
    ring: Mutex<EventRing>,
    /// Wakes its waiters in order of arrival, unlike a watch, so that simulations are repeatable.
    bell: Notify,
    /// Wakes those that also read the chunks of streams.
    data_bell: Notify,
    /// How many listen to chunks of streams. Without any, none is kept.
    n_listeners: AtomicUsize,
}

impl EventHub {
    pub(crate) fn new(epoch: u64, kept_max: usize) -> Self {
        let (bell, data_bell) = (Notify::new(), Notify::new());
        let ring = Mutex::new(EventRing::new(epoch, kept_max));
        Self { ring, bell, data_bell, n_listeners: AtomicUsize::new(0) }
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

    /// Publishes a chunk of a stream to those who listen now. Never waits for them.
    pub(crate) fn publish_data(&self, now: Now, new: NewData) {
        lock(&self.ring).publish_data(now, new);
        self.data_bell.notify_waiters();
    }

    /// Returns whether anyone listens to chunks of streams.
    pub(crate) fn has_listeners(&self) -> bool {
        self.n_listeners.load(Ordering::Acquire) > 0
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
            data_cursor: ring.last_data(),
        }
    }
}

/// Whether a reader of events listens to chunks of streams. While none does, they are not kept.
#[derive(Debug)]
pub struct DataListener {
    hub: Arc<EventHub>,
    listens: AtomicBool,
}

impl DataListener {
    /// Creates one for a reader of a [`Subscription`]; it does not listen yet.
    #[must_use]
    pub fn of(broker: &Broker) -> Self {
        let hub = Arc::clone(&broker.0.kernel.events);
        Self { hub, listens: AtomicBool::new(false) }
    }

    /// Starts or stops to listen.
    pub fn set(&self, listens: bool) {
        if self.listens.swap(listens, Ordering::AcqRel) == listens {
            return;
        }
        if listens {
            self.hub.n_listeners.fetch_add(1, Ordering::AcqRel);
        } else if self.hub.n_listeners.fetch_sub(1, Ordering::AcqRel) == 1 {
            lock(&self.hub.ring).forget_data();
        }
    }
}

impl Drop for DataListener {
    fn drop(&mut self) {
        self.set(false);
    }
}

/// What a subscription that also reads the chunks of streams gets.
#[derive(Debug, Clone)]
pub enum Heard {
    /// An event.
    Event(Arc<Published>),
    /// A chunk of a stream.
    Data(Arc<PublishedData>),
}

/// A subscription to all events from now on, in order.
#[derive(Debug)]
pub struct Subscription {
    hub: Arc<EventHub>,
    cursor: u64,
    live_cursor: u64,
    data_cursor: u64,
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

    /// Like [`Self::next`], and also returns the chunks of streams, each after the events before it.
    /// A reader slower than they come sees a jump in their `topic_seq`.
    ///
    /// # Cancel safety
    /// Dropping it loses nothing.
    pub async fn next_with_data(&mut self, limit: usize) -> Vec<Heard> {
        let hub = Arc::clone(&self.hub);
        loop {
            let (rung, data_rung) = (hub.rung(), hub.data_bell.notified());
            let heard = self.heard(limit);
            if !heard.is_empty() {
                return heard;
            }
            tokio::select! {
                biased;
                () = rung => {}
                () = data_rung => {}
            }
        }
    }

    fn heard(&mut self, limit: usize) -> Vec<Heard> {
        let (page, live, data) = {
            let ring = lock(&self.hub.ring);
            let page = ring.after(self.cursor, limit, &Visibility::All, |_| true);
            let live = ring.live_after(self.live_cursor);
            let data = ring.data_after(self.data_cursor, page.cursor);
            (self.cursor, self.live_cursor) = (page.cursor, ring.last_live());
            (page, live, data)
        };
        if let Some(last) = data.last() {
            self.data_cursor = last.number();
        }
        let mut heard = Vec::with_capacity(page.events.len() + live.len() + data.len());
        let mut data = data.into_iter().peekable();
        for event in page.events {
            while let Some(earlier) = data.next_if(|data| data.seq() < event.event.seq) {
                heard.push(Heard::Data(earlier));
            }
            heard.push(Heard::Event(event));
        }
        heard.extend(data.map(Heard::Data));
        heard.extend(live.into_iter().map(Heard::Event));
        heard
    }

    /// Skips all events so far.
    pub fn skip(&mut self) {
        let ring = lock(&self.hub.ring);
        (self.cursor, self.live_cursor) = (ring.last_seq(), ring.last_live());
        self.data_cursor = ring.last_data();
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
