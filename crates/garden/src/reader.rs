//! The reader: keeps the sound of the next seconds in memory, on a thread that may be busy for long.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use ringback_proto::garden::Ticks;
use ringback_sync::{lock, wait};

use crate::content::{ContentError, Preparer};
use crate::mixer::Want;
use crate::renderer::{Delivery, Orders};
use crate::sound::{Sound, SoundKey};

/// Sounds within this time of the position may push others out of the cache, in seconds.
pub const WINDOW_SECONDS: u64 = 4;

/// Regions that wait to be placed; one more is refused.
const PROBES_MAX: usize = 64;

/// What a new region waits for.
pub type ProbeAnswer = Box<dyn FnOnce(Result<Probed, ContentError>) + Send>;

/// Content that can be played.
#[derive(Debug, Clone)]
pub struct Probed {
    /// Its sound.
    pub sound: Arc<Sound>,
    /// The length of its notes, if it is MIDI.
    pub notes: Option<Ticks>,
}

/// What the reader has to do. Others write it, without waiting.
#[derive(Default)]
struct Tasks {
    /// Nearest first.
    wants: Vec<Want>,
    /// Failed sounds to try once more.
    retries: HashSet<SoundKey>,
    probes: VecDeque<(SoundKey, ProbeAnswer)>,
    has_changed: bool,
    is_closed: bool,
}

/// The reader's list of tasks, shared.
#[derive(Clone, Default)]
pub struct Desk(Arc<(Mutex<Tasks>, Condvar)>);

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Desk")
    }
}

impl Desk {
    /// Sets what the regions need, nearest first.
    pub fn set_wants(&self, wants: Vec<Want>) {
        self.change(|tasks| tasks.wants = wants);
    }

    /// Asks once more for sounds that were missing.
    pub fn retry(&self, keys: Vec<SoundKey>) {
        self.change(|tasks| tasks.retries.extend(keys));
    }

    /// Asks for the sound of a region that is to be placed; `false` if too many wait.
    pub fn probe(&self, key: SoundKey, answer: ProbeAnswer) -> bool {
        let mut has_room = false;
        self.change(|tasks| {
            has_room = tasks.probes.len() < PROBES_MAX && !tasks.is_closed;
            if has_room {
                tasks.probes.push_back((key, answer));
            }
        });
        has_room
    }

    /// Ends the reader, after what it is doing.
    pub fn close(&self) {
        self.change(|tasks| {
            tasks.is_closed = true;
            tasks.probes.clear();
        });
    }

    fn change(&self, change: impl FnOnce(&mut Tasks)) {
        let mut tasks = self.lock();
        change(&mut tasks);
        tasks.has_changed = true;
        drop(tasks);
        self.0.1.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        lock(&self.0.0)
    }

    fn wait(&self) -> MutexGuard<'_, Tasks> {
        let mut tasks = self.lock();
        while !tasks.has_changed {
            tasks = wait(&self.0.1, tasks);
        }
        tasks.has_changed = false;
        tasks
    }
}

/// Prepares sound.
#[derive(Debug)]
pub struct Reader {
    desk: Desk,
    orders: Orders,
    preparer: Preparer,
    window_frames: u64,
    bytes_max: u64,
    bytes: u64,
    sounds: HashMap<SoundKey, Arc<Sound>>,
    /// Not tried again until asked for.
    failed: HashSet<SoundKey>,
    /// Not tried again until they are needed soon, or room was made.
    postponed: HashSet<SoundKey>,
}

impl Reader {
    /// Makes a reader whose cache holds `bytes_max`.
    #[must_use]
    pub fn new(desk: Desk, orders: Orders, preparer: Preparer, rate: u32, bytes_max: u64) -> Self {
        Self {
            desk,
            orders,
            preparer,
            window_frames: u64::from(rate) * WINDOW_SECONDS,
            bytes_max,
            bytes: 0,
            sounds: HashMap::new(),
            failed: HashSet::new(),
            postponed: HashSet::new(),
        }
    }

