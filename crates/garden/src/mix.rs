//! The mixer: regions with gain, pan and fades, added frame by frame. The gain of a frame depends on
//! its place on the timeline alone, so that the size of blocks changes nothing.

use std::sync::Arc;

use ringback_proto::garden::{GardenRegion, Ticks};
use ringback_proto::ids::RegionId;

use crate::sound::{CHANNELS, Sound, SoundKey, key_of};
use crate::tempo::TempoMap;

/// How long a jump fades, in seconds: long enough that it does not click, too short to be heard.
const JUMP_FADE_SECONDS: f64 = 0.005;

/// Returns the frames over which a jump fades.
#[must_use]
pub fn jump_fade_frames(rate: u32) -> u64 {
    (f64::from(rate) * JUMP_FADE_SECONDS).round() as u64
}

/// A region in frames, with its sound.
#[derive(Debug, Clone)]
pub struct Voice {
    /// Its region.
    pub region_id: RegionId,
    /// What it plays.
    pub key: SoundKey,
    /// Its first frame.
    pub start: u64,
    /// The frame after its last one, as far as that is known.
    pub end: u64,
    /// The end of its length on the timeline, where its fade out ends.
    length_end: Option<u64>,
    fade_in_end: u64,
    fade_out_start: u64,
    gains: [f32; CHANNELS],
    /// Frames of its sound that are skipped.
    offset: u64,
    /// Its sound, once prepared.
    pub sound: Option<Arc<Sound>>,
    /// The sound of an earlier tempo, which is right up to this frame.
    pub earlier: Option<(Arc<Sound>, u64)>,
    /// Whether it was missing when it was to sound, since the last jump.
    pub was_late: bool,
}

/// Where playback jumped: sounds that had started before it fade in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JumpTo {
    /// The first frame after the jump.
    pub frame: u64,
    /// How long they fade.
    pub fade_frames: u64,
}

impl Voice {
    /// Makes the voice of a region, without a sound.
    #[must_use]
    pub fn new(region: &GardenRegion, map: &TempoMap) -> Self {
        let start = map.frame(region.position);
        let end_tick = |ticks: Ticks| Ticks(region.position.0.saturating_add(ticks.0));
        let length_end = region.duration.map(|duration| map.frame(end_tick(duration)));
        let fade_out_start = region.duration.map_or(u64::MAX, |duration| {
            map.frame(end_tick(Ticks(duration.0.saturating_sub(region.fade_out.0))))
        });
        let gain = 10_f32.powf(region.gain_db / 20.0);
        let pan = region.pan.clamp(-1.0, 1.0);
        Self {
            region_id: region.region_id,
            key: key_of(region, map),
            start,
            end: length_end.unwrap_or(u64::MAX),
            length_end,
            fade_in_end: map.frame(end_tick(region.fade_in)),
            fade_out_start,
            // In the middle both channels are as they are.
            gains: [gain * (1.0 - pan).min(1.0), gain * (1.0 + pan).min(1.0)],
            offset: (region.offset_seconds.max(0.0) * f64::from(map.rate())).round() as u64,
            sound: None,
            earlier: None,
            was_late: false,
        }
    }

    /// Gives it its sound. Audio ends with its region; the last notes of MIDI ring on.
    pub fn set_sound(&mut self, sound: Arc<Sound>) {
        let sound_end = self.start + sound.n_frames().saturating_sub(self.offset);
        self.end = match self.length_end {
            Some(end) if self.key.notes.is_none() => end,
            Some(_) | None => sound_end,
        };
        self.sound = Some(sound);
        self.earlier = None;
        self.was_late = false;
    }

    /// Takes its sound away; it is prepared again when it is needed.
    pub fn drop_sound(&mut self) {
        self.sound = None;
        self.earlier = None;
    }

