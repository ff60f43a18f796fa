//! `[garden]`: the process that plays the timeline.

use std::path::PathBuf;

use super::quantity::{ByteSize, Millis};
use super::section::section;

/// Frames per second, as most devices have them.
const SAMPLE_RATE: usize = 48_000;

/// The frames of one buffer: 2.7 ms.
const BUFFER_FRAMES: usize = 128;

/// Longer than a busy machine keeps a thread waiting.
const AHEAD: Millis = Millis::millis(100);

/// 23 minutes of stereo at 48 kHz.
const CACHE: ByteSize = ByteSize(512 << 20);

/// When the daemon starts the garden process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GardenStart {
    /// At the first command that needs it.
    OnDemand,
    /// With the daemon.
    Always,
    /// Never: someone else starts it, or it stays silent.
    Never,
}

impl GardenStart {
    /// Every choice.
    pub(super) const ALL: [Self; 3] = [Self::OnDemand, Self::Always, Self::Never];

    /// Returns its name in the configuration.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OnDemand => "on_demand",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

section! {
    /// The process that plays the timeline. It connects to the socket of `hoot.ipc`.
    pub struct Garden = "garden" {
        /// When the daemon starts it: `on_demand` at the first command, `always` with the daemon, or
        /// `never`. It is started again when it dies, and stopped with the daemon.
        pub start: GardenStart = GardenStart::OnDemand,
        /// Where the sound goes: `auto`, `pulse`, `null`, `file:PATH` or `command:PROGRAM ARGUMENTS`.
        pub device: String = "auto".to_owned(),
        /// Frames per second.
        pub sample_rate: usize = SAMPLE_RATE,
        /// Frames in one buffer of the device.
        pub buffer_frames: usize = BUFFER_FRAMES,
        /// How much sound is mixed in advance.
        pub ahead: Millis = AHEAD,
        /// How much prepared sound is kept in memory.
        pub cache: ByteSize = CACHE,
        /// SoundFont that plays MIDI; by default that of `studio.soundfont`, or an installed one.
        pub soundfont: Option<PathBuf> = None,
    }
}
