//! Writes sound into a WAV file.

use std::fmt;
use std::io::{self, Seek, Write};

use hound::{SampleFormat, WavSpec, WavWriter};

use super::synth::{AudioSink, Progress, SinkError};

/// The format of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WavFormat {
    /// 16-bit integers.
    #[default]
    Int16,
    /// 24-bit integers.
    Int24,
    /// 32-bit floats, which never clip.
    Float32,
}

impl WavFormat {
    /// Returns the bytes per sample.
    #[must_use]
    pub const fn bytes(self) -> u16 {
        match self {
            Self::Int16 => 2,
            Self::Int24 => 3,
            Self::Float32 => 4,
        }
    }
}

/// Writes sound as WAV.
pub struct WavSink<W: Write + Seek> {
    writer: WavWriter<W>,
    format: WavFormat,
}

impl<W: Write + Seek> fmt::Debug for WavSink<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WavSink").field("format", &self.format).finish_non_exhaustive()
    }
}

impl<W: Write + Seek> WavSink<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// If the writer failed.
    pub fn new(
        writer: W,
        format: WavFormat,
        channels: u16,
        sample_rate: u32,
    ) -> Result<Self, SinkError> {
        let sample_format = match format {
            WavFormat::Int16 | WavFormat::Int24 => SampleFormat::Int,
            WavFormat::Float32 => SampleFormat::Float,
        };
        let bits_per_sample = format.bytes() * 8;
        let spec = WavSpec { channels, sample_rate, bits_per_sample, sample_format };
        let writer = WavWriter::new(writer, spec).map_err(failed)?;
        Ok(Self { writer, format })
    }

    /// Writes samples, interleaved by channel.
    ///
    /// # Errors
    /// If the writer failed.
    pub fn write(&mut self, samples: &[f32]) -> Result<(), SinkError> {
        for sample in samples {
            let written = match self.format {
                WavFormat::Int16 => self.writer.write_sample(quantised(*sample, 15)),
                WavFormat::Int24 => self.writer.write_sample(quantised(*sample, 23)),
                WavFormat::Float32 => self.writer.write_sample(*sample),
            };
            written.map_err(failed)?;
        }
        Ok(())
    }

    /// Completes the file: its header has its length.
    ///
    /// # Errors
    /// If the writer failed.
    pub fn finish(self) -> Result<(), SinkError> {
        self.writer.finalize().map_err(failed)
    }
}

impl<W: Write + Seek> AudioSink for WavSink<W> {
    fn take(&mut self, samples: &[f32], _: Progress) -> Result<(), SinkError> {
        self.write(samples)
    }
}

/// Returns a sample as an integer; louder ones are clipped.
pub(super) fn quantised(sample: f32, bits: u32) -> i32 {
    let full = f64::from(1_u32 << bits);
    (f64::from(sample) * full).round().clamp(-full, full - 1.0) as i32
}

fn failed(error: hound::Error) -> SinkError {
    SinkError::Failed(match error {
        hound::Error::IoError(error) => error,
        other @ (hound::Error::FormatError(_)
        | hound::Error::TooWide
        | hound::Error::UnfinishedSample
        | hound::Error::Unsupported
        | hound::Error::InvalidSampleFormat) => io::Error::other(other),
    })
}