    /// Takes over what an earlier voice of the same region had. Sound of another tempo stays right
    /// up to the frame at which the tempos differ.
    pub fn inherit(&mut self, earlier: &Self, same_until: u64) {
        if earlier.key == self.key {
            if let Some(sound) = &earlier.sound {
                self.set_sound(Arc::clone(sound));
            }
            self.was_late = earlier.was_late;
        } else if earlier.key.hash == self.key.hash && earlier.start == self.start {
            let sound = earlier.sound.as_ref().map(|sound| (Arc::clone(sound), same_until));
            let before = earlier.earlier.as_ref();
            let before = before.map(|(sound, until)| (Arc::clone(sound), *until.min(&same_until)));
            self.earlier = sound.or(before).filter(|(_, until)| *until > self.start);
        }
    }

    /// Returns whether it sounds between two frames.
    #[must_use]
    pub const fn sounds(&self, from: u64, to: u64) -> bool {
        self.start < to && from < self.end
    }

    /// Returns whether its sound between two frames is missing.
    #[must_use]
    pub fn is_missing(&self, to: u64) -> bool {
        self.sound.is_none() && self.earlier.as_ref().is_none_or(|(_, until)| *until < to)
    }

    /// Adds its frames from `frame` on to interleaved samples.
    pub fn add_to(&self, out: &mut [f32], frame: u64, jump: Option<JumpTo>) {
        let sound = match (&self.sound, &self.earlier) {
            (Some(sound), _) => Some((sound, self.end)),
            (None, Some((sound, until))) => Some((sound, self.end.min(*until))),
            (None, None) => None,
        };
        let Some((sound, end)) = sound else { return };
        let first = frame.max(self.start);
        // Without an overflow, whatever the offset.
        let skipped = (first - self.start).saturating_add(self.offset);
        let n_left = sound.n_frames().saturating_sub(skipped).min(end.saturating_sub(first));
        let Some(out) = out.get_mut((first - frame) as usize * CHANNELS..) else { return };
        let jump = jump.filter(|jump| self.start < jump.frame);
        for (idx, out) in out.chunks_exact_mut(CHANNELS).take(n_left as usize).enumerate() {
            let at = first + idx as u64;
            let gain = self.fade(at) * jump.map_or(1.0, |jump| jump.gain(at));
            let [left, right] = sound.frame(skipped as usize + idx);
            out[0] += left * self.gains[0] * gain;
            out[1] += right * self.gains[1] * gain;
        }
    }

    /// Returns the gain of its own fades at a frame.
    fn fade(&self, frame: u64) -> f32 {
        let mut gain = 1.0;
        if frame < self.fade_in_end {
            gain *= ratio(frame - self.start, self.fade_in_end - self.start);
        }
        if let Some(end) = self.length_end
            && self.fade_out_start < end
            && frame >= self.fade_out_start
        {
            gain *= ratio(end.saturating_sub(frame), end - self.fade_out_start);
        }
        gain
    }
}

impl JumpTo {
    fn gain(&self, frame: u64) -> f32 {
        let since = frame.saturating_sub(self.frame);
        if since < self.fade_frames { ratio(since, self.fade_frames) } else { 1.0 }
    }
}

/// Returns a part of a whole that is not 0.
fn ratio(part: u64, whole: u64) -> f32 {
    (part as f64 / whole as f64) as f32
}

