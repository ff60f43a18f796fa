//! The engine: timeline, transport and mixer as one plan of blocks. It learns how many frames were
//! played and has no other clock.
//!
//! The transport exists twice. One copy is where playback is heard; the other is ahead of it, where
//! blocks are made. Both make the same steps. A command acts on the one that is heard; then the
//! blocks made ahead are worth nothing, and a new plan starts from a copy.

mod commands;
mod status;

use std::collections::HashMap;
use std::sync::Arc;

use ringback_proto::garden::{
    GardenEvent, GardenPositionEvent, GardenTimeline, GardenTransportEvent, GardenTroubleEvent,
    Ticks, TransportCause, TroubleKind,
};
use ringback_proto::ids::{JobId, RegionId};

use crate::block::{BLOCK_FRAMES, Block, Played, Shared};
use crate::mix::{JumpTo, Voice, jump_fade_frames, limit};
use crate::sound::{CHANNELS, Sound, SoundKey};
use crate::tempo::TempoMap;
use crate::timeline::Timeline;
use crate::transport::{Step, Transport};

/// Events that wait to be fetched; more are dropped, oldest first, because playback waits for no
/// listener.
const EVENTS_MAX: usize = 1024;

/// Position events per second of playback.
const POSITIONS_PER_SECOND: u64 = 10;

/// What a region needs prepared.
#[derive(Debug, Clone, PartialEq)]
pub struct Want {
    /// The region.
    pub region_id: RegionId,
    /// What it plays.
    pub key: SoundKey,
    /// Frames from the position until it sounds; what lies behind comes last.
    pub distance: u64,
    /// Whether it has its sound already.
    pub is_ready: bool,
}

/// The engine.
#[derive(Debug)]
pub struct Engine {
    timeline: Timeline,
    map: TempoMap,
    /// By start.
    voices: Vec<Voice>,
    /// The frame at which nothing is left to play.
    end: u64,
    heard: Transport,
    /// Frames played by the transport that is heard.
    clock: u64,
    /// The last jump that was heard.
    heard_jump: Option<JumpTo>,
    ahead: Ahead,
    generation: u32,
    replan: Option<Replan>,
    /// Keys to prepare once more.
    requests: Vec<SoundKey>,
    /// Whether what has to be prepared may have changed.
    wants_changed: bool,
    events: EventLog,
    next_position_event: u64,
    n_late: u64,
    n_commands: u64,
    n_underruns_reported: u64,
    n_clipped_reported: u64,
    next_clipping_report: u64,
}

/// The transport ahead of playback, and what the mixer needs there.
#[derive(Debug, Default)]
struct Ahead {
    transport: Transport,
    clock: u64,
    jump: Option<JumpTo>,
    /// The end of what a jump left: the next frame, and how much of the fade is over.
    tail: Option<(u64, u64)>,
    continues: bool,
    /// Whether the last block of the plan was made.
    is_done: bool,
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
            voices: Vec::new(),
            end: 0,
            heard: Transport::default(),
            clock: 0,
            heard_jump: None,
            ahead: Ahead { is_done: true, ..Ahead::default() },
            generation: 0,
            replan: None,
            requests: Vec::new(),
            wants_changed: false,
            events: EventLog::default(),
            next_position_event: 0,
            n_late: 0,
            n_commands: 0,
            n_underruns_reported: 0,
            n_clipped_reported: 0,
            next_clipping_report: 0,
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

    /// Returns the revision of the timeline.
    #[must_use]
    pub const fn revision(&self) -> u64 {
        self.timeline.revision()
    }

    /// Returns whether playback is heard.
    #[must_use]
    pub fn is_playing(&self) -> bool {
        self.heard.is_playing()
    }

    /// Follows the device: advances what is heard, and reports what happened there.
    pub fn played(&mut self, played: Played, shared: &Shared) {
        self.report_trouble(shared);
        if played.generation != self.generation || self.replan == Some(Replan::Jump) {
            return;
        }
        let mut n_frames = played.clock.saturating_sub(self.clock);
        self.clock = self.clock.max(played.clock);
        loop {
            match self.heard.step(n_frames, &self.map, self.end) {
                Step::Rest | Step::Play { n_frames: 0, .. } => break,
                Step::Play { n_frames: done, .. } => n_frames -= done,
                Step::Jump(jump) => {
                    let cause =
                        if jump.is_end { TransportCause::End } else { TransportCause::Command };
                    self.heard_jump = Some(jump_to(self.heard.frame(), self.map.rate()));
                    self.report_transport(cause, jump.job_id);
                    self.wants_changed = true;
                }
            }
        }
        self.report_position(shared);
    }

