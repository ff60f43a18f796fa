//! The mixer: regions with gain, pan and fades, added frame by frame. The gain of a frame depends on
//! its place on the timeline alone, so that the size of blocks changes nothing.

use std::f32::consts::FRAC_PI_2;
use std::sync::Arc;

use ringback_proto::garden::{GardenRegion, RegionState, Ticks};
use ringback_proto::ids::RegionId;

use crate::block::BLOCK_FRAMES;
use crate::sound::{CHANNELS, Sound, SoundKey, key_at};
use crate::tempo::TempoMap;

/// How long a jump fades, in seconds: long enough that it does not click, too short to be heard.
const JUMP_FADE_SECONDS: f64 = 0.005;

/// Returns the frames over which a jump fades.
#[must_use]
pub fn jump_fade_frames(rate: u32) -> u64 {
    (f64::from(rate) * JUMP_FADE_SECONDS).round() as u64
}

/// One pass of a region in frames, with its sound.
#[derive(Debug, Clone)]
pub struct Voice {
    /// Its region.
    pub region_id: RegionId,
    /// The number of the pass, from 0.
    pub pass: u32,
    /// Whether it is the last one.
    is_last_pass: bool,
    /// Whether it is heard; one that waits for approval is only prepared.
    pub is_heard: bool,
    /// The frame after its crossfade, if its region asks for one.
    crossfade_end: Option<u64>,
    /// The frames in which it takes over from others.
    taking_over: Option<(u64, u64)>,
    /// The frames in which others take over from it.
    giving_way: Vec<(u64, u64)>,
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
    /// Makes the voices of a region, one for each pass, without a sound. A region whose content is
    /// not there or not to be played has none.
    pub fn passes(region: &GardenRegion, map: &TempoMap) -> impl Iterator<Item = Self> {
        let n_passes = match region.state {
            RegionState::Ready | RegionState::AwaitingApproval => region.repeat,
            RegionState::Pending | RegionState::Failed | RegionState::Rejected => 0,
        };
        (0..n_passes).filter_map(move |pass| Self::new(region, pass, map))
    }

    fn new(region: &GardenRegion, pass: u32, map: &TempoMap) -> Option<Self> {
        let length = region.duration.unwrap_or_default().0;
        let position = Ticks(region.position.0.saturating_add(length * u64::from(pass)));
        let key = key_at(region.content.as_ref()?, position, region.duration, map);
        let (is_first, is_last_pass) = (pass == 0, pass + 1 == region.repeat);
        let after = |ticks: u64| map.frame(Ticks(position.0.saturating_add(ticks)));
        let length_end = region.duration.map(|duration| after(duration.0));
        // A region that repeats fades in once and fades out once.
        let fade_in = if is_first { region.fade_in.0 } else { 0 };
        let fade_out_start = match region.duration {
            Some(duration) if is_last_pass => after(duration.0.saturating_sub(region.fade_out.0)),
            Some(_) | None => u64::MAX,
        };
        let crossfades = is_first && region.crossfade > Ticks(0);
        let gain = 10_f32.powf(region.gain_db / 20.0);
        let pan = region.pan.clamp(-1.0, 1.0);
        Some(Self {
            region_id: region.region_id,
            pass,
            is_last_pass,
            is_heard: region.state == RegionState::Ready,
            crossfade_end: crossfades.then(|| after(region.crossfade.0)),
            taking_over: None,
            giving_way: Vec::new(),
            key,
            start: map.frame(position),
            end: length_end.unwrap_or(u64::MAX),
            length_end,
            fade_in_end: after(fade_in),
            fade_out_start,
            // In the middle both channels are as they are.
            gains: [gain * (1.0 - pan).min(1.0), gain * (1.0 + pan).min(1.0)],
            offset: (region.offset_seconds.max(0.0) * f64::from(map.rate())).round() as u64,
            sound: None,
            earlier: None,
            was_late: false,
        })
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
        self.is_heard && self.start < to && from < self.end
    }