/// Limits samples to full scale and returns how many were louder.
pub fn limit(samples: &mut [f32]) -> u32 {
    let mut n_clipped = 0;
    for sample in samples {
        if sample.abs() > 1.0 {
            n_clipped += 1;
            *sample = sample.clamp(-1.0, 1.0);
        }
    }
    n_clipped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use ringback_proto::garden::TempoChange;

    use super::*;
    use crate::testing;

    fn map() -> TempoMap {
        // A tick is a frame.
        TempoMap::new(&[TempoChange { bpm: 50.0, ..TempoChange::DEFAULT }], 800)
    }

    fn voice(region: &GardenRegion, sound: Sound) -> Voice {
        let mut voice = Voice::new(region, &map());
        voice.set_sound(Arc::new(sound));
        voice
    }

    fn region(position: u64, duration: u64) -> GardenRegion {
        GardenRegion {
            position: Ticks(position),
            duration: Some(Ticks(duration)),
            ..testing::region(1, 0.0, None, "audio/wav")
        }
    }

    fn mixed(voice: &Voice, frame: u64, n_frames: usize, jump: Option<JumpTo>) -> Vec<f32> {
        let mut out = vec![0.0; n_frames * CHANNELS];
        voice.add_to(&mut out, frame, jump);
        out
    }

    #[test]
    fn a_region_sounds_at_its_frames_and_nowhere_else() {
        let voice = voice(&region(3, 2), Sound::new(1, vec![0.25, 0.5, 0.75]));
        let left: Vec<f32> = mixed(&voice, 0, 8, None).into_iter().step_by(2).collect();
        assert_eq!(left, [0.0, 0.0, 0.0, 0.25, 0.5, 0.0, 0.0, 0.0]);
        assert!(mixed(&voice, 10, 4, None).iter().all(|sample| *sample == 0.0));
    }

    #[test]
    fn gain_pan_offset_and_fades_are_applied() {
        let sound = || Sound::new(2, [1.0, -1.0].repeat(10));
        let plain = GardenRegion { gain_db: 20.0 * 0.5_f32.log10(), ..region(0, 4) };
        let close = |found: &[f32], expected: &[f32]| {
            let is_close = |(a, b): (&f32, &f32)| (a - b).abs() < 1e-6;
            assert!(found.iter().zip(expected).all(is_close), "{found:?}");
        };
        close(&mixed(&voice(&plain, sound()), 0, 1, None), &[0.5, -0.5]);
        let right = GardenRegion { pan: 1.0, ..region(0, 4) };
        close(&mixed(&voice(&right, sound()), 0, 1, None), &[0.0, -1.0]);
        let faded = GardenRegion { fade_in: Ticks(2), fade_out: Ticks(2), ..region(0, 6) };
        let left: Vec<f32> =
            mixed(&voice(&faded, sound()), 0, 6, None).into_iter().step_by(2).collect();
        close(&left, &[0.0, 0.5, 1.0, 1.0, 1.0, 0.5]);
        let late = GardenRegion { offset_seconds: 2.0 / 800.0, ..region(0, 4) };
        let ramp = Sound::new(1, vec![0.0, 0.1, 0.2, 0.3]);
        close(&mixed(&voice(&late, ramp), 0, 2, None), &[0.2, 0.2, 0.3, 0.3]);
    }

    #[test]
    fn a_jump_fades_in_what_had_started_and_leaves_what_starts() {
        let jump = Some(JumpTo { frame: 4, fade_frames: 4 });
        let sound = || Sound::new(1, vec![1.0; 20]);
        let left = |voice: &Voice| -> Vec<f32> {
            mixed(voice, 4, 5, jump).into_iter().step_by(2).collect()
        };
        assert_eq!(left(&voice(&region(0, 20), sound())), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(left(&voice(&region(4, 20), sound())), [1.0; 5]);
    }

    #[test]
    fn loud_samples_are_limited_and_counted() {
        let mut samples = [0.5, 1.5, -1.0, -2.0];
        assert_eq!(limit(&mut samples), 2);
        assert_eq!(samples, [0.5, 1.0, -1.0, -1.0]);
    }

    proptest! {
        /// Rule: the size of the blocks changes no sample.
        #[test]
        fn blocks_of_any_size_sound_the_same(
            position in 0..50_u64,
            duration in 1..100_u64,
            fades in (0..60_u64, 0..60_u64),
            offset in 0.0..0.05_f64,
            block in 1..40_usize,
            jump in prop::option::of(0..60_u64),
        ) {
            let samples = (0..120).map(|idx| (idx as f32).sin()).collect();
            let region = GardenRegion {
                fade_in: Ticks(fades.0),
                fade_out: Ticks(fades.1),
                offset_seconds: offset,
                ..region(position, duration)
            };
            let voice = voice(&region, Sound::new(2, samples));
            let jump = jump.map(|frame| JumpTo { frame, fade_frames: 4 });
            let from = jump.map_or(0, |jump| jump.frame);
            let whole = mixed(&voice, from, 120, jump);
            let parts: Vec<f32> = (0..120_usize.div_ceil(block))
                .flat_map(|idx| mixed(&voice, from + (idx * block) as u64, block, jump))
                .take(240)
                .collect();
            prop_assert_eq!(parts, whole);
        }
    }
}
