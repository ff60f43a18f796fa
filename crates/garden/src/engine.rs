//! The engine: timeline, transport and mixer as one plan of blocks. It learns how many frames were
//! played and has no other clock.
//!
//! The transport exists twice. One copy is where playback is heard; the other is ahead of it, where
//! blocks are made. Both make the same steps. A command acts on the one that is heard; then the
//! blocks made ahead are worth nothing, and a new plan starts from a copy.

mod commands;
mod heard;
mod reports;
mod status;

use std::sync::Arc;

use ringback_proto::garden::{
    GardenEvent, GardenPositionEvent, GardenRegionEvent, GardenTimeline, GardenTransportEvent,
    RegionChange, Ticks, TransportCause, TroubleKind,
};
use ringback_proto::ids::JobId;

use self::heard::HeardLog;
use self::reports::Reports;
use crate::block::{BLOCK_FRAMES, Block, Played, Shared};
use crate::course::{Course, JumpCause};
use crate::mix::{JumpTo, jump_fade_frames, limit};
use crate::mixer::{Late, Mixer, Tail, Want};
use crate::sound::{CHANNELS, Sound, SoundKey};
use crate::tempo::TempoMap;
use crate::timeline::Timeline;
use crate::transport::{Jump, Step, Transport};

/// Position events per second of playback.
const POSITIONS_PER_SECOND: u64 = 10;

/// What others need to know since the last time.
#[derive(Debug, Default)]
pub struct News {
    /// What the regions need, nearest first, if it may have changed.
    pub wants: Option<Vec<Want>>,
    /// Sounds that were missing when they were to be heard, each once.
    pub requests: Vec<SoundKey>,
    /// Events, in their order.
    pub events: Vec<GardenEvent>,
}

/// The engine.
#[derive(Debug)]
pub struct Engine {
    timeline: Timeline,
    map: TempoMap,
    mixer: Mixer,
    course: Course,
    heard: Transport,
    /// Frames played by the transport that is heard.
    clock: u64,
    /// The last jump that was heard.
    heard_jump: Option<JumpTo>,
    /// What is being repeated, if that was why playback last jumped.
    repeating: Option<JumpCause>,
    heard_log: HeardLog,
    ahead: Ahead,
    generation: u32,
    replan: Option<Replan>,
    /// Keys to prepare once more.
    requests: Vec<SoundKey>,
    /// Whether what has to be prepared may have changed.
    wants_changed: bool,
    reports: Reports,
    next_position_event: u64,
    n_late: u64,
    n_commands: u64,
}

/// The transport ahead of playback, and what the mixer needs there.
#[derive(Debug, Default)]
struct Ahead {
    transport: Transport,
    clock: u64,
    jump: Option<JumpTo>,
    tail: Option<Tail>,
    continues: bool,
    /// Whether the last block of the plan was made.
    is_done: bool,
}

/// Why content is silent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Missing {
    /// It cannot be played, for this reason.
    Failed(String),
    /// The cache is full of what is needed sooner.
    NoRoom,
}

/// A plan that has to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuePlan {
    /// It plays.
    Playing,
    /// It is the end of another one.
    Silent,
}

/// Why the blocks made ahead are worth nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Replan {
    /// The music goes on from where it is heard, with a change.
    Continue,
    /// It goes on from elsewhere.
    Jump,
}

impl Engine {
    /// Makes an engine for a sample rate, with an empty timeline.
    #[must_use]
    pub fn new(rate: u32) -> Self {
        Self {
            timeline: Timeline::default(),
            map: TempoMap::new(&[], rate),
            mixer: Mixer::default(),
            course: Course::default(),
            heard: Transport::default(),
            clock: 0,
            heard_jump: None,
            repeating: None,
            heard_log: HeardLog::default(),
            ahead: Ahead { is_done: true, ..Ahead::default() },
            generation: 0,
            replan: None,
            requests: Vec::new(),
            wants_changed: false,
            reports: Reports::default(),
            next_position_event: 0,
            n_late: 0,
            n_commands: 0,
        }
    }

    /// Replaces the timeline; what is not in it is not played.
    pub fn load(&mut self, timeline: GardenTimeline) {
        self.timeline = Timeline::new(timeline);
        self.follow_timeline();
    }

    /// Returns the tempo map.
    #[must_use]
    pub const fn tempo(&self) -> &TempoMap {
        &self.map
    }

    /// Returns the timeline.
    #[must_use]
    pub const fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Returns its voices.
    #[must_use]
    pub const fn mixer(&self) -> &Mixer {
        &self.mixer
    }

    /// Returns the course of playback.
    #[must_use]
    pub const fn course(&self) -> &Course {
        &self.course
    }

