//! The renderer: executes commands and keeps the ring filled. One call of [`Renderer::turn`] does
//! everything that is due and never waits.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::Thread;

use ringback_proto::Error;
use ringback_proto::garden::GardenEvent;
use rtrb::{Producer, RingBuffer};

use crate::block::{BLOCK_FRAMES, Block, Shared};
use crate::engine::{DuePlan, Engine, Missing, News};
use crate::mixer::Want;
use crate::player::Player;
use crate::sound::{Sound, SoundKey};

/// Commands that wait for the renderer; one more is `busy`.
const ORDERS_MAX: usize = 1024;
/// Emergency commands that wait; the renderer executes all of them at once.
const URGENT_MAX: usize = 64;
/// Commands between two looks at the urgent ones and at the ring.
const ORDERS_PER_TURN: usize = 64;
/// Prepared sounds that wait for the renderer; the reader waits for room.
const DELIVERIES_MAX: usize = 64;
/// Plans in the ring: the one that is heard, its successor, and one more if commands come faster
/// than the device asks for sound.
const PLANS_IN_RING: usize = 3;
/// Room in a plan for blocks that commands and jumps cut short, and for the mark of its end.
const SPARE_BLOCKS: usize = 8;
/// Room for plans that are silent, a block each: a pause waits for no other plan.
const SILENT_PLANS: usize = 8;

/// A command: runs on the renderer's thread.
pub type Order = Box<dyn FnOnce(&mut Engine) + Send>;

/// What the reader has prepared.
#[derive(Debug, Clone)]
pub enum Delivery {
    /// A sound.
    Ready(SoundKey, Arc<Sound>),
    /// Content that cannot be played, and why.
    Failed(SoundKey, String),
    /// Content that is needed soon, for which there is no room.
    Crowded(SoundKey),
    /// A sound that must make room.
    Dropped(SoundKey),
    /// Trouble with the audio device.
    DeviceTrouble(String),
}

/// What the renderer tells the other threads. Nothing here may wait.
pub trait Listener: Send {
    /// Takes what has to be prepared, nearest first.
    fn wants(&mut self, wants: Vec<Want>);
    /// Takes sounds that were missing when they were to be heard.
    fn requests(&mut self, keys: Vec<SoundKey>);
    /// Takes events.
    fn events(&mut self, events: Vec<GardenEvent>);
}

/// The way to the renderer.
#[derive(Debug, Clone)]
pub struct Orders {
    urgent: SyncSender<Order>,
    normal: SyncSender<Order>,
    deliveries: SyncSender<Delivery>,
    thread: Option<Thread>,
}

/// Keeps the ring filled.
pub struct Renderer {
    engine: Engine,
    ring: Producer<Block>,
    shared: Arc<Shared>,
    /// Frames that are made ahead.
    ahead_frames: u64,
    /// The blocks that a plan may take.
    plan_blocks: usize,
    urgent: Receiver<Order>,
    orders: Receiver<Order>,
    deliveries: Receiver<Delivery>,
    listener: Box<dyn Listener>,
    block: Box<Block>,
}