    /// Returns whether it plays the same pass as another voice, of an earlier timeline.
    #[must_use]
    pub const fn id(&self) -> (RegionId, u32) {
        (self.region_id, self.pass)
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
        let n_frames = (out.len() / CHANNELS).min(n_left as usize);
        if n_frames == 0 {
            // A sound that is shorter than its region has no frames there, not even an empty range.
            return;
        }
        let out = &mut out[..n_frames * CHANNELS];
        let jump = jump.filter(|jump| self.start < jump.frame);
        let skipped = skipped as usize;
        if self.is_level(first, first + n_frames as u64, jump) {
            sound.add_to(out, skipped, self.gains);
            return;
        }
        for (idx, out) in out.chunks_mut(BLOCK_FRAMES * CHANNELS).enumerate() {
            let done = idx * BLOCK_FRAMES;
            let mut fades = [1.0; BLOCK_FRAMES];
            let fades = &mut fades[..out.len() / CHANNELS];
            self.fade(fades, first + done as u64);
            if let Some(jump) = jump {
                ramp(fades, first + done as u64, (jump.frame, jump.end()), |part| part);
            }
            let mut gains = [0.0; BLOCK_FRAMES * CHANNELS];
            for (gains, fade) in gains.as_chunks_mut::<CHANNELS>().0.iter_mut().zip(fades) {
                *gains = self.gains.map(|gain| gain * *fade);
            }
            sound.add_faded_to(out, skipped + done, &gains);
        }
    }

    /// Returns whether nothing fades between two frames.
    fn is_level(&self, from: u64, to: u64, jump: Option<JumpTo>) -> bool {
        from >= self.fade_in_end
            && to <= self.fade_out_start
            && self.taking_over.is_none_or(|(_, end)| from >= end)
            && self.giving_way.iter().all(|(start, _)| to <= *start)
            && jump.is_none_or(|jump| from >= jump.frame + jump.fade_frames)
    }

    /// Multiplies the gains of frames from `at` on with its fades.
    fn fade(&self, gains: &mut [f32], at: u64) {
        ramp(gains, at, (self.start, self.fade_in_end), |part| part);
        if let Some(end) = self.length_end {
            ramp(gains, at, (self.fade_out_start, end), |part| 1.0 - part);
            mute(gains, at, end, self.fade_out_start < end);
        }
        // Equal power: the squares of both sides add up to 1.
        if let Some(span) = self.taking_over {
            ramp(gains, at, span, |part| (part * FRAC_PI_2).sin());
        }
        for span in &self.giving_way {
            ramp(gains, at, *span, |part| (part * FRAC_PI_2).cos().max(0.0));
            mute(gains, at, span.1, true);
        }
    }
}

/// The last passes that others may take over from, by their ends.
#[derive(Debug)]
struct Ends(Vec<(u64, usize)>);

impl Ends {
    fn of(voices: &[Voice]) -> Self {
        let is_over =
            |voice: &Voice| voice.length_end.filter(|_| voice.is_heard && voice.is_last_pass);
        let ends =
            voices.iter().enumerate().filter_map(|(idx, voice)| Some((is_over(voice)?, idx)));
        let mut ends: Vec<(u64, usize)> = ends.collect();
        ends.sort_unstable();
        Self(ends)
    }

    /// Returns the voices that end after a frame and at the latest at another: few, because only
    /// some regions sound at the same time.
    fn within(&self, after: u64, last: u64) -> &[(u64, usize)] {
        let from = self.0.partition_point(|(end, _)| *end <= after);
        let to = self.0.partition_point(|(end, _)| *end <= last);
        &self.0[from..to.max(from)]
    }
}

/// Lets regions take over from those that end within their crossfades.
pub fn crossfade(voices: &mut [Voice]) {
    let ends = Ends::of(voices);
    for taker in 0..voices.len() {
        let Some(end) = voices[taker].crossfade_end.filter(|_| voices[taker].is_heard) else {
            continue;
        };
        let (region_id, start) = (voices[taker].region_id, voices[taker].start);
        let mut takes_over = false;
        for (_, giver) in ends.within(start, end) {
            let giver = &mut voices[*giver];
            if giver.region_id != region_id && giver.start < start {
                giver.giving_way.push((start, end));
                takes_over = true;
            }
        }
        voices[taker].taking_over = takes_over.then_some((start, end));
    }
}

impl JumpTo {
    const fn end(&self) -> u64 {
        self.frame + self.fade_frames
    }
}

/// The numbers of the frames of a block: a loop over them needs no conversion, so that several
/// frames are computed together.
const NUMBERS: [f64; BLOCK_FRAMES] = {
    let mut numbers = [0.0; BLOCK_FRAMES];
    let mut idx = 1;
    while idx < BLOCK_FRAMES {
        numbers[idx] = numbers[idx - 1] + 1.0;
        idx += 1;
    }
    numbers
};

/// Multiplies the gains of the frames of a span, of which the first of `gains` is `at`, with a curve
/// over the part of the span before each. Every frame is computed by itself. A block at most.
fn ramp(gains: &mut [f32], at: u64, (start, end): (u64, u64), curve: impl Fn(f32) -> f32) {
    let n_frames = gains.len() as u64;
    if start >= end || at >= end || at + n_frames <= start {
        return;
    }
    let first = start.saturating_sub(at) as usize;
    let last = n_frames.min(end - at) as usize;
    let before = (at + first as u64 - start) as f64;
    let step = 1.0 / (end - start) as f64;
    for (number, gain) in NUMBERS.iter().zip(&mut gains[first..last]) {
        *gain *= curve(((before + number) * step) as f32);
    }
}

