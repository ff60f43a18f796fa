//! Resampling without audible loss.

use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{Fft, FixedSync, Resampler as _};

/// The least number of frames that are converted together.
const CHUNK_FRAMES: usize = 4096;

/// Resamples one channel as it comes, aligned with its input: a sound at a second stays at that
/// second.
pub struct Resampler {
    /// `None` if the rates are the same.
    fft: Option<Fft<f32>>,
    pending: Vec<f32>,
    output: Vec<f32>,
    scratch: Vec<f32>,
    /// Frames at the start that only fill the filter.
    to_skip: usize,
    n_in: u64,
    ratio: f64,
}

impl std::fmt::Debug for Resampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resampler").field("ratio", &self.ratio).finish_non_exhaustive()
    }
}

impl Resampler {
    /// Returns a resampler; `None` if the rates are impossible.
    #[must_use]
    pub fn new(from: u32, to: u32) -> Option<Self> {
        let fft = if from == to {
            None
        } else {
            let (from, to) = (from as usize, to as usize);
            Some(Fft::new(from, to, chunk_frames(from, to)?, 1, FixedSync::Both).ok()?)
        };
        let scratch = fft.as_ref().map_or(0, |fft| fft.output_frames_max());
        Some(Self {
            to_skip: fft.as_ref().map_or(0, |fft| fft.output_delay()),
            fft,
            pending: Vec::new(),
            output: Vec::new(),
            scratch: vec![0.0; scratch],
            n_in: 0,
            ratio: f64::from(to) / f64::from(from.max(1)),
        })
    }

    /// Takes the next samples.
    pub fn push(&mut self, samples: &[f32]) {
        self.n_in += samples.len() as u64;
        if self.fft.is_none() {
            self.output.extend_from_slice(samples);
            return;
        }
        self.pending.extend_from_slice(samples);
        self.run();
    }

    /// Returns everything at the new rate.
    #[must_use]
    pub fn finish(mut self) -> Vec<f32> {
        let wanted = (self.n_in as f64 * self.ratio).ceil() as usize;
        // Silence after the end flushes the filter.
        while self.output.len() < wanted {
            self.pending.resize(self.pending.len() + CHUNK_FRAMES, 0.0);
            self.run();
        }
        self.output.truncate(wanted);
        self.output
    }

    fn run(&mut self) {
        let Some(fft) = &mut self.fft else { return };
        let mut done = 0;
        loop {
            let needed = fft.input_frames_next();
            let Some(input) = self.pending.get(done..done + needed) else { break };
            let scratch_frames = self.scratch.len();
            let from = SequentialSlice::new(input, 1, needed)
                .expect("the buffer has the size it asks for");
            let mut to = SequentialSlice::new_mut(&mut self.scratch, 1, scratch_frames)
                .expect("the buffer has the size it asks for");
            let (n_in, n_out) = fft
                .process_into_buffer(&from, &mut to, None)
                .expect("both buffers have the size it asks for");
            let skipped = self.to_skip.min(n_out);
            self.to_skip -= skipped;
            self.output.extend_from_slice(&self.scratch[skipped..n_out]);
            done += n_in;
        }
        self.pending.drain(..done);
    }
}

/// Returns how many frames to convert together: an even multiple of the least number with whole
/// frames. The middle of an odd filter lies between two frames, and the sound would be half a frame
/// late.
fn chunk_frames(from: usize, to: usize) -> Option<usize> {
    let (mut common, mut rest) = (from, to);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    let unit = from.checked_div(common).filter(|unit| *unit > 0)?;
    Some(unit * CHUNK_FRAMES.div_ceil(unit).next_multiple_of(2))
}

/// Resamples a whole channel; `None` if the rates are impossible.
#[must_use]
pub fn resample(samples: &[f32], from: u32, to: u32) -> Option<Vec<f32>> {
    let mut resampler = Resampler::new(from, to)?;
    resampler.push(samples);
    Some(resampler.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sine(rate: u32, hertz: f64, n: usize) -> Vec<f32> {
        let step = std::f64::consts::TAU * hertz / f64::from(rate);
        (0..n).map(|idx| (idx as f64 * step).sin() as f32).collect()
    }

    /// Rule: resampling keeps time and level, and its noise is 90 dB below.
    #[test]
    fn a_tone_keeps_its_place_and_its_level() {
        for (from, to) in [(48_000, 44_100), (44_100, 22_050), (8000, 44_100), (96_000, 22_050)] {
            let seconds = 2;
            let resampled =
                resample(&sine(from, 997.0, (from * seconds) as usize), from, to).unwrap();
            let expected = sine(to, 997.0, (to * seconds) as usize);
            assert_eq!(resampled.len(), expected.len());
            let middle = expected.len() / 4..expected.len() * 3 / 4;
            let pairs = resampled[middle.clone()].iter().zip(&expected[middle]);
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 3e-5, "{from} to {to}: {worst}");
        }
    }

    #[test]
    fn what_the_new_rate_cannot_carry_is_gone() {
        let resampled = resample(&sine(44_100, 15_000.0, 44_100), 44_100, 22_050).unwrap();
        let worst = resampled[2000..20_000].iter().fold(0.0_f32, |worst, s| worst.max(s.abs()));
        assert!(worst < 1e-4, "{worst}");
    }

    #[test]
    fn the_same_rate_changes_nothing_and_short_sounds_keep_their_length() {
        assert_eq!(resample(&[0.5, -0.5], 44_100, 44_100).unwrap(), [0.5, -0.5]);
        assert_eq!(resample(&[0.5; 10], 44_100, 22_050).unwrap().len(), 5);
        assert!(resample(&[], 44_100, 22_050).unwrap().is_empty());
        assert!(resample(&[0.5], 0, 22_050).is_none());
    }
}
