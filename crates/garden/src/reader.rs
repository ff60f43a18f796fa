//! The reader: keeps the sound of the next seconds in memory, on a thread that may be busy for long.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

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

/// How long a sound is kept for a region that is being placed; longer than that may take. One that was
/// refused must not fill the cache for ever.
pub const HOLD_TIME: Duration = Duration::from_secs(60);

/// Sounds that failed or found no room, of which those that no region plays are not forgotten yet.
const FAILED_KEPT: usize = 256;

/// Content that can be played.
#[derive(Debug)]
pub struct Probed {
    /// Its length in frames.
    pub n_frames: u64,
    /// The length of its notes, if it is MIDI.
    pub notes: Option<Ticks>,
    /// Its sound, if there is room for it.
    pub sound: Option<HeldSound>,
}

/// A sound of the cache, which keeps it until this is dropped, for [`HOLD_TIME`] at most: by then a region plays it, or none
/// ever will. So every sound that is played is one of the cache, and counted there.
#[derive(Debug)]
pub struct HeldSound {
    /// The sound.
    pub sound: Arc<Sound>,
    /// What the reader looks at.
    _hold: Arc<()>,
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
    /// Sounds that regions are being placed with, and since when.
    holds: HashMap<SoundKey, (Weak<()>, Instant)>,
    /// Not tried again until asked for.
    failed: HashSet<SoundKey>,
    /// Sounds that found no room. They are tried again when there is some.
    crowded: HashMap<SoundKey, Crowded>,
}

/// A sound that found no room.
#[derive(Debug, Clone, Copy)]
struct Crowded {
    bytes: u64,
    is_reported: bool,
}

/// A sound in the cache that may be dropped.
#[derive(Debug)]
struct Droppable<'a> {
    key: &'a SoundKey,
    /// Frames from the position until the first region that plays it.
    distance: u64,
    bytes: u64,
}