/// Silences the frames from `end` on, if something has faded out by then.
fn mute(gains: &mut [f32], at: u64, end: u64, has_faded: bool) {
    if has_faded {
        let first = end.saturating_sub(at).min(gains.len() as u64) as usize;
        gains[first..].fill(0.0);
    }
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
        let mut voice = Voice::passes(region, &map()).next().unwrap();
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
    fn a_region_that_repeats_follows_itself_and_fades_once() {
        let region =
            GardenRegion { repeat: 3, fade_in: Ticks(2), fade_out: Ticks(2), ..region(10, 4) };
        let mut out = vec![0.0; 30 * CHANNELS];
        for mut voice in Voice::passes(&region, &map()) {
            voice.set_sound(Arc::new(Sound::new(1, vec![1.0; 100])));
            voice.add_to(&mut out, 0, None);
        }
        let left: Vec<f32> = out.into_iter().step_by(2).collect();
        let mut expected = vec![0.0; 30];
        expected[10..22].fill(1.0);
        (expected[10], expected[11], expected[21]) = (0.0, 0.5, 0.5);
        assert_eq!(left, expected);
    }

    #[test]
    fn a_crossfade_keeps_the_power_and_needs_someone_to_take_over_from() {
        let old = region(0, 100);
        let new = GardenRegion {
            crossfade: Ticks(20),
            position: Ticks(80),
            ..testing::region(2, 0.0, Some(1.0), "audio/wav")
        };
        let voices = |regions: &[&GardenRegion]| {
            let map = map();
            let voices = regions.iter().flat_map(|region| Voice::passes(region, &map));
            let mut voices: Vec<Voice> = voices.collect();
            for voice in &mut voices {
                voice.set_sound(Arc::new(Sound::new(1, vec![1.0; 2000])));
            }
            crossfade(&mut voices);
            voices
        };
        let both = voices(&[&old, &new]);
        for frame in 0..200 {
            let [old, new] = [0, 1].map(|idx| mixed(&both[idx], frame, 1, None)[0]);
            let power = old * old + new * new;
            assert!((power - 1.0).abs() < 1e-5, "{frame}: {old} {new}");
            assert_eq!(old < 1.0, frame > 80, "{frame}: {old}");
        }
        let alone = voices(&[&new]);
        assert_eq!(mixed(&alone[0], 80, 1, None)[0], 1.0, "nothing to take over from");
        let elsewhere = GardenRegion { duration: Some(Ticks(101)), ..old };
        let both = voices(&[&elsewhere, &new]);
        assert_eq!(mixed(&both[1], 80, 1, None)[0], 1.0, "it ends after the crossfade");
    }

    /// Rule: the work of an edit grows with the number of regions, not with its square.
    #[test]
    fn a_crossfade_looks_only_at_regions_that_end_within_it() {
        const REGIONS: u64 = 10_000;
        let map = map();
        let voices = (0..REGIONS).map(|number| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&number.to_le_bytes());
            let crossfaded = GardenRegion {
                region_id: RegionId::from_random(id),
                crossfade: Ticks(10),
                ..region(number * 90, 100)
            };
            Voice::new(&crossfaded, 0, &map).unwrap()
        });
        let mut voices: Vec<Voice> = voices.collect();
        let ends = Ends::of(&voices);
        let n_looks = |voice: &Voice| ends.within(voice.start, voice.crossfade_end.unwrap()).len();
        assert_eq!(voices.iter().map(n_looks).sum::<usize>() as u64, REGIONS - 1);
        crossfade(&mut voices);
        let n_ways = voices.iter().filter(|voice| voice.giving_way.len() == 1).count() as u64;
        let n_taking = voices.iter().filter(|voice| voice.taking_over.is_some()).count() as u64;
        assert_eq!((n_ways, n_taking), (REGIONS - 1, REGIONS - 1), "each from the one before");
    }

    /// Rule: what was not approved is never heard.
    #[test]
    fn a_region_that_waits_for_approval_is_silent() {
        let waiting = GardenRegion { state: RegionState::AwaitingApproval, ..region(0, 10) };
        let voice = voice(&waiting, Sound::new(1, vec![1.0; 100]));
        assert!(!voice.sounds(0, 10));
        for state in [RegionState::Pending, RegionState::Failed, RegionState::Rejected] {
            let region = GardenRegion { state, ..region(0, 10) };
            assert_eq!(Voice::passes(&region, &map()).count(), 0, "{state:?}");
        }
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
