//! Writes sound into a FLAC file.

use std::fmt;
use std::io::{self, Seek, Write};

use flac_codec::encode::{FlacSampleWriter, Options};

use super::synth::SinkError;
use super::wav::quantised;

/// Writes sound as FLAC.
pub struct FlacSink<W: Write + Seek> {
    writer: FlacSampleWriter<W>,
    bits: u32,
    /// The samples as integers, kept to reuse the memory.
    quantised: Vec<i32>,
}

impl<W: Write + Seek> fmt::Debug for FlacSink<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlacSink").field("bits", &self.bits).finish_non_exhaustive()
    }
}

impl<W: Write + Seek> FlacSink<W> {
    /// Starts a file with samples of 16 or 24 bits.
    ///
    /// # Errors
    /// If the writer failed.
    pub fn new(writer: W, bits: u32, channels: u8, sample_rate: u32) -> Result<Self, SinkError> {
        let options = Options::default();
        let writer = FlacSampleWriter::new(writer, options, sample_rate, bits, channels, None);
        Ok(Self { writer: writer.map_err(failed)?, bits, quantised: Vec::new() })
    }

    /// Writes samples, interleaved by channel.
    ///
    /// # Errors
    /// If the writer failed.
    pub fn write(&mut self, samples: &[f32]) -> Result<(), SinkError> {
        self.quantised.clear();
        self.quantised.extend(samples.iter().map(|sample| quantised(*sample, self.bits - 1)));
        self.writer.write(&self.quantised).map_err(failed)
    }

    /// Completes the file: its header has its length and its checksum.
    ///
    /// # Errors
    /// If the writer failed.
    pub fn finish(self) -> Result<(), SinkError> {
        self.writer.finalize().map_err(failed)
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum that grows")]
fn failed(error: flac_codec::Error) -> SinkError {
    SinkError::Failed(match error {
        flac_codec::Error::Io(error) => error,
        other => io::Error::other(other.to_string()),
    })
}
