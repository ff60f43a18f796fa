//! The voices of a timeline, and how they sound together.

use std::collections::HashMap;
use std::sync::Arc;

use ringback_proto::ids::RegionId;

use crate::block::BLOCK_FRAMES;
use crate::mix::{JumpTo, Voice, crossfade, jump_fade_frames};
use crate::sound::{CHANNELS, Sound, SoundKey};
use crate::tempo::TempoMap;
use crate::timeline::Timeline;

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

/// A sound that was missing when it was to be heard.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Late {
    pub(crate) region_id: RegionId,
    pub(crate) key: SoundKey,
}

/// The end of what a jump left, which fades.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tail {
    /// The frame that would have been played next.
    pub(crate) from: u64,
    /// How much of the fade is over.
    pub(crate) at: u64,
}

/// The passes of all regions that have content.
#[derive(Debug, Default)]
pub struct Mixer {
    /// By start.
    voices: Vec<Voice>,
    /// For each voice, the latest end of it and of those before it.
    reach: Vec<u64>,
}

impl Mixer {
    /// Returns the voices, by their starts.
    #[must_use]
    pub fn voices(&self) -> &[Voice] {
        &self.voices
    }

    /// Makes the voices those of a timeline. They keep their sounds; of one for another tempo, the
    /// part before `same_until`.
    pub(crate) fn follow(&mut self, timeline: &Timeline, map: &TempoMap, same_until: u64) {
        let before: HashMap<(RegionId, u32), Voice> =
            self.voices.drain(..).map(|voice| (voice.id(), voice)).collect();
        let passes = timeline.regions().flat_map(|region| Voice::passes(region, map));
        self.voices.extend(passes.map(|mut voice| {
            if let Some(earlier) = before.get(&voice.id()) {
                voice.inherit(earlier, same_until);
            }
            voice
        }));
        self.voices.sort_by_key(|voice| voice.start);
        crossfade(&mut self.voices);
        self.measure();
    }

    /// Gives all voices that play a sound theirs; returns whether one of them sounds between two
    /// frames.
    pub(crate) fn put(&mut self, key: &SoundKey, sound: &Arc<Sound>, from: u64, to: u64) -> bool {
        let mut is_due = false;
        for voice in self.voices.iter_mut().filter(|voice| voice.key == *key) {
            voice.set_sound(Arc::clone(sound));
            is_due |= voice.sounds(from.min(to), to.max(from));
        }
        self.measure();
        is_due
    }

    /// Gives the first pass of a region its sound, and all its passes that play the same.
    pub(crate) fn give(&mut self, region_id: RegionId, sound: &Arc<Sound>) {
        let first = self.voices.iter().find(|voice| voice.id() == (region_id, 0));
        let Some(key) = first.map(|voice| voice.key.clone()) else { return };
        for voice in &mut self.voices {
            if voice.region_id == region_id && voice.key == key {
                voice.set_sound(Arc::clone(sound));
            }
        }
        self.measure();
    }

    /// Takes a sound away.
    pub(crate) fn drop_sound(&mut self, key: &SoundKey) {
        for voice in self.voices.iter_mut().filter(|voice| voice.key == *key) {
            voice.drop_sound();
        }
    }

    /// Returns the regions that play a sound.
    pub(crate) fn regions_of(&self, key: &SoundKey) -> Vec<RegionId> {
        let playing = self.voices.iter().filter(|voice| voice.key == *key);
        let mut regions: Vec<RegionId> = playing.map(|voice| voice.region_id).collect();
        regions.sort_unstable();
        regions.dedup();
        regions
    }

    /// Returns what the voices need, nearest to a position first.
    pub(crate) fn wants(&self, position: u64) -> Vec<Want> {
        let want = |voice: &Voice| Want {
            region_id: voice.region_id,
            key: voice.key.clone(),
            distance: distance(voice, position),
            is_ready: voice.sound.is_some(),
        };
        let mut wants: Vec<Want> = self.voices.iter().map(want).collect();
        wants.sort_by_key(|want| want.distance);
        wants
    }

    /// Lets content that was late be late again, as after a jump.
    pub(crate) fn forget_lateness(&mut self) {
        for voice in &mut self.voices {
            voice.was_late = false;
        }
    }

    /// Returns the frame after the last one that sounds, as far as that is known.
    pub(crate) fn end(&self) -> u64 {
        let heard = self.voices.iter().filter(|voice| voice.is_heard);
        let ends =
            heard.map(|voice| if voice.end == u64::MAX { voice.start + 1 } else { voice.end });
        ends.max().unwrap_or(0)
    }

    /// Returns the voices that may sound between two frames.
    pub(crate) fn around(&self, from: u64, to: u64) -> &[Voice] {
        &self.voices[self.range(from, to)]
    }

    /// Adds what sounds from a frame on; returns what was missing for the first time since a jump.
    pub(crate) fn mix(&mut self, out: &mut [f32], frame: u64, jump: Option<JumpTo>) -> Vec<Late> {
        let to = frame + (out.len() / CHANNELS) as u64;
        let range = self.range(frame, to);
        let mut late = Vec::new();
        for voice in &mut self.voices[range] {
            if !voice.sounds(frame, to) {
                continue;
            }
            if voice.is_missing(to) && !voice.was_late {
                voice.was_late = true;
                late.push(Late { region_id: voice.region_id, key: voice.key.clone() });
            }
            voice.add_to(out, frame, jump);
        }
        late
    }

    /// Adds the end of what a jump left, fading; returns what is left of it.
    pub(crate) fn mix_tail(&self, out: &mut [f32], tail: Tail, rate: u32) -> Option<Tail> {
        let (Tail { from, at }, fade) = (tail, jump_fade_frames(rate));
        let n_frames = (fade - at).min((out.len() / CHANNELS) as u64);
        let mut samples = [0.0; BLOCK_FRAMES * CHANNELS];
        let samples = &mut samples[..n_frames as usize * CHANNELS];
        for voice in self.around(from + at, from + at + n_frames) {
            if voice.sounds(from + at, from + at + n_frames) && voice.start < from {
                voice.add_to(samples, from + at, None);
            }
        }
        let frames = out.chunks_exact_mut(CHANNELS).zip(samples.chunks_exact(CHANNELS));
        for (idx, (out, tail)) in frames.enumerate() {
            let gain = 1.0 - (at + idx as u64) as f32 / fade as f32;
            out[0] += tail[0] * gain;
            out[1] += tail[1] * gain;
        }
        let at = at + n_frames;
        (at < fade).then_some(Tail { from, at })
    }

    /// Returns where the voices are that start before `to` and may end after `from`.
    fn range(&self, from: u64, to: u64) -> std::ops::Range<usize> {
        let n_started = self.voices.partition_point(|voice| voice.start < to);
        let n_over = self.reach.partition_point(|latest| *latest <= from);
        n_over.min(n_started)..n_started
    }

    fn measure(&mut self) {
        let mut latest = 0;
        self.reach.clear();
        self.reach.extend(self.voices.iter().map(|voice| {
            latest = voice.end.max(latest);
            latest
        }));
    }
}

/// Returns the frames until a voice sounds. Voices that are over come after all others.
fn distance(voice: &Voice, position: u64) -> u64 {
    if voice.end > position { voice.start.saturating_sub(position) } else { u64::MAX - voice.start }
}