impl std::fmt::Debug for Renderer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Renderer").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Renderer {
    /// Makes a renderer and the ends that others hold.
    #[must_use]
    pub fn new(
        engine: Engine,
        ahead_frames: u64,
        listener: Box<dyn Listener>,
    ) -> (Self, Orders, Player) {
        let plan_blocks = (ahead_frames as usize).div_ceil(BLOCK_FRAMES) + SPARE_BLOCKS;
        let (ring, consumer) = RingBuffer::new(plan_blocks * PLANS_IN_RING + SILENT_PLANS);
        let shared = Shared::new();
        let player = Player::new(consumer, Arc::clone(&shared), engine.tempo().rate());
        let (to_urgent, urgent) = sync_channel(URGENT_MAX);
        let (to_orders, orders) = sync_channel(ORDERS_MAX);
        let (to_deliveries, deliveries) = sync_channel(DELIVERIES_MAX);
        let block = Box::default();
        let renderer = Self {
            engine,
            ring,
            shared,
            ahead_frames,
            plan_blocks,
            urgent,
            orders,
            deliveries,
            listener,
            block,
        };
        let orders = Orders {
            urgent: to_urgent,
            normal: to_orders,
            deliveries: to_deliveries,
            thread: None,
        };
        (renderer, orders, player)
    }

    /// Returns what it shares with the callback.
    #[must_use]
    pub const fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Returns the engine.
    #[must_use]
    pub const fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Does everything that is due; returns whether more commands wait.
    pub fn turn(&mut self) -> bool {
        self.engine.played(self.shared.played(), &self.shared);
        for order in self.urgent.try_iter() {
            order(&mut self.engine);
        }
        let mut n_orders = 0;
        for order in self.orders.try_iter().take(ORDERS_PER_TURN) {
            order(&mut self.engine);
            n_orders += 1;
        }
        self.take_deliveries();
        if self.plan() {
            // What follows in the ring leaves room for the next plan.
            self.fill(self.plan_blocks + SILENT_PLANS);
        }
        self.tell();
        n_orders == ORDERS_PER_TURN
    }

    fn take_deliveries(&mut self) {
        for delivery in self.deliveries.try_iter() {
            match delivery {
                Delivery::Ready(key, sound) => self.engine.put_sound(&key, &sound),
                Delivery::Failed(key, message) => {
                    self.engine.content_missing(&key, &Missing::Failed(message));
                }
                Delivery::Crowded(key) => self.engine.content_missing(&key, &Missing::NoRoom),
                Delivery::Dropped(key) => self.engine.drop_sound(&key),
                Delivery::DeviceTrouble(cause) => self.engine.report_device(cause),
            }
        }
    }

    /// Starts a new plan if a command wants one: it is in the ring before the callback may play it,
    /// so that the callback never has to wait for it. Without room, the new plan has to wait for the
    /// next buffer, with which the callback drops the plans in between; further commands join it.
    /// Returns whether no plan waits.
    fn plan(&mut self) -> bool {
        let n_needed = match self.engine.due_plan() {
            None => return true,
            Some(DuePlan::Playing) => self.plan_blocks + SILENT_PLANS,
            Some(DuePlan::Silent) => 1,
        };
        let n_slots = self.ring.slots();
        if n_slots < n_needed {
            return false;
        }
        if let Some(generation) = self.engine.start_plan() {
            self.fill(n_slots.saturating_sub(self.plan_blocks));
            self.shared.want(generation);
        }
        true
    }

    /// Makes blocks until enough lies ahead, and leaves some room in the ring.
    fn fill(&mut self, n_left: usize) {
        while self.engine.n_ahead() < self.ahead_frames && self.ring.slots() > n_left {
            if !self.engine.render(&mut self.block) {
                return;
            }
            // There is room, and this is the only end that fills it.
            drop(self.ring.push(Block::clone(&self.block)));
        }
    }

    fn tell(&mut self) {
        let News { wants, requests, events } = self.engine.take_news();
        if !requests.is_empty() {
            self.listener.requests(requests);
        }
        if let Some(wants) = wants {
            self.listener.wants(wants);
        }
        if !events.is_empty() {
            self.listener.events(events);
        }
    }
}

impl Orders {
    /// Wakes this thread with every command.
    #[must_use]
    pub fn waking(mut self, thread: Thread) -> Self {
        self.thread = Some(thread);
        self
    }

    /// Returns a copy whose deliveries a test receives.
    #[cfg(test)]
    pub(crate) fn delivering_elsewhere(mut self) -> (Self, Receiver<Delivery>) {
        let (to_deliveries, deliveries) = sync_channel(DELIVERIES_MAX);
        self.deliveries = to_deliveries;
        (self, deliveries)
    }

    /// Sends a command.
    ///
    /// # Errors
    /// `busy` if too many wait, `gone` if the renderer has ended.
    pub fn send(&self, order: Order) -> Result<(), Error> {
        self.put(&self.normal, order)
    }

    /// Sends a command that waits for no other.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_urgent(&self, order: Order) -> Result<(), Error> {
        self.put(&self.urgent, order)
    }

    /// Sends what was prepared; waits while the renderer has no room, and returns whether it is
    /// still there.
    pub fn deliver(&self, delivery: Delivery) -> bool {
        let delivered = self.deliveries.send(delivery).is_ok();
        self.wake();
        delivered
    }

    fn put(&self, queue: &SyncSender<Order>, order: Order) -> Result<(), Error> {
        let sent = queue.try_send(order);
        self.wake();
        sent.map_err(|error| match error {
            TrySendError::Full(_) => Error::busy("the garden's queue of commands"),
            TrySendError::Disconnected(_) => ended(),
        })
    }

    fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.unpark();
        }
    }
}

/// Makes the error of a renderer that has ended.
pub(crate) fn ended() -> Error {
    Error::new(ringback_proto::ErrorKind::Gone, "the garden is stopping")
}
