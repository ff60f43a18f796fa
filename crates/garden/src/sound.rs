//! Prepared sound: what a region plays, at the device's sample rate.

use std::sync::Arc;

use ringback_proto::garden::{GardenContent, GardenRegion, Ticks};
use ringback_proto::ids::BlobHash;

use crate::tempo::TempoMap;

/// Left and right.
pub const CHANNELS: usize = 2;

/// Sound in memory, of one or two channels.
#[derive(Debug, Clone, PartialEq)]
pub struct Sound {
    channels: usize,
    samples: Vec<f32>,
}

impl Sound {
    /// Makes a sound of interleaved samples; more than two channels are not played.
    #[must_use]
    pub fn new(channels: usize, samples: Vec<f32>) -> Self {
        Self { channels: channels.clamp(1, CHANNELS), samples }
    }

    /// Returns its number of frames.
    #[must_use]
    pub fn n_frames(&self) -> u64 {
        (self.samples.len() / self.channels) as u64
    }

    /// Returns how much memory it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.samples.len() * size_of::<f32>()) as u64
    }

    /// Adds its frames from `first` on to interleaved samples, with a gain for each channel. It has
    /// to have them all.
    pub fn add_to(&self, out: &mut [f32], first: usize, gains: [f32; CHANNELS]) {
        let samples = self.part(first, out.len() / CHANNELS);
        if self.channels == 1 {
            for (out, sample) in out.as_chunks_mut::<CHANNELS>().0.iter_mut().zip(samples) {
                add(out, [*sample; CHANNELS], gains);
            }
            return;
        }
        let (out, rest) = out.as_chunks_mut::<LANES>();
        let (samples, samples_rest) = samples.as_chunks::<LANES>();
        let wide: [f32; LANES] = std::array::from_fn(|idx| gains[idx % CHANNELS]);
        for (out, samples) in out.iter_mut().zip(samples) {
            add(out, *samples, wide);
        }
        for (idx, (out, sample)) in rest.iter_mut().zip(samples_rest).enumerate() {
            *out += sample * gains[idx % CHANNELS];
        }
    }

    /// Adds its frames as [`Self::add_to`], with a gain for each sample of `out`.
    pub fn add_faded_to(&self, out: &mut [f32], first: usize, gains: &[f32]) {
        let samples = self.part(first, out.len() / CHANNELS);
        if self.channels == CHANNELS {
            for ((out, sample), gain) in out.iter_mut().zip(samples).zip(gains) {
                *out += sample * gain;
            }
            return;
        }
        let (out, gains) = (out.as_chunks_mut::<CHANNELS>().0, gains.as_chunks::<CHANNELS>().0);
        for ((out, sample), gains) in out.iter_mut().zip(samples).zip(gains) {
            add(out, [*sample; CHANNELS], *gains);
        }
    }

    fn part(&self, first: usize, n_frames: usize) -> &[f32] {
        &self.samples[first * self.channels..(first + n_frames) * self.channels]
    }
}

/// Samples that are added together: what a processor takes in one instruction, whole frames.
const LANES: usize = 8;

fn add<const N: usize>(out: &mut [f32; N], samples: [f32; N], gains: [f32; N]) {
    for ((out, sample), gain) in out.iter_mut().zip(samples).zip(gains) {
        *out += sample * gain;
    }
}

/// What a prepared sound was made from: regions with the same key share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SoundKey {
    /// The content.
    pub hash: BlobHash,
    /// How notes become sound; audio has no notes.
    pub notes: Option<NoteTiming>,
}

/// What decides when the notes of a MIDI region sound.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NoteTiming {
    /// Tempo changes by their distance from the region's start, as the bits of their tempos. The
    /// first holds at the start.
    tempos: Arc<[(u64, u64)]>,
    /// The length of the region: later notes are not played.
    pub duration: Option<Ticks>,
}

impl NoteTiming {
    /// Returns the seconds from the region's start to a tick after it.
    #[must_use]
    pub fn seconds(&self, ticks: f64) -> f64 {
        let mut seconds = 0.0;
        let ends = self.tempos.iter().skip(1).map(|(at, _)| *at as f64);
        for ((start, bpm), end) in self.tempos.iter().zip(ends.chain([f64::INFINITY])) {
            let within = (ticks.min(end) - *start as f64).max(0.0);
            seconds += within * 60.0 / (f64::from_bits(*bpm) * Ticks::PER_BEAT as f64);
        }
        seconds
    }
}

/// Returns whether content of this type is MIDI.
#[must_use]
pub fn is_midi(mime_type: &str) -> bool {
    let bare = mime_type.split(';').next().unwrap_or_default().trim();
    ["audio/midi", "audio/mid", "audio/x-midi", "application/x-midi"]
        .iter()
        .any(|midi| bare.eq_ignore_ascii_case(midi))
}

/// Returns what the first pass of a region plays, if its content is there.
#[must_use]
pub fn key_of(region: &GardenRegion, map: &TempoMap) -> Option<SoundKey> {
    let content = region.content.as_ref()?;
    Some(key_at(content, region.position, region.duration, map))
}

/// Returns what content plays from a tick on, on a timeline with this tempo map.
#[must_use]
pub fn key_at(
    content: &GardenContent,
    start: Ticks,
    duration: Option<Ticks>,
    map: &TempoMap,
) -> SoundKey {
    let notes = is_midi(&content.mime_type).then(|| {
        let start = start.0;
        let mut tempos = vec![(0, map.at(start as f64).bpm.to_bits())];
        let end = duration.map_or(u64::MAX, |duration| start.saturating_add(duration.0));
        for change in map.changes_between(start, end) {
            // A change of the time signature alone changes no sound.
            if tempos.last().is_none_or(|(_, bpm)| *bpm != change.bpm.to_bits()) {
                tempos.push((change.at.0 - start, change.bpm.to_bits()));
            }
        }
        NoteTiming { tempos: tempos.into(), duration }
    });
    SoundKey { hash: content.hash, notes }
}

#[cfg(test)]
mod tests {
    use ringback_proto::garden::TempoChange;

    use super::*;

    #[test]
    fn notes_follow_the_tempo_of_the_timeline() {
        let change = |beat: u64, bpm| TempoChange {
            at: Ticks(beat * Ticks::PER_BEAT),
            bpm,
            ..TempoChange::DEFAULT
        };
        let map = TempoMap::new(&[change(0, 120.0), change(4, 60.0), change(6, 240.0)], 48_000);
        let region = crate::testing::region(1, 2.0, Some(4.0), "audio/midi");
        let timing = key_of(&region, &map).unwrap().notes.unwrap();
        for beats in [0.0, 1.0, 2.0, 3.5, 4.0] {
            let expected = map.seconds((2.0 + beats) * 960.0) - map.seconds(2.0 * 960.0);
            assert!((timing.seconds(beats * 960.0) - expected).abs() < 1e-9, "{beats}");
        }
        let later = key_of(&region, &map.with(change(6, 200.0)));
        assert_eq!(later, key_of(&region, &map), "a change after its end");
        assert_ne!(key_of(&region, &map.with(change(5, 200.0))), key_of(&region, &map));
    }

    #[test]
    fn the_type_decides_what_is_midi() {
        assert!(is_midi("audio/midi") && is_midi("Audio/MIDI; x=1"));
        assert!(!is_midi("audio/wav"));
    }
}
