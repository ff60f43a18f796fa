//! Loudness, key, onsets, timbre and similarity of known sounds.

use std::f64::consts::TAU;

use ringback_studio::analysis::{Features, Mode, Novelty, Sound, measure, similarity};
use ringback_studio::render::RenderSettings;

use crate::support::{Midi, TICKS, rendered};

const Q: u64 = TICKS as u64;

fn tone(hertz: f64, seconds: f64, level: f64) -> Vec<f32> {
    let n = (seconds * 48_000.0) as usize;
    (0..n).map(|idx| (level * (idx as f64 * TAU * hertz / 48_000.0).sin()) as f32).collect()
}

fn of(samples: &[f32], channels: usize, rate: u32) -> Features {
    let sound = Sound::from_samples(samples, channels, rate).unwrap();
    measure(&sound, &Novelty::of(&sound))
}

fn of_midi(midi: &[u8]) -> Features {
    of(&rendered(midi, RenderSettings::default()).0, 2, 44_100)
}

/// REQ: EBU R 128: a tone of 1 kHz at -23 dBFS in both channels has -23 LUFS (EBU Tech 3341, 1).
#[test]
fn the_loudness_of_the_standards_own_tone_is_right() {
    let mono = tone(1000.0, 20.0, 10_f64.powf(-23.0 / 20.0));
    let stereo: Vec<f32> = mono.iter().flat_map(|sample| [*sample, *sample]).collect();
    let loudness = of(&stereo, 2, 48_000).loudness;
    assert!((loudness.integrated_lufs.unwrap() + 23.0).abs() < 0.1, "{loudness:?}");
    assert!((loudness.sample_peak_dbfs.unwrap() + 23.0).abs() < 0.1, "{loudness:?}");
}

#[test]
fn silence_has_no_loudness_and_no_key() {
    let features = of(&vec![0.0; 48_000 * 2], 1, 48_000);
    assert_eq!(features.loudness.integrated_lufs, None);
    assert_eq!(features.key, None);
    assert!(features.onsets.is_empty());
}

/// REQ: the key of a scale and its chords is found, in all twelve, major and minor.
#[test]
fn the_key_of_a_cadence_is_found() {
    let mut right = 0;
    for tonic in 0..12_u8 {
        for (mode, chords) in [
            (Mode::Major, [[0, 4, 7], [5, 9, 12], [7, 11, 14], [0, 4, 7]]),
            (Mode::Minor, [[0, 3, 7], [5, 8, 12], [7, 11, 14], [0, 3, 7]]),
        ] {
            let mut midi = Midi::default();
            midi.program(0, 0, 48);
            for (idx, chord) in chords.iter().enumerate() {
                for interval in chord {
                    midi.note(idx as u64 * 2 * Q, 2 * Q, 0, 48 + tonic + interval, 90);
                }
            }
            let key = of_midi(&midi.bytes(8 * Q)).key.unwrap();
            right += u32::from((key.tonic, key.mode) == (tonic, mode));
        }
    }
    assert!(right >= 22, "{right} of 24");
}

/// REQ: onsets are found where notes start.
#[test]
fn onsets_are_where_notes_begin() {
    let mut midi = Midi::default();
    for (idx, key) in [60, 64, 67, 72, 60, 65].into_iter().enumerate() {
        midi.note(idx as u64 * Q, Q * 9 / 10, 0, key, 100);
    }
    let onsets = of_midi(&midi.bytes(6 * Q)).onsets;
    for idx in 0..6 {
        let at = f64::from(idx) * 0.5;
        assert!(onsets.iter().any(|onset| (onset - at).abs() < 0.03), "{at}: {onsets:?}");
    }
    assert!(onsets.len() <= 8, "{onsets:?}");
}

#[test]
fn a_bright_tone_has_a_higher_centroid_than_a_dark_one_and_noise_is_flat() {
    let low = of(&tone(300.0, 2.0, 0.5), 1, 48_000).spectral;
    let high = of(&tone(3000.0, 2.0, 0.5), 1, 48_000).spectral;
    assert!((high.centroid_hertz - 3000.0).abs() < 300.0, "{high:?}");
    assert!(low.centroid_hertz < 800.0, "{low:?}");
    assert!((low.zero_crossings_per_second - 600.0).abs() < 5.0, "{low:?}");
    let mut state = 1_u32;
    let noise: Vec<f32> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state as f32 / u32::MAX as f32 - 0.5
    })
    .take(96_000)
    .collect();
    assert!(of(&noise, 1, 48_000).spectral.flatness > 5.0 * high.flatness.max(0.05));
}

/// REQ: similarity: a sound is like itself, and more like another of its instrument than like drums.
#[test]
fn like_sounds_are_more_alike() {
    let played = |program: u8, channel: u8| {
        let mut midi = Midi::default();
        midi.program(0, channel, program);
        for idx in 0..8 {
            let key = if channel == 9 { 36 + (idx as u8 % 3) * 2 } else { 60 + idx as u8 };
            midi.note(idx * Q, Q, channel, key, 100);
        }
        of_midi(&midi.bytes(8 * Q))
    };
    let (piano, bright, drums) = (played(0, 0), played(1, 0), played(0, 9));
    assert!((similarity(&piano, &piano).0 - 1.0).abs() < 1e-3);
    assert!(similarity(&piano, &bright).0 > similarity(&piano, &drums).0 + 0.1);
}
