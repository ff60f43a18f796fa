//! Beats and downbeats of pieces whose beats are known.

use ringback_studio::analysis::{Novelty, Sound, track_beats};
use ringback_studio::render::RenderSettings;

use crate::pieces::{N_COURSES, N_STYLES, piece};
use crate::support::rendered;

/// Other pieces than those the method was tuned with.
const SEED: u64 = 2;

/// A beat counts as found within this distance.
const WINDOW_SECONDS: f64 = 0.07;

/// Returns the harmonic mean of recall and precision.
fn f_measure(found: &[f64], expected: &[f64]) -> f64 {
    let mut hits = 0;
    let mut left = expected.iter().peekable();
    for at in found {
        while left.next_if(|next| **next < at - WINDOW_SECONDS).is_some() {}
        if left.next_if(|next| **next <= at + WINDOW_SECONDS).is_some() {
            hits += 1;
        }
    }
    2.0 * f64::from(hits) / (found.len() + expected.len()) as f64
}

/// REQ: beats of at least 40 synthesised pieces, changes of tempo and syncopation among them, have a
/// mean F-measure of at least 0.9 within 70 ms; downbeats of at least 0.75.
#[test]
fn the_beats_of_known_pieces_are_found() {
    let (mut beats, mut downbeats, mut told) = (0.0, 0.0, Vec::new());
    for (style, course) in (0..N_STYLES).flat_map(|style| (0..N_COURSES).map(move |c| (style, c))) {
        let piece = piece(style, course, SEED);
        let sound = sound(&piece.midi);
        let found = track_beats(&sound, &Novelty::of(&sound));
        let of_beats = f_measure(&found.beats, &piece.beats);
        let of_downbeats = f_measure(&found.downbeats, &piece.downbeats);
        told.push(format!("{}: beats {of_beats:.2}, downbeats {of_downbeats:.2}", piece.name));
        beats += of_beats;
        downbeats += of_downbeats;
    }
    let n = told.len() as f64;
    assert!(n >= 40.0);
    assert!(beats / n >= 0.9, "{:.3}: {told:#?}", beats / n);
    assert!(downbeats / n >= 0.75, "{:.3}: {told:#?}", downbeats / n);
}

#[test]
fn silence_and_a_click_have_no_beats() {
    let mut samples = vec![0.0; 44_100 * 4];
    for _ in 0..2 {
        let sound = Sound::from_samples(&samples, 1, 44_100).unwrap();
        let found = track_beats(&sound, &Novelty::of(&sound));
        assert!(found.beats.len() <= 1 && found.downbeats.is_empty(), "{found:?}");
        samples[44_100] = 1.0;
    }
    let short = Sound::from_samples(&[0.5; 100], 1, 44_100).unwrap();
    assert!(track_beats(&short, &Novelty::of(&short)).beats.is_empty());
}

/// Half the rate of a render is enough for beats, and takes half the time.
fn sound(midi: &[u8]) -> Sound {
    let settings = RenderSettings { sample_rate: 22_050, ..RenderSettings::default() };
    Sound::from_samples(&rendered(midi, settings).0, 2, 22_050).unwrap()
}
