//! The timbre of a sound as numbers, and the similarity of two sounds.

use super::key::chroma::Chroma;
use super::key::{self, Key};
use super::novelty::Novelty;
use super::sound::{Loudness, Sound};
use super::spectrum::{Bands, N_BANDS, RATE, Stft};

/// 93 ms, and half of it between frames: timbre changes slowly.
const WINDOW: usize = 2048;
const HOP: usize = 1024;

/// The fraction of the power below the roll-off.
const ROLLOFF_SHARE: f32 = 0.85;

/// The weight of soft bands against loud ones.
const COMPRESSION: f32 = 1000.0;

/// The weights of timbre, its changes and the pitches in the similarity of two sounds.
const WEIGHTS: [f32; 3] = [0.5, 0.25, 0.25];

/// The measurements of a sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Its loudness.
    pub loudness: Loudness,
    /// Its key; silence and noise may have none.
    pub key: Option<Key>,
    /// The onsets, in seconds.
    pub onsets: Vec<f64>,
    /// Its timbre.
    pub spectral: Spectral,
    /// All of its timbre as one vector, for comparisons: 40 bands on average, how much each
    /// changes, and 12 pitch classes; each of the three parts has length 1.
    pub embedding: Vec<f32>,
}

/// The timbre of a sound: means over its frames, weighted by loudness.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Spectral {
    /// The centroid of the spectrum, in hertz: bright or dark.
    pub centroid_hertz: f32,
    /// Its bandwidth, in hertz.
    pub bandwidth_hertz: f32,
    /// The frequency below which 85 % of the power lies, in hertz.
    pub rolloff_hertz: f32,
    /// 0 for a tone, 1 for noise.
    pub flatness: f32,
    /// Zero crossings of the wave per second.
    pub zero_crossings_per_second: f32,
    /// The root mean square.
    pub rms: f32,
}

/// The similarity of two sounds: 1 for identical ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Similarity(pub f32);

/// Measures a sound.
#[must_use]
pub fn measure(sound: &Sound, novelty: &Novelty) -> Features {
    let chroma = Chroma::of(sound).sum();
    let mut colour = Colour::default();
    let bands = Bands::new(WINDOW);
    Stft::new(WINDOW, HOP).each(&sound.mono, |magnitudes| colour.add(magnitudes, &bands));
    Features {
        loudness: sound.loudness(),
        key: key::of(&chroma),
        onsets: novelty.onsets(),
        spectral: colour.spectral(&sound.mono),
        embedding: colour.embedding(&chroma),
    }
}

/// Compares two sounds by their embeddings.
#[must_use]
pub fn similarity(a: &Features, b: &Features) -> Similarity {
    let dot = |from: usize, to: usize| -> f32 {
        a.embedding[from..to].iter().zip(&b.embedding[from..to]).map(|(a, b)| a * b).sum()
    };
    let parts = [dot(0, N_BANDS), dot(N_BANDS, 2 * N_BANDS), dot(2 * N_BANDS, 2 * N_BANDS + 12)];
    Similarity(parts.iter().zip(WEIGHTS).map(|(part, weight)| part * weight).sum())
}

/// Sums over the frames of a sound.
#[derive(Default)]
struct Colour {
    n: usize,
    weight: f32,
    centroid: f32,
    bandwidth: f32,
    rolloff: f32,
    flatness: f32,
    bands: Vec<f32>,
    squares: Vec<f32>,
}

impl Colour {
    fn add(&mut self, magnitudes: &[f32], bands: &Bands) {
        let hertz = |bin: usize| bin as f32 * RATE as f32 / WINDOW as f32;
        let sum: f32 = magnitudes.iter().sum();
        let logs = bands.of(magnitudes).map(|band| (1.0 + COMPRESSION * band).ln());
        self.bands.resize(N_BANDS, 0.0);
        self.squares.resize(N_BANDS, 0.0);
        for (idx, log) in logs.iter().enumerate() {
            self.bands[idx] += log;
            self.squares[idx] += log * log;
        }
        self.n += 1;
        if sum <= 1e-6 {
            return;
        }
        let weighted = |of: &dyn Fn(usize) -> f32| -> f32 {
            magnitudes.iter().enumerate().map(|(bin, value)| value * of(bin)).sum::<f32>() / sum
        };
        let centroid = weighted(&hertz);
        let bandwidth = weighted(&|bin| (hertz(bin) - centroid).powi(2)).sqrt();
        let power: f32 = magnitudes.iter().map(|value| value * value).sum();
        let mut below = 0.0;
        let rolloff = magnitudes.iter().position(|value| {
            below += value * value;
            below >= power * ROLLOFF_SHARE
        });
        let n = magnitudes.len() as f32;
        let log_mean = magnitudes.iter().map(|value| (value + 1e-9).ln()).sum::<f32>() / n;
        self.weight += sum;
        self.centroid += sum * centroid;
        self.bandwidth += sum * bandwidth;
        self.rolloff += sum * hertz(rolloff.unwrap_or(0));
        self.flatness += sum * (log_mean.exp() / (sum / n)).min(1.0);
    }

    fn spectral(&self, samples: &[f32]) -> Spectral {
        let n = samples.len().max(1) as f32;
        let crossings =
            samples.windows(2).filter(|pair| (pair[0] < 0.0) != (pair[1] < 0.0)).count();
        let power: f64 = samples.iter().map(|sample| f64::from(sample * sample)).sum();
        let weight = self.weight.max(1e-9);
        Spectral {
            centroid_hertz: self.centroid / weight,
            bandwidth_hertz: self.bandwidth / weight,
            rolloff_hertz: self.rolloff / weight,
            flatness: self.flatness / weight,
            zero_crossings_per_second: crossings as f32 * RATE as f32 / n,
            rms: (power / f64::from(n)).sqrt() as f32,
        }
    }

    fn embedding(&self, chroma: &[f32; 12]) -> Vec<f32> {
        let n = self.n.max(1) as f32;
        let means: Vec<f32> = self.bands.iter().map(|sum| sum / n).collect();
        let spreads = self.squares.iter().zip(&means);
        let spreads: Vec<f32> =
            spreads.map(|(squares, mean)| (squares / n - mean * mean).max(0.0).sqrt()).collect();
        // Around their own mean, so that loudness does not make everything alike.
        let mean = means.iter().sum::<f32>() / means.len().max(1) as f32;
        let colour = means.iter().map(|value| value - mean).collect();
        [unit(colour), unit(spreads), unit(chroma.to_vec())].concat()
    }
}

fn unit(mut values: Vec<f32>) -> Vec<f32> {
    let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > f32::EPSILON {
        values.iter_mut().for_each(|value| *value /= length);
    }
    values
}