/// What the reader does next.
#[derive(Debug)]
enum Next {
    Prepare(Want),
    /// A sound is needed soon, and there is no room.
    Report(SoundKey),
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
            holds: HashMap::new(),
            failed: HashSet::new(),
            crowded: HashMap::new(),
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
        let sound = match self.sounds.get(key) {
            Some(sound) => Arc::clone(sound),
            None => Arc::new(self.preparer.prepare(key)?),
        };
        self.failed.remove(key);
        let n_frames = sound.n_frames();
        let is_kept = self.keep(key, &sound, wants, self.window_frames);
        let sound = is_kept.then(|| HeldSound { sound, _hold: self.hold(key) });
        Ok(Probed { n_frames, notes, sound })
    }

    /// Keeps a sound in the cache as long as what is returned, and no longer than [`HOLD_TIME`].
    fn hold(&mut self, key: &SoundKey) -> Arc<()> {
        self.holds.retain(|_, (hold, _)| hold.strong_count() > 0);
        let hold = self.holds.get(key).and_then(|(hold, _)| hold.upgrade()).unwrap_or_default();
        self.holds.insert(key.clone(), (Arc::downgrade(&hold), Instant::now()));
        hold
    }

    fn is_held(&self, key: &SoundKey) -> bool {
        let is_held = |(hold, since): &(Weak<()>, Instant)| {
            hold.strong_count() > 0 && since.elapsed() < HOLD_TIME
        };
        self.holds.get(key).is_some_and(is_held)
    }

    /// Prepares the nearest missing sound; more follow in the next round, after a look at what has
    /// changed. Returns whether the renderer is still there.
    fn prepare_next(&mut self, wants: &[Want]) -> bool {
        self.forget_unwanted(wants);
        let Some(next) = self.next(wants) else { return true };
        let (key, delivery) = match next {
            Next::Report(key) => {
                self.report_crowded(&key);
                (key.clone(), Some(Delivery::Crowded(key)))
            }
            Next::Prepare(want) => {
                let delivery = self.prepare(&want, wants);
                (want.key, delivery)
            }
        };
        self.desk.change(|tasks| {
            for want in tasks.wants.iter_mut().filter(|want| want.key == key) {
                want.is_ready = true;
            }
        });
        delivery.is_none_or(|delivery| self.orders.deliver(delivery))
    }

    /// Prepares a sound; returns what the renderer has to know.
    fn prepare(&mut self, want: &Want, wants: &[Want]) -> Option<Delivery> {
        let key = want.key.clone();
        let prepared = match self.sounds.get(&key) {
            Some(sound) => Ok(Arc::clone(sound)),
            None => self.preparer.prepare(&key).map(Arc::new),
        };
        match prepared {
            Ok(sound) if self.keep(&key, &sound, wants, want.distance) => {
                Some(Delivery::Ready(key, sound))
            }
            Ok(_) if want.distance > self.window_frames => None,
            Ok(_) => {
                self.report_crowded(&key);
                Some(Delivery::Crowded(key))
            }
            Err(error) => {
                tracing::warn!(hash = %key.hash, %error, "content cannot be played");
                self.failed.insert(key.clone());
                Some(Delivery::Failed(key, error.to_string()))
            }
        }
    }

    fn report_crowded(&mut self, key: &SoundKey) {
        if let Some(crowded) = self.crowded.get_mut(key) {
            crowded.is_reported = true;
        }
    }

    /// Returns what to do for the nearest sound that is missing.
    fn next(&self, wants: &[Want]) -> Option<Next> {
        let mut droppable = None;
        for want in wants.iter().filter(|want| !want.is_ready && !self.failed.contains(&want.key)) {
            let Some(crowded) = self.crowded.get(&want.key) else {
                return Some(Next::Prepare(want.clone()));
            };
            let droppable = droppable.get_or_insert_with(|| self.droppable(wants));
            if self.has_room(crowded.bytes, want.distance, droppable) {
                return Some(Next::Prepare(want.clone()));
            }
            if want.distance <= self.window_frames && !crowded.is_reported {
                return Some(Next::Report(want.key.clone()));
            }
        }
        None
    }

    /// Returns the sounds in the cache that may be dropped, with their nearest regions, nearest
    /// first, and how much memory each takes together with those behind it.
    fn droppable<'a>(&self, wants: &'a [Want]) -> Vec<Droppable<'a>> {
        let mut counted = HashSet::new();
        let mut droppable = Vec::new();
        for Want { key, distance, .. } in wants {
            let Some(sound) = self.sounds.get(key) else { continue };
            if counted.insert(key) && !self.is_held(key) {
                droppable.push(Droppable { key, distance: *distance, bytes: sound.bytes() });
            }
        }
        let mut bytes = 0;
        for sound in droppable.iter_mut().rev() {
            bytes += sound.bytes;
            sound.bytes = bytes;
        }
        droppable
    }

    /// Returns whether a sound fits that is needed at a distance. Within the window, it takes the
    /// room of what is needed later.
    fn has_room(&self, bytes: u64, distance: u64, droppable: &[Droppable]) -> bool {
        let n_nearer = if distance <= self.window_frames {
            droppable.partition_point(|sound| sound.distance <= distance)
        } else {
            droppable.len()
        };
        let freed = droppable.get(n_nearer).map_or(0, |sound| sound.bytes);
        self.bytes - freed + bytes <= self.bytes_max
    }

    /// Keeps a sound. What is needed later makes room for what is needed within the window.
    fn keep(&mut self, key: &SoundKey, sound: &Arc<Sound>, wants: &[Want], distance: u64) -> bool {
        if self.sounds.contains_key(key) {
            return true;
        }
        let bytes = sound.bytes();
        if self.bytes + bytes > self.bytes_max {
            self.drop_unwanted(wants);
            let mut droppable = self.droppable(wants);
            if !self.has_room(bytes, distance, &droppable) {
                let crowded = Crowded { bytes, is_reported: false };
                self.crowded.entry(key.clone()).or_insert(crowded);
                return false;
            }
            while self.bytes + bytes > self.bytes_max
                && let Some(last) = droppable.pop()
            {
                self.evict(last.key);
            }
        }
        self.crowded.remove(key);
        self.bytes += bytes;
        self.sounds.insert(key.clone(), Arc::clone(sound));
        true
    }

    fn evict(&mut self, key: &SoundKey) {
        if self.is_held(key) {
            return;
        }
        if let Some(sound) = self.sounds.remove(key) {
            self.bytes -= sound.bytes();
            self.orders.deliver(Delivery::Dropped(key.clone()));
        }
    }

    /// Drops the sounds of regions that are gone, once room becomes scarce, and forgets which of
    /// them failed.
    fn forget_unwanted(&mut self, wants: &[Want]) {
        if self.bytes > self.bytes_max / 2 || self.failed.len() + self.crowded.len() > FAILED_KEPT {
            self.drop_unwanted(wants);
        }
    }

    fn drop_unwanted(&mut self, wants: &[Want]) {
        let wanted: HashSet<&SoundKey> = wants.iter().map(|want| &want.key).collect();
        self.failed.retain(|key| wanted.contains(key));
        self.crowded.retain(|key, _| wanted.contains(key));
        let unwanted: Vec<SoundKey> =
            self.sounds.keys().filter(|key| !wanted.contains(key)).cloned().collect();
        for key in unwanted {
            self.evict(&key);
        }
    }
}

#[cfg(test)]
mod tests;
