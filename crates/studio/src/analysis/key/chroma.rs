//! Pitch classes: the amounts of C, C sharp and so on in a stretch of sound.

use crate::analysis::novelty::{FPS, seconds};
use crate::analysis::sound::Sound;
use crate::analysis::spectrum::{RATE, Stft};

/// 186 ms: long enough to separate bass notes.
const WINDOW: usize = 4096;

/// 46 ms.
const HOP: usize = 1024;

/// Frames after an attack whose window still contains the previous chord.
const SKIPPED: usize = 2;

/// The range of pitches, in hertz: below it a bin spans several, above it are only overtones.
const LOWEST_HERTZ: f32 = 65.0;
const HIGHEST_HERTZ: f32 = 2100.0;

/// The pitch classes of a sound over time.
#[derive(Debug)]
pub(crate) struct Chroma(Vec<[f32; 12]>);

impl Chroma {
    pub(crate) fn of(sound: &Sound) -> Self {
        let classes: Vec<Option<(usize, f32)>> = (0..=WINDOW / 2).map(class).collect();
        let mut frames = Vec::new();
        Stft::new(WINDOW, HOP).each(&sound.mono, |magnitudes| {
            let mut chroma = [0.0; 12];
            for bin in 1..magnitudes.len() - 1 {
                let here = magnitudes[bin];
                // Only peaks are pitches; the other bins are their skirts.
                let peak = here > magnitudes[bin - 1] && here >= magnitudes[bin + 1];
                if let (true, Some((class, weight))) = (peak, classes[bin]) {
                    chroma[class] += weight * here.sqrt();
                }
            }
            frames.push(chroma);
        });
        Self(frames)
    }

    /// Returns those of the whole sound.
    pub(crate) fn sum(&self) -> [f32; 12] {
        sum(&self.0)
    }

    /// Returns those from each beat to the next.
    pub(crate) fn of_beats(&self, moments: &[usize]) -> Vec<[f32; 12]> {
        let n_frames = self.0.len();
        let place =
            |moment: usize| (seconds(moment) * f64::from(RATE) / HOP as f64).round() as usize;
        let mut steps = moments.windows(2).map(|pair| pair[1] - pair[0]);
        let period = steps.next_back().unwrap_or(FPS as usize);
        let ends = moments.iter().skip(1).copied().chain(moments.last().map(|last| last + period));
        moments
            .iter()
            .zip(ends)
            .map(|(start, end)| {
                let from = (place(*start) + SKIPPED).min(n_frames);
                let to = place(end).max(from + 1).min(n_frames);
                sum(&self.0[from.min(to)..to])
            })
            .collect()
    }
}

/// Returns the pitch class of a bin, and its weight.
fn class(bin: usize) -> Option<(usize, f32)> {
    let hertz = bin as f32 * RATE as f32 / WINDOW as f32;
    if !(LOWEST_HERTZ..HIGHEST_HERTZ).contains(&hertz) {
        return None;
    }
    let pitch = 69.0 + 12.0 * (hertz / 440.0).log2();
    let weight = 1.0 / (1.0 + (hertz / 600.0).powi(2));
    Some(((pitch.round() as usize) % 12, weight))
}

/// Returns the sum.
pub(crate) fn sum(frames: &[[f32; 12]]) -> [f32; 12] {
    let mut sum = [0.0; 12];
    for frame in frames {
        sum.iter_mut().zip(frame).for_each(|(sum, value)| *sum += value);
    }
    sum
}
