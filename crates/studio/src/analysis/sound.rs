//! A decoded sound file, in the form for analysis.

use std::io::{Read, Seek};

use ebur128::{EbuR128, Mode};

use super::spectrum::RATE;
use crate::audio::{AudioInfo, DecodeError, DecodeLimits, Resampler, Samples, decode};

/// A decoded sound: one channel at the analysis rate, and measurements made on the way.
#[derive(Debug, Clone)]
pub struct Sound {
    /// One channel at 22,050 frames a second.
    pub(crate) mono: Vec<f32>,
    decoded: AudioInfo,
    loudness: Loudness,
}

/// Loudness according to EBU R 128. Silence has none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Loudness {
    /// Integrated loudness, in LUFS.
    pub integrated_lufs: Option<f64>,
    /// Loudness range, in LU.
    pub range_lu: Option<f64>,
    /// The largest sample, in dBFS.
    pub sample_peak_dbfs: Option<f64>,
    /// The largest value between samples, in dBTP.
    pub true_peak_dbtp: Option<f64>,
}

impl Sound {
    /// Decodes a WAV, FLAC, MP3 or Ogg Vorbis file; `false` from `go_on` stops it.
    ///
    /// # Errors
    /// If the file has another format, is broken, empty or over a limit, or decoding was stopped.
    pub fn read(
        file: impl Read + Seek + Send + Sync + 'static,
        limits: DecodeLimits,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Self, DecodeError> {
        let mut gathering: Option<SoundCollector> = None;
        let decoded = decode(file, limits, &mut |samples| {
            if gathering.is_none() {
                gathering = SoundCollector::new(samples.channels, samples.sample_rate);
            }
            gathering.as_mut().is_some_and(|gathering| gathering.take(samples)) && go_on()
        })?;
        let gathering = gathering.ok_or(DecodeError::Empty)?;
        let loudness = gathering.loudness();
        Ok(Self { mono: gathering.resampler.finish(), decoded, loudness })
    }

    /// Returns decoded sound: one channel, or several interleaved.
    #[must_use]
    pub fn from_samples(interleaved: &[f32], channels: usize, sample_rate: u32) -> Option<Self> {
        let mut gathering = SoundCollector::new(channels, sample_rate)?;
        if !gathering.take(Samples { interleaved, channels, sample_rate }) {
            return None;
        }
        let frames = (interleaved.len() / channels) as u64;
        let decoded = AudioInfo { channels, sample_rate, frames, n_bad_packets: 0 };
        let loudness = gathering.loudness();
        Some(Self { mono: gathering.resampler.finish(), decoded, loudness })
    }

    /// Returns one channel, and its frames per second.
    #[must_use]
    pub fn mono(&self) -> (&[f32], u32) {
        (&self.mono, RATE)
    }

    /// Returns the properties of the file.
    #[must_use]
    pub const fn decoded(&self) -> AudioInfo {
        self.decoded
    }

    /// Returns its loudness.
    #[must_use]
    pub const fn loudness(&self) -> Loudness {
        self.loudness
    }

    /// Returns its duration.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.decoded.seconds()
    }
}

struct SoundCollector {
    resampler: Resampler,
    ebu: EbuR128,
    channels: u32,
    mono: Vec<f32>,
}

impl SoundCollector {
    fn new(channels: usize, sample_rate: u32) -> Option<Self> {
        let channels = u32::try_from(channels).ok().filter(|channels| *channels > 0)?;
        let mode = Mode::I | Mode::LRA | Mode::SAMPLE_PEAK | Mode::TRUE_PEAK | Mode::HISTOGRAM;
        let ebu = EbuR128::new(channels, sample_rate, mode).ok()?;
        let resampler = Resampler::new(sample_rate, RATE)?;
        Some(Self { resampler, ebu, channels, mono: Vec::new() })
    }

    fn take(&mut self, samples: Samples<'_>) -> bool {
        let channels = samples.channels as f32;
        self.mono.clear();
        let frames = samples.interleaved.chunks_exact(samples.channels);
        self.mono.extend(frames.map(|frame| {
            let mean = frame.iter().sum::<f32>() / channels;
            if mean.is_finite() { mean } else { 0.0 }
        }));
        self.resampler.push(&self.mono);
        self.ebu.add_frames_f32(samples.interleaved).is_ok()
    }

    fn loudness(&self) -> Loudness {
        let finite = |value: f64| value.is_finite().then_some(value);
        let peak = |of: &dyn Fn(u32) -> Option<f64>| {
            let largest = (0..self.channels).filter_map(of).fold(0.0, f64::max);
            finite(20.0 * largest.log10())
        };
        Loudness {
            integrated_lufs: self.ebu.loudness_global().ok().and_then(finite),
            range_lu: self.ebu.loudness_range().ok().and_then(finite),
            sample_peak_dbfs: peak(&|channel| self.ebu.sample_peak(channel).ok()),
            true_peak_dbtp: peak(&|channel| self.ebu.true_peak(channel).ok()),
        }
    }
}