    /// Works until the desk is closed.
    pub fn run(mut self) {
        let desk = self.desk.clone();
        loop {
            let mut tasks = desk.wait();
            if tasks.is_closed {
                return;
            }
            let probe = tasks.probes.pop_front();
            tasks.has_changed = !tasks.probes.is_empty();
            let (wants, retries) = (tasks.wants.clone(), std::mem::take(&mut tasks.retries));
            drop(tasks);
            for key in retries {
                self.failed.remove(&key);
            }
            if let Some((key, answer)) = probe {
                answer(self.probe(&key, &wants));
            }
            if !self.prepare_next(&wants) {
                return;
            }
        }
    }

    /// Makes the sound of a region that is to be placed, so that a bad one is refused.
    fn probe(&mut self, key: &SoundKey, wants: &[Want]) -> Result<Probed, ContentError> {
        let notes = match key.notes {
            Some(_) => Some(self.preparer.midi_length(key.hash)?),
            None => None,
        };
        if let Some(sound) = self.sounds.get(key) {
            return Ok(Probed { sound: Arc::clone(sound), notes });
        }
        let sound = Arc::new(self.preparer.prepare(key)?);
        self.failed.remove(key);
        self.keep(key, &sound, wants, self.window_frames);
        Ok(Probed { sound, notes })
    }

    /// Prepares the nearest missing sound; more follow in the next round, after a look at what has
    /// changed. Returns whether the renderer is still there.
    fn prepare_next(&mut self, wants: &[Want]) -> bool {
        self.forget_unwanted(wants);
        let Some(want) = wants.iter().find(|want| self.is_missing(want)).cloned() else {
            return true;
        };
        let prepared = match self.sounds.get(&want.key) {
            Some(sound) => Ok(Arc::clone(sound)),
            None => self.preparer.prepare(&want.key).map(Arc::new),
        };
        let delivery = match prepared {
            Ok(sound) if self.keep(&want.key, &sound, wants, want.distance) => {
                Some(Delivery::Ready(want.key.clone(), sound))
            }
            Ok(_) if want.distance > self.window_frames => {
                self.postponed.insert(want.key.clone());
                None
            }
            Ok(_) => {
                let message = "the cache is full of what is needed sooner; raise `garden.cache`";
                self.failed.insert(want.key.clone());
                Some(Delivery::Failed(want.key.clone(), message.to_owned()))
            }
            Err(error) => {
                self.failed.insert(want.key.clone());
                Some(Delivery::Failed(want.key.clone(), error.to_string()))
            }
        };
        let key = want.key;
        self.desk.change(|tasks| {
            for want in tasks.wants.iter_mut().filter(|want| want.key == key) {
                want.is_ready = true;
            }
        });
        delivery.is_none_or(|delivery| self.orders.deliver(delivery))
    }

    fn is_missing(&self, want: &Want) -> bool {
        let is_postponed = want.distance > self.window_frames && self.postponed.contains(&want.key);
        !want.is_ready && !self.failed.contains(&want.key) && !is_postponed
    }

    /// Keeps a sound. What is needed later makes room for what is needed within the window.
    fn keep(&mut self, key: &SoundKey, sound: &Arc<Sound>, wants: &[Want], distance: u64) -> bool {
        if self.sounds.contains_key(key) {
            return true;
        }
        let bytes = sound.bytes();
        for later in wants.iter().rev() {
            if self.bytes + bytes <= self.bytes_max {
                break;
            }
            if distance > self.window_frames || later.distance <= distance {
                return false;
            }
            self.evict(&later.key);
        }
        if self.bytes + bytes > self.bytes_max {
            return false;
        }
        self.bytes += bytes;
        self.sounds.insert(key.clone(), Arc::clone(sound));
        true
    }

    fn evict(&mut self, key: &SoundKey) {
        if let Some(sound) = self.sounds.remove(key) {
            self.bytes -= sound.bytes();
            self.postponed.clear();
            self.orders.deliver(Delivery::Dropped(key.clone()));
        }
    }

    /// Drops the sounds of regions that are gone, once room becomes scarce.
    fn forget_unwanted(&mut self, wants: &[Want]) {
        if self.bytes <= self.bytes_max / 2 {
            return;
        }
        let wanted: HashSet<&SoundKey> = wants.iter().map(|want| &want.key).collect();
        let unwanted: Vec<SoundKey> =
            self.sounds.keys().filter(|key| !wanted.contains(key)).cloned().collect();
        for key in unwanted {
            self.evict(&key);
        }
    }
}

#[cfg(test)]
mod tests;
