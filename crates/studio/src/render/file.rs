//! Sound into a file of any kind.

use std::io::{Seek, Write};

use super::flac::FlacSink;
use super::synth::{AudioSink, Progress, SinkError};
use super::wav::{WavFormat, WavSink};

/// What kind of file, and what a sample is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileFormat {
    /// WAV.
    Wav(WavFormat),
    /// FLAC with 16-bit integers.
    Flac16,
    /// FLAC with 24-bit integers.
    Flac24,
}

impl FileFormat {
    /// The type of its content.
    #[must_use]
    pub const fn mime_type(self) -> &'static str {
        match self {
            Self::Wav(_) => "audio/wav",
            Self::Flac16 | Self::Flac24 => "audio/flac",
        }
    }

    /// How its files are called, without a dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Wav(_) => "wav",
            Self::Flac16 | Self::Flac24 => "flac",
        }
    }
}

/// Writes what it takes into a file.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each render")]
pub enum FileSink<W: Write + Seek> {
    /// As WAV.
    Wav(WavSink<W>),
    /// As FLAC.
    Flac(FlacSink<W>),
}

impl<W: Write + Seek> FileSink<W> {
    /// Starts a file.
    ///
    /// # Errors
    /// The writer failed.
    pub fn new(
        writer: W,
        format: FileFormat,
        channels: u8,
        sample_rate: u32,
    ) -> Result<Self, SinkError> {
        Ok(match format {
            FileFormat::Wav(wav) => {
                Self::Wav(WavSink::new(writer, wav, channels.into(), sample_rate)?)
            }
            FileFormat::Flac16 => Self::Flac(FlacSink::new(writer, 16, channels, sample_rate)?),
            FileFormat::Flac24 => Self::Flac(FlacSink::new(writer, 24, channels, sample_rate)?),
        })
    }

    /// Writes samples, one channel after the other.
    ///
    /// # Errors
    /// The writer failed.
    pub fn write(&mut self, samples: &[f32]) -> Result<(), SinkError> {
        match self {
            Self::Wav(sink) => sink.write(samples),
            Self::Flac(sink) => sink.write(samples),
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The writer failed.
    pub fn finish(self) -> Result<(), SinkError> {
        match self {
            Self::Wav(sink) => sink.finish(),
            Self::Flac(sink) => sink.finish(),
        }
    }
}

impl<W: Write + Seek> AudioSink for FileSink<W> {
    fn take(&mut self, samples: &[f32], _: Progress) -> Result<(), SinkError> {
        self.write(samples)
    }
}
