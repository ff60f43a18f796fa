//! The device that writes a WAV file: everything that is played, without the silence in between. A
//! recording that is there already is set aside, not overwritten: a garden that crashed starts again.

use std::io::BufWriter;

use camino::{Utf8Path, Utf8PathBuf};
use ringback_studio::render::{WavFormat, WavSink};

use super::{Device, DeviceError, Format, Pace, Stop};
use crate::player::Player;
use crate::sound::CHANNELS;

/// A file that is not longer has a header and no sound.
const HEADER_BYTES_MAX: u64 = 128;
/// Recordings with the same name.
const RECORDINGS_MAX: u32 = 1000;

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
        set_aside(path).map_err(|error| failed(&error))?;
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

/// Renames a recording that is there already to `NAME.1` or the next free number.
fn set_aside(path: &Utf8Path) -> std::io::Result<()> {
    let has_sound = std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() > HEADER_BYTES_MAX);
    if !has_sound {
        return Ok(());
    }
    let names = (1..=RECORDINGS_MAX).map(|number| Utf8PathBuf::from(format!("{path}.{number}")));
    let free = names.into_iter().find(|name| !name.exists());
    let aside = free.ok_or_else(|| {
        let reason = format!("{RECORDINGS_MAX} recordings of this name exist; delete some");
        std::io::Error::new(std::io::ErrorKind::AlreadyExists, reason)
    })?;
    tracing::info!(%path, %aside, "setting aside an earlier recording");
    std::fs::rename(path, aside)
}

impl Drop for File {
    fn drop(&mut self) {
        if let Err(error) = self.finish() {
            tracing::warn!(%error, "the sound file is not complete");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a garden that starts again does not overwrite what the one before recorded.
    #[test]
    fn a_recording_that_is_there_is_set_aside_and_an_empty_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = Utf8Path::from_path(dir.path()).unwrap().join("played.wav");
        let format = Format { sample_rate: 48_000, buffer_frames: 128 };
        for n_samples in [0, 200, 400, 0, 600] {
            let mut file = File::create(&path, format).unwrap();
            file.sink.as_mut().unwrap().write(&vec![0.5; n_samples]).unwrap();
        }
        let length = |name: &str| {
            let file = hound::WavReader::open(dir.path().join(name)).unwrap();
            file.len()
        };
        let lengths = ["played.wav.1", "played.wav.2", "played.wav"].map(length);
        assert_eq!(lengths, [200, 400, 600]);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 3);
    }
}