    /// Follows the device: advances what is heard, and reports what happened there.
    pub fn played(&mut self, played: Played, shared: &Shared) {
        let (position, rate) = (self.position_beats(), u64::from(self.map.rate()));
        self.reports.counted(shared, position, self.clock, rate);
        if played.generation != self.generation || self.replan == Some(Replan::Jump) {
            return;
        }
        let mut n_frames = played.clock.saturating_sub(self.clock);
        self.clock = self.clock.max(played.clock);
        loop {
            match self.heard.step(n_frames, &self.map, &self.course) {
                Step::Rest | Step::Play { n_frames: 0, .. } => break,
                Step::Play { frame, n_frames: done } => {
                    n_frames -= done;
                    let to = frame + done;
                    self.heard_log.played(self.mixer.around(frame, to), frame, to);
                }
                Step::Jump(jump) => self.jumped(&jump),
            }
        }
        let (is_repeating, clock) = (self.repeating.is_some(), self.clock);
        let heard = self.heard_log.take_due(is_repeating, clock, rate);
        self.reports.heard(heard, &self.map);
        self.report_position(shared);
    }

    /// Follows a jump that is heard. Of what is repeated, only the first time is reported: a short
    /// loop would fill the events.
    fn jumped(&mut self, jump: &Jump) {
        self.heard_jump = Some(jump_to(self.heard.frame(), self.map.rate()));
        self.wants_changed = true;
        let (cause, repeats) = match jump.cause {
            JumpCause::Command => (TransportCause::Command, false),
            JumpCause::End => (TransportCause::End, false),
            JumpCause::Loop => (TransportCause::Loop, true),
            JumpCause::Vamp(_) => (TransportCause::Vamp, true),
        };
        let repeating = repeats.then_some(jump.cause);
        if repeats && self.repeating == repeating {
            self.heard_log.repeat_all();
        } else {
            self.reports.heard(self.heard_log.take_all(), &self.map);
            self.heard_log.start_repeating(self.clock, u64::from(self.map.rate()));
            self.report_transport(cause, jump.job_id);
        }
        self.repeating = repeating;
    }

    /// Returns what the new plan is that has to be made, if any; the one before is worth nothing then.
    #[must_use]
    pub fn due_plan(&self) -> Option<DuePlan> {
        let plan = if self.heard.is_playing() { DuePlan::Playing } else { DuePlan::Silent };
        self.replan.map(|_| plan)
    }

    /// Starts a new plan if one has to be made, and returns its generation.
    pub fn start_plan(&mut self) -> Option<u32> {
        let replan = self.replan.take()?;
        self.generation = Shared::next_generation(self.generation);
        let transport = self.heard.clone();
        if replan == Replan::Jump {
            self.heard_jump = Some(jump_to(transport.frame(), self.map.rate()));
        }
        // A plan that goes on keeps the fade it is in.
        let jump = self.heard_jump;
        let continues = replan == Replan::Continue;
        let clock = self.clock;
        self.ahead = Ahead { transport, clock, jump, tail: None, continues, is_done: false };
        Some(self.generation)
    }

    /// Returns how many frames of the plan were made but not played.
    #[must_use]
    pub const fn n_ahead(&self) -> u64 {
        self.ahead.clock.saturating_sub(self.clock)
    }

    /// Makes the next block of the plan; `false` if the plan has no more.
    pub fn render(&mut self, block: &mut Block) -> bool {
        if self.ahead.is_done {
            return false;
        }
        block.generation = self.generation;
        block.clock = self.ahead.clock;
        block.continues = self.ahead.continues;
        block.is_last = false;
        loop {
            match self.ahead.transport.step(BLOCK_FRAMES as u64, &self.map, &self.course) {
                Step::Rest => {
                    self.render_rest(block);
                    break;
                }
                Step::Play { frame, n_frames } => {
                    self.render_frames(block, frame, n_frames);
                    break;
                }
                Step::Jump(jump) => {
                    self.ahead.tail = Some(Tail { from: jump.from, at: 0 });
                    self.ahead.jump = Some(jump_to(self.ahead.transport.frame(), self.map.rate()));
                    // What is repeated was late the first time already.
                    if jump.cause == JumpCause::Command {
                        self.mixer.forget_lateness();
                    }
                }
            }
        }
        true
    }

    /// Gives all regions that play a sound theirs.
    pub fn put_sound(&mut self, key: &SoundKey, sound: &Arc<Sound>) {
        let (from, to) = (self.heard.frame(), self.ahead.transport.frame());
        let is_due = self.mixer.put(key, sound, from, to);
        let end = self.course.end;
        self.set_course();
        if self.heard.is_playing() && (is_due || self.course.end != end) {
            self.change_plan(Replan::Continue);
        }
    }

    /// Takes a sound away from the regions that play it.
    pub fn drop_sound(&mut self, key: &SoundKey) {
        self.mixer.drop_sound(key);
        self.wants_changed = true;
    }

    /// Reports content that is silent: it cannot be played, or there is no room for it.
    pub fn content_missing(&mut self, key: &SoundKey, why: &Missing) {
        for region_id in self.mixer.regions_of(key) {
            let Some(region) = self.timeline.region(region_id) else { continue };
            let cause = match why {
                Missing::NoRoom => {
                    "the cache is full of what is needed sooner; raise `garden.cache`".to_owned()
                }
                Missing::Failed(message) => {
                    self.reports.push(GardenEvent::Region(GardenRegionEvent {
                        region_id,
                        change: RegionChange::Failed,
                        position_beats: region.position.beats(),
                        duration_beats: region.duration.map(Ticks::beats),
                        message: Some(message.clone()),
                    }));
                    message.clone()
                }
            };
            self.report_trouble(TroubleKind::Content, cause, Some(region_id));
        }
    }

