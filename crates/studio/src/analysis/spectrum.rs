//! Spectra of short frames of sound, and bands as wide as those of hearing.

use std::ops::Range;
use std::sync::Arc;

use realfft::{RealFftPlanner, RealToComplex};

/// The rate of all analyses: higher frequencies contribute little to rhythm or pitch.
pub(crate) const RATE: u32 = 22_050;

/// The number of bands.
pub(crate) const N_BANDS: usize = 40;

/// The lower end of the lowest band, in hertz: below is rumble.
const LOWEST_HERTZ: f32 = 30.0;
/// The upper end of the highest band, in hertz.
const HIGHEST_HERTZ: f32 = 10_500.0;

/// Magnitude spectra of overlapping frames.
pub(crate) struct Stft {
    fft: Arc<dyn RealToComplex<f32>>,
    window: Vec<f32>,
    hop: usize,
}

impl Stft {
    pub(crate) fn new(size: usize, hop: usize) -> Self {
        let turn = std::f32::consts::TAU / size as f32;
        let window = (0..size).map(|idx| 0.5 - 0.5 * (idx as f32 * turn).cos()).collect();
        Self { fft: RealFftPlanner::new().plan_fft_forward(size), window, hop }
    }

    /// Passes on the spectrum around each multiple of the hop.
    pub(crate) fn each(&self, samples: &[f32], mut take: impl FnMut(&[f32])) {
        let size = self.window.len();
        let mut input = self.fft.make_input_vec();
        let mut output = self.fft.make_output_vec();
        let mut scratch = self.fft.make_scratch_vec();
        let mut magnitudes = vec![0.0; output.len()];
        let scale = 4.0 / size as f32;
        for centre in (0..samples.len()).step_by(self.hop) {
            fill(&mut input, samples, centre, &self.window);
            self.fft
                .process_with_scratch(&mut input, &mut output, &mut scratch)
                .expect("the buffers are made by the plan");
            for (magnitude, bin) in magnitudes.iter_mut().zip(&output) {
                *magnitude = bin.norm_sqr().sqrt() * scale;
            }
            take(&magnitudes);
        }
    }
}

/// Fills in the windowed samples around a place, with silence beyond both ends.
fn fill(input: &mut [f32], samples: &[f32], centre: usize, window: &[f32]) {
    let size = window.len();
    let before = (size / 2).saturating_sub(centre);
    let start = centre.saturating_sub(size / 2);
    let n_samples = (size - before).min(samples.len() - start);
    input[..before].fill(0.0);
    input[before + n_samples..].fill(0.0);
    let windowed = input[before..].iter_mut().zip(&window[before..]);
    for ((input, window), sample) in windowed.zip(&samples[start..start + n_samples]) {
        *input = sample * window;
    }
}

/// Triangular bands, equally wide to the ear.
pub(crate) struct Bands(Vec<(Range<usize>, Vec<f32>)>);

impl Bands {
    pub(crate) fn new(size: usize) -> Self {
        let (low, high) = (mel(LOWEST_HERTZ), mel(HIGHEST_HERTZ));
        let edge = |idx: usize| {
            let mel = low + (high - low) * idx as f32 / (N_BANDS + 1) as f32;
            700.0 * ((mel / 1127.0).exp() - 1.0) * size as f32 / RATE as f32
        };
        Self((0..N_BANDS).map(|idx| band(edge(idx), edge(idx + 1), edge(idx + 2))).collect())
    }

    pub(crate) fn of(&self, magnitudes: &[f32]) -> [f32; N_BANDS] {
        let mut bands = [0.0; N_BANDS];
        for (out, (range, weights)) in bands.iter_mut().zip(&self.0) {
            let parts = magnitudes[range.clone()].iter().zip(weights);
            *out = parts.map(|(magnitude, weight)| magnitude * weight).sum();
        }
        bands
    }
}

fn mel(hertz: f32) -> f32 {
    1127.0 * (1.0 + hertz / 700.0).ln()
}

/// Returns the weights of the bins of one band; a band narrower than a bin still has the nearest.
fn band(low: f32, middle: f32, high: f32) -> (Range<usize>, Vec<f32>) {
    let first = low.floor() as usize + 1;
    let last = (high.ceil() as usize).max(first + 1);
    let weight = |bin: usize| {
        let bin = bin as f32;
        ((bin - low) / (middle - low)).min((high - bin) / (high - middle)).max(0.0)
    };
    let mut weights: Vec<_> = (first..last).map(weight).collect();
    let sum: f32 = weights.iter().sum();
    if sum < 0.5 {
        let nearest = middle.round() as usize;
        return (nearest..nearest + 1, vec![1.0]);
    }
    weights.iter_mut().for_each(|weight| *weight /= sum);
    (first..last, weights)
}