    /// Returns whether a new plan has to be made, and starts it: its generation.
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

    /// Returns whether a new plan has to be made.
    #[must_use]
    pub const fn needs_plan(&self) -> bool {
        self.replan.is_some()
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
            match self.ahead.transport.step(BLOCK_FRAMES as u64, &self.map, self.end) {
                Step::Rest => {
                    self.render_rest(block);
                    break;
                }
                Step::Play { frame, n_frames } => {
                    self.render_frames(block, frame, n_frames);
                    break;
                }
                Step::Jump(jump) => {
                    self.ahead.tail = Some((jump.from, 0));
                    self.ahead.jump = Some(jump_to(self.ahead.transport.frame(), self.map.rate()));
                    forget_lateness(&mut self.voices);
                }
            }
        }
        true
    }

    /// Gives all regions that play a sound theirs.
    pub fn put_sound(&mut self, key: &SoundKey, sound: &Arc<Sound>) {
        let (from, to) = (self.heard.frame(), self.ahead.transport.frame());
        let mut is_due = false;
        for voice in self.voices.iter_mut().filter(|voice| voice.key == *key) {
            voice.set_sound(Arc::clone(sound));
            is_due |= voice.sounds(from.min(to), to.max(from));
        }
        let end = self.end;
        self.end = end_of(&self.voices);
        if self.is_playing() && (is_due || self.end != end) {
            self.change_plan(Replan::Continue);
        }
    }

    /// Takes a sound away from the regions that play it.
    pub fn drop_sound(&mut self, key: &SoundKey) {
        for voice in self.voices.iter_mut().filter(|voice| voice.key == *key) {
            voice.drop_sound();
        }
        self.wants_changed = true;
    }

    /// Reports content that cannot be played.
    pub fn content_failed(&mut self, key: &SoundKey, message: &str) {
        let failed = self.voices.iter().filter(|voice| voice.key == *key);
        let failed: Vec<RegionId> = failed.map(|voice| voice.region_id).collect();
        for region_id in failed {
            self.report_failed(region_id, message);
        }
    }

    /// Returns what the regions need, nearest first, if it may have changed since the last call.
    pub fn wants(&mut self) -> Option<Vec<Want>> {
        if !std::mem::take(&mut self.wants_changed) {
            return None;
        }
        let position = self.heard.frame();
        let mut wants: Vec<Want> = self
            .voices
            .iter()
            .map(|voice| Want {
                region_id: voice.region_id,
                key: voice.key.clone(),
                distance: distance(voice, position),
                is_ready: voice.sound.is_some(),
            })
            .collect();
        wants.sort_by_key(|want| want.distance);
        Some(wants)
    }

    /// Returns the sounds that were missing when they were to be heard, each once.
    pub fn take_requests(&mut self) -> Vec<SoundKey> {
        std::mem::take(&mut self.requests)
    }

    /// Returns the events since the last call.
    pub fn take_events(&mut self) -> Vec<GardenEvent> {
        self.events.take()
    }

    fn change_plan(&mut self, replan: Replan) {
        self.replan = self.replan.max(Some(replan));
    }

    /// Makes voices, tempo map and end those of the timeline.
    fn follow_timeline(&mut self) {
        let map = TempoMap::new(self.timeline.tempo(), self.map.rate());
        let same_until = map.differs_from(&self.map).map_or(u64::MAX, |tick| map.frame(tick));
        self.heard.follow(&self.map, &map);
        if same_until < self.heard.frame() {
            // The frames before the place have other numbers now.
            self.heard_jump = None;
        }
        self.map = map;
        let before: HashMap<RegionId, Voice> =
            self.voices.drain(..).map(|voice| (voice.region_id, voice)).collect();
        self.voices.extend(self.timeline.regions().map(|region| {
            let mut voice = Voice::new(region, &self.map);
            if let Some(earlier) = before.get(&region.region_id) {
                voice.inherit(earlier, same_until);
            }
            voice
        }));
        self.voices.sort_by_key(|voice| voice.start);
        self.end = end_of(&self.voices);
        self.wants_changed = true;
        if self.heard.is_playing() {
            self.change_plan(Replan::Continue);
        }
    }

    fn render_frames(&mut self, block: &mut Block, frame: u64, n_frames: u64) {
        let n_samples = n_frames as usize * CHANNELS;
        block.samples[..n_samples].fill(0.0);
        self.mix(&mut block.samples[..n_samples], frame, self.ahead.jump);
        self.mix_tail(&mut block.samples[..n_samples]);
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
        let n_left = self.ahead.tail.map_or(0, |(_, at)| fade - at);
        block.n_frames = (n_left as usize).min(BLOCK_FRAMES);
        let n_samples = block.n_frames * CHANNELS;
        block.samples[..n_samples].fill(0.0);
        self.mix_tail(&mut block.samples[..n_samples]);
        if block.n_frames == 0 {
            block.is_last = true;
            self.ahead.is_done = true;
        }
    }

    /// Adds the voices that sound; what is missing is silent, counted and requested once more.
    fn mix(&mut self, out: &mut [f32], frame: u64, jump: Option<JumpTo>) {
        let to = frame + (out.len() / CHANNELS) as u64;
        let n_started = self.voices.partition_point(|voice| voice.start < to);
        let mut late = Vec::new();
        for voice in &mut self.voices[..n_started] {
            if !voice.sounds(frame, to) {
                continue;
            }
            if voice.is_missing(to) && !voice.was_late {
                voice.was_late = true;
                late.push((voice.region_id, voice.key.clone()));
            }
            voice.add_to(out, frame, jump);
        }
        for (region_id, key) in late {
            self.n_late += 1;
            self.requests.push(key);
            let cause = "its content was not ready in time".to_owned();
            self.events.push(GardenEvent::Trouble(GardenTroubleEvent {
                kind: TroubleKind::Late,
                position_beats: self.map.tick(frame) / Ticks::PER_BEAT as f64,
                cause,
                region_id: Some(region_id),
            }));
        }
    }

    /// Adds the end of what a jump left, fading.
    fn mix_tail(&mut self, out: &mut [f32]) {
        let Some((from, at)) = self.ahead.tail else { return };
        let fade = jump_fade_frames(self.map.rate());
        let n_frames = (fade - at).min((out.len() / CHANNELS) as u64);
        let mut tail = [0.0; BLOCK_FRAMES * CHANNELS];
        let tail = &mut tail[..n_frames as usize * CHANNELS];
        for voice in &self.voices {
            if voice.sounds(from + at, from + at + n_frames) && voice.start < from {
                voice.add_to(tail, from + at, None);
            }
        }
        let frames = out.chunks_exact_mut(CHANNELS).zip(tail.chunks_exact(CHANNELS));
        for (idx, (out, tail)) in frames.enumerate() {
            let gain = 1.0 - (at + idx as u64) as f32 / fade as f32;
            out[0] += tail[0] * gain;
            out[1] += tail[1] * gain;
        }
        let at = at + n_frames;
        self.ahead.tail = (at < fade).then_some((from, at));
    }

    fn report_transport(&mut self, cause: TransportCause, job_id: Option<JobId>) {
        let tick = self.map.tick(self.heard.frame());
        self.events.push(GardenEvent::Transport(GardenTransportEvent {
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
        self.events.push(GardenEvent::Position(GardenPositionEvent {
            position_beats,
            state,
            peaks,
        }));
    }

    fn position_beats(&self) -> f64 {
        self.map.tick(self.heard.frame()) / Ticks::PER_BEAT as f64
    }
}

/// Events that wait to be fetched.
#[derive(Debug, Default)]
struct EventLog(Vec<GardenEvent>);

impl EventLog {
    fn push(&mut self, event: GardenEvent) {
        if self.0.len() >= EVENTS_MAX {
            self.0.remove(0);
        }
        self.0.push(event);
    }

    fn take(&mut self) -> Vec<GardenEvent> {
        std::mem::take(&mut self.0)
    }
}

fn jump_to(frame: u64, rate: u32) -> JumpTo {
    JumpTo { frame, fade_frames: jump_fade_frames(rate) }
}

/// After a jump, content that was late may be late again.
fn forget_lateness(voices: &mut [Voice]) {
    for voice in voices {
        voice.was_late = false;
    }
}

/// Returns the frames until a voice sounds. Voices that are over come after all others.
fn distance(voice: &Voice, position: u64) -> u64 {
    if voice.end > position { voice.start.saturating_sub(position) } else { u64::MAX - voice.start }
}

/// Returns the frame after the last one that sounds, as far as that is known.
fn end_of(voices: &[Voice]) -> u64 {
    let ends =
        voices.iter().map(|voice| if voice.end == u64::MAX { voice.start + 1 } else { voice.end });
    ends.max().unwrap_or(0)
}

#[cfg(test)]
mod tests;