    /// Returns what others need to know since the last call.
    pub fn take_news(&mut self) -> News {
        let has_wants = std::mem::take(&mut self.wants_changed);
        News {
            wants: has_wants.then(|| self.mixer.wants(self.heard.frame())),
            requests: std::mem::take(&mut self.requests),
            events: self.reports.take(),
        }
    }

    fn change_plan(&mut self, replan: Replan) {
        self.replan = self.replan.max(Some(replan));
    }

    /// Makes voices, tempo map and end those of the timeline.
    fn follow_timeline(&mut self) {
        let map = TempoMap::new(self.timeline.tempo(), self.map.rate());
        let same_until = map.differs_from(&self.map).map_or(u64::MAX, |tick| map.frame(tick));
        // What was heard has its beats from the map by which it was played.
        if same_until < self.heard.frame() {
            self.reports.heard(self.heard_log.take_all(), &self.map);
        } else if same_until < u64::MAX {
            self.reports.heard(self.heard_log.take_repeated(), &self.map);
        }
        self.heard.follow(&self.map, &map);
        if same_until < self.heard.frame() {
            // The frames before the place have other numbers now.
            self.heard_jump = None;
        }
        self.map = map;
        self.mixer.follow(&self.timeline, &self.map, same_until);
        self.set_course();
        self.wants_changed = true;
        if self.heard.is_playing() {
            self.change_plan(Replan::Continue);
        }
    }

    fn set_course(&mut self) {
        self.course = Course::new(&self.timeline, &self.map, self.mixer.end());
    }

    fn render_frames(&mut self, block: &mut Block, frame: u64, n_frames: u64) {
        let n_samples = n_frames as usize * CHANNELS;
        block.samples[..n_samples].fill(0.0);
        let late = self.mixer.mix(&mut block.samples[..n_samples], frame, self.ahead.jump);
        self.mix_tail(&mut block.samples[..n_samples]);
        self.report_late(late, frame);
        block.n_frames = n_frames as usize;
        block.moves = true;
        block.n_clipped = limit(&mut block.samples[..n_samples]);
        self.ahead.clock += n_frames;
    }

    /// Makes what follows a halt: a short fade, then the mark of the end.
    fn render_rest(&mut self, block: &mut Block) {
        block.moves = false;
        block.n_clipped = 0;
        let fade = jump_fade_frames(self.map.rate());
        let n_left = self.ahead.tail.map_or(0, |tail| fade - tail.at);
        block.n_frames = (n_left as usize).min(BLOCK_FRAMES);
        let n_samples = block.n_frames * CHANNELS;
        block.samples[..n_samples].fill(0.0);
        self.mix_tail(&mut block.samples[..n_samples]);
        if block.n_frames == 0 {
            block.is_last = true;
            self.ahead.is_done = true;
        }
    }

    /// Adds the end of what a jump left.
    fn mix_tail(&mut self, out: &mut [f32]) {
        let rate = self.map.rate();
        self.ahead.tail = self.ahead.tail.and_then(|tail| self.mixer.mix_tail(out, tail, rate));
    }

    /// Counts what was missing, reports it, and requests it once more.
    fn report_late(&mut self, late: Vec<Late>, frame: u64) {
        let position_beats = self.map.tick(frame) / Ticks::PER_BEAT as f64;
        for Late { region_id, key } in late {
            self.n_late += 1;
            self.requests.push(key);
            let cause = "its content was not ready in time".to_owned();
            self.reports.trouble(TroubleKind::Late, position_beats, cause, Some(region_id));
        }
    }

    fn report_transport(&mut self, cause: TransportCause, job_id: Option<JobId>) {
        let tick = self.map.tick(self.heard.frame());
        self.reports.push(GardenEvent::Transport(GardenTransportEvent {
            state: self.heard.state(),
            position_beats: tick / Ticks::PER_BEAT as f64,
            tempo_bpm: self.map.at(tick).bpm,
            cause,
            job_id,
        }));
    }

    fn report_position(&mut self, shared: &Shared) {
        if !self.heard.is_playing() || self.clock < self.next_position_event {
            return;
        }
        self.next_position_event = self.clock + u64::from(self.map.rate()) / POSITIONS_PER_SECOND;
        // What lies ahead has moved with the position.
        self.wants_changed = true;
        let position_beats = self.position_beats();
        let (state, peaks) = (self.heard.state(), shared.take_peaks());
        self.reports.push(GardenEvent::Position(GardenPositionEvent {
            position_beats,
            state,
            peaks,
        }));
    }

    fn position_beats(&self) -> f64 {
        self.map.tick(self.heard.frame()) / Ticks::PER_BEAT as f64
    }
}

fn jump_to(frame: u64, rate: u32) -> JumpTo {
    JumpTo { frame, fade_frames: jump_fade_frames(rate) }
}

#[cfg(test)]
mod tests;
