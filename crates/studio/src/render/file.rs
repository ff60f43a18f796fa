//! Writes sound into a file of any format.

use std::io::{Seek, Write};

use super::flac::FlacSink;
use super::synth::{AudioSink, Progress, SinkError};
use super::wav::{WavFormat, WavSink};

/// The format of a file and of its samples.
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
    /// Returns its media type.
    #[must_use]
    pub const fn mime_type(self) -> &'static str {
        match self {
            Self::Wav(_) => "audio/wav",
            Self::Flac16 | Self::Flac24 => "audio/flac",
        }
    }

    /// Returns its file extension, without a dot.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Wav(_) => "wav",
            Self::Flac16 | Self::Flac24 => "flac",
        }
    }
}

/// Writes sound into a file.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "each render has only one")]
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
    /// If the writer failed.
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

    /// Writes samples, interleaved by channel.
    ///
    /// # Errors
    /// If the writer failed.
    pub fn write(&mut self, samples: &[f32]) -> Result<(), SinkError> {
        match self {
            Self::Wav(sink) => sink.write(samples),
            Self::Flac(sink) => sink.write(samples),
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If the writer failed.
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
