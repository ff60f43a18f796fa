//! The device that writes a WAV file: everything that is played, without the silence in between.

use std::io::BufWriter;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_studio::render::{WavFormat, WavSink};

use super::{Device, DeviceError, Format, Pace, Stop};
use crate::player::Player;
use crate::sound::CHANNELS;

/// Writes a WAV file of 32-bit floats.
#[derive(Debug)]
pub(super) struct File {
    path: Utf8PathBuf,
    format: Format,
    /// `None` once it is complete.
    sink: Option<WavSink<BufWriter<std::fs::File>>>,
}

impl File {
    pub(super) fn create(path: &Utf8Path, format: Format) -> Result<Self, DeviceError> {
        let failed = |error: &dyn std::fmt::Display| {
            DeviceError::on("create", path.as_str())(error.to_string())
        };
        let file = std::fs::File::create(path).map_err(|error| failed(&error))?;
        let (writer, rate) = (BufWriter::new(file), format.sample_rate);
        let sink = WavSink::new(writer, WavFormat::Float32, CHANNELS as u16, rate);
        let sink = Some(sink.map_err(|error| failed(&error))?);
        Ok(Self { path: path.to_owned(), format, sink })
    }

    fn finish(&mut self) -> Result<(), DeviceError> {
        let finished = self.sink.take().map_or(Ok(()), WavSink::finish);
        finished.map_err(DeviceError::on("complete", self.path.as_str()))
    }
}

impl Device for File {
    fn kind(&self) -> &'static str {
        "file"
    }

    fn name(&self) -> String {
        self.path.to_string()
    }

    fn run(&mut self, player: &mut Player, stop: &Stop) -> Result<(), DeviceError> {
        let mut buffer = self.format.buffer();
        let mut pace = Pace::new(self.format.sample_rate);
        while !stop.is_set() {
            let is_active = player.is_active();
            // A file can wait for sound that a real device would miss.
            if !is_active || player.has(self.format.buffer_frames as usize) {
                player.fill(&mut buffer);
                if is_active && let Some(sink) = &mut self.sink {
                    let written = sink.write(&buffer);
                    written.map_err(DeviceError::on("write to", self.path.as_str()))?;
                }
            }
            pace.wait(self.format.buffer_frames);
        }
        self.finish()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            tracing::warn!(%error, "the sound file is not complete");
        }
    }
}
