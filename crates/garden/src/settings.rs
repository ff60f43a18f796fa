//! The settings of the garden process.

use std::ops::RangeInclusive;
use std::time::Duration;

use camino::Utf8PathBuf;
use ringback_client::Config;

/// The sample rates of devices: below them a tick at the fastest tempo is shorter than a frame; above
/// them the synthesizer does not work.
pub const SAMPLE_RATES: RangeInclusive<u32> = 16_000..=192_000;
/// The frames of a device's buffer: from a third of a millisecond to a sixth of a second.
pub const BUFFER_FRAMES: RangeInclusive<u32> = 16..=8192;

/// How long the renderer sleeps at most while nothing wakes it: a fraction of what lies ahead.
pub(crate) const RENDERER_SLEEP: Duration = Duration::from_millis(10);

/// How to run the garden.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The daemon.
    pub daemon: Config,
    /// The daemon's endpoint for events, if it is known.
    pub events: Option<String>,
    /// The daemon's directory of content, if it can be read here.
    pub blobs: Option<Utf8PathBuf>,
    /// Where the sound goes.
    pub device: DeviceChoice,
    /// Frames per second.
    pub sample_rate: u32,
    /// The frames of one buffer of the device.
    pub buffer_frames: u32,
    /// How much sound is mixed in advance.
    pub ahead: Duration,
    /// How much prepared sound is kept in memory, in bytes.
    pub cache_bytes: u64,
    /// The SoundFont that plays MIDI; an installed one if absent.
    pub soundfont: Option<Utf8PathBuf>,
}

/// Where the sound goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The sound server, or nowhere if it does not answer.
    Auto,
    /// Nowhere, in real time.
    Null,
    /// A WAV file.
    File(Utf8PathBuf),
    /// The standard input of a program, as raw samples: 32-bit floats, two channels.
    Command(String),
    /// PulseAudio, or PipeWire in its place.
    Pulse,
}

/// Why a device cannot be chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a device; use `auto`, `null`, `pulse`, `file:PATH` or `command:PROGRAM ARGUMENTS`"
)]
pub struct DeviceChoiceError(pub String);

impl std::str::FromStr for DeviceChoice {
    type Err = DeviceChoiceError;

    fn from_str(text: &str) -> Result<Self, DeviceChoiceError> {
        match text.split_once(':') {
            None if text == "auto" => Ok(Self::Auto),
            None if text == "null" => Ok(Self::Null),
            None if text == "pulse" => Ok(Self::Pulse),
            Some(("file", path)) if !path.is_empty() => Ok(Self::File(path.into())),
            Some(("command", command)) if !command.trim().is_empty() => {
                Ok(Self::Command(command.to_owned()))
            }
            _ => Err(DeviceChoiceError(text.to_owned())),
        }
    }
}

impl Settings {
    /// How much sound is mixed in advance, unless the configuration says otherwise: longer than a
    /// busy machine keeps a thread waiting.
    pub const AHEAD: Duration = Duration::from_millis(100);
    /// How much prepared sound is kept in memory: 23 minutes of stereo at 48 kHz.
    pub const CACHE_BYTES: u64 = 512 << 20;
    /// Frames per second, as most devices have them.
    pub const SAMPLE_RATE: u32 = 48_000;
    /// The frames of one buffer: 2.7 ms.
    pub const FRAMES_PER_BUFFER: u32 = 128;

    /// Makes the default settings for a daemon.
    #[must_use]
    pub const fn new(daemon: Config) -> Self {
        Self {
            daemon,
            events: None,
            blobs: None,
            device: DeviceChoice::Auto,
            sample_rate: Self::SAMPLE_RATE,
            buffer_frames: Self::FRAMES_PER_BUFFER,
            ahead: Self::AHEAD,
            cache_bytes: Self::CACHE_BYTES,
            soundfont: None,
        }
    }

    /// Returns how many frames are mixed in advance: at least four buffers of the device, and three
    /// times as much as the renderer sleeps.
    #[must_use]
    pub fn ahead_frames(&self) -> u64 {
        let ahead = self.ahead.max(3 * RENDERER_SLEEP);
        let frames = (ahead.as_secs_f64() * f64::from(self.sample_rate)).round() as u64;
        frames.max(4 * u64::from(self.buffer_frames))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_chosen_by_name() {
        for (text, choice) in [
            ("auto", DeviceChoice::Auto),
            ("null", DeviceChoice::Null),
            ("pulse", DeviceChoice::Pulse),
            ("file:/tmp/a:b.wav", DeviceChoice::File("/tmp/a:b.wav".into())),
            ("command:aplay -f FLOAT_LE", DeviceChoice::Command("aplay -f FLOAT_LE".into())),
        ] {
            assert_eq!(text.parse(), Ok(choice), "{text}");
        }
        for text in ["", "alsa", "file:", "command: ", "null:x"] {
            assert_eq!(text.parse::<DeviceChoice>(), Err(DeviceChoiceError(text.to_owned())));
        }
    }
}
