//! What a call sends while it runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::Data;

/// One piece of what a call sends before its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamChunk {
    /// How far the work is. Only the latest matters.
    Progress {
        /// 0 to 100.
        percent: f32,
        /// What is being done.
        message: String,
    },
    /// Audio as it is rendered. None is ever lost.
    PartialAudio {
        /// 32-bit floats, little-endian, interleaved.
        samples: Data,
        /// Frames per second.
        sample_rate: u32,
        /// Samples per frame.
        channels: u8,
    },
    /// MIDI as it is made. None is ever lost.
    PartialMidi {
        /// The events in order.
        events: Vec<MidiEvent>,
    },
    /// A line of a log. Old ones may be dropped, and the next one says how many.
    LogLine {
        /// How serious.
        level: LogLevel,
        /// The line.
        message: String,
    },
    /// A part of some other content. None is ever lost.
    PartialContent {
        /// The bytes.
        data: Data,
        /// Their type.
        mime_type: String,
    },
}

/// How the stream treats a chunk when its reader is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// A newer one replaces an unread one.
    Latest,
    /// The oldest unread ones go first.
    DropOldest,
    /// The writer waits for the reader's credit.
    Lossless,
}

impl StreamChunk {
    /// How the stream treats it.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        match self {
            Self::Progress { .. } => Delivery::Latest,
            Self::LogLine { .. } => Delivery::DropOldest,
            Self::PartialAudio { .. } | Self::PartialMidi { .. } | Self::PartialContent { .. } => {
                Delivery::Lossless
            }
        }
    }

    /// The bytes it counts against a reader's credit.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::Progress { message, .. } | Self::LogLine { message, .. } => message.len(),
            Self::PartialAudio { samples, .. } => samples.0.len(),
            Self::PartialMidi { events } => events.iter().map(|event| 8 + event.data.0.len()).sum(),
            Self::PartialContent { data, .. } => data.0.len(),
        }
    }
}

/// One MIDI event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MidiEvent {
    /// When, in ticks from the start.
    pub tick: u64,
    /// The raw message.
    pub data: Data,
}

/// How serious a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// For whoever debugs the tool.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is off.
    Warn,
    /// Something failed.
    Error,
}
