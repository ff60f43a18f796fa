//! Novelty: how much the spectrum grows from one moment to the next.

use super::sound::Sound;
use super::spectrum::{Bands, N_BANDS, RATE, Stft};

/// 46 ms: short enough to place an attack, long enough for its pitch.
const WINDOW: usize = 1024;

/// 10 ms.
const HOP: usize = 220;

/// Moments per second.
pub(crate) const FPS: f64 = RATE as f64 / HOP as f64;

/// A moment is compared with the one this many before: an attack takes about 20 ms.
const LAG: usize = 2;

/// The weight of soft sounds against loud ones: the ear hears ratios.
const COMPRESSION: f32 = 1000.0;

/// The bands of bass drum and bass: up to about 180 Hz.
const LOW_BANDS: usize = 3;

/// The bands of snare, cymbals and consonants: from about 3 kHz.
const HIGH_BANDS: usize = 24;

/// The stretch, in moments, whose mean is the background of an attack.
const BACKGROUND: usize = 40;

/// An attack grows fastest this long after it starts, in seconds.
const LATE_SECONDS: f64 = 0.0075;

/// An attack is the maximum within this many moments, before and after.
const ONSET_REACH: usize = 4;

/// How far an attack rises above the background, in standard deviations.
const ONSET_THRESHOLD: f32 = 0.8;

/// The novelty at each moment.
#[derive(Debug, Clone)]
pub struct Novelty {
    /// In all bands, above the background, in standard deviations.
    pub(crate) all: Vec<f32>,
    /// In the bass.
    pub(crate) low: Vec<f32>,
    /// In the treble.
    pub(crate) high: Vec<f32>,
}

impl Novelty {
    /// Analyzes a sound.
    #[must_use]
    pub fn of(sound: &Sound) -> Self {
        let bands = Bands::new(WINDOW);
        let mut past: [[f32; N_BANDS]; LAG] = [[0.0; N_BANDS]; LAG];
        let (mut all, mut low, mut high) = (Vec::new(), Vec::new(), Vec::new());
        Stft::new(WINDOW, HOP).each(&sound.mono, |magnitudes| {
            let mut now = bands.of(magnitudes);
            now.iter_mut().for_each(|band| *band = (1.0 + COMPRESSION * *band).ln());
            let slot = all.len() % LAG;
            let mut growth = [0.0; N_BANDS];
            for ((growth, now), past) in growth.iter_mut().zip(&now).zip(&past[slot]) {
                *growth = (now - past).max(0.0);
            }
            past[slot] = now;
            all.push(growth.iter().sum::<f32>());
            low.push(growth[..LOW_BANDS].iter().sum::<f32>());
            high.push(growth[HIGH_BANDS..].iter().sum::<f32>());
        });
        Self { all: standing_out(&all), low: standing_out(&low), high: standing_out(&high) }
    }

    /// Returns the novelty at each moment, in standard deviations.
    #[must_use]
    pub fn frames(&self) -> &[f32] {
        &self.all
    }

    /// Returns the moments per second.
    #[must_use]
    pub const fn frames_per_second(&self) -> f64 {
        FPS
    }

    /// Returns the onsets, in seconds.
    #[must_use]
    pub fn onsets(&self) -> Vec<f64> {
        let is_peak = |idx: usize| {
            let value = self.all[idx];
            let around =
                idx.saturating_sub(ONSET_REACH)..(idx + ONSET_REACH + 1).min(self.all.len());
            value > ONSET_THRESHOLD
                && around.clone().all(|other| self.all[other] <= value)
                // The first of equals.
                && (around.start..idx).all(|other| self.all[other] < value)
        };
        (0..self.all.len()).filter(|idx| is_peak(*idx)).map(seconds).collect()
    }
}

/// Returns the time of a moment, in seconds.
pub(crate) fn seconds(idx: usize) -> f64 {
    (idx as f64 / FPS - LATE_SECONDS).max(0.0)
}

/// Returns the values relative to the mean around each, in units of their spread.
fn standing_out(values: &[f32]) -> Vec<f32> {
    let sums = running_sums(values);
    let mut above: Vec<f32> = values
        .iter()
        .enumerate()
        .map(|(idx, value)| {
            let (from, to) = (idx.saturating_sub(BACKGROUND), (idx + BACKGROUND).min(values.len()));
            (value - ((sums[to] - sums[from]) / (to - from) as f64) as f32).max(0.0)
        })
        .collect();
    let power: f64 = above.iter().map(|value| f64::from(value * value)).sum();
    let spread = (power / above.len().max(1) as f64).sqrt() as f32;
    if spread > f32::EPSILON {
        above.iter_mut().for_each(|value| *value /= spread);
    }
    above
}

fn running_sums(values: &[f32]) -> Vec<f64> {
    let mut sum = 0.0;
    let mut sums = vec![0.0];
    sums.extend(values.iter().map(|value| {
        sum += f64::from(*value);
        sum
    }));
    sums
}
