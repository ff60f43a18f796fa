//! Data that a call sends while it runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::Data;

/// A piece of data that a call sends before its outcome.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum StreamChunk {
    /// The progress of the work. Only the latest matters.
    Progress {
        /// The progress in percent, from 0 to 100.
        percent: f32,
        /// The current step.
        message: String,
    },
    /// Audio as it is rendered. Never dropped.
    PartialAudio {
        /// 32-bit floats, little-endian, interleaved.
        samples: Data,
        /// The sample rate in hertz.
        sample_rate: u32,
        /// The number of channels.
        channels: u8,
    },
    /// MIDI as it is generated. Never dropped.
    PartialMidi {
        /// The events in order.
        events: Vec<MidiEvent>,
    },
    /// A log line. Old ones may be dropped; the next one reports how many.
    LogLine {
        /// Its severity.
        level: LogLevel,
        /// Its text.
        message: String,
    },
    /// A part of some other content. Never dropped.
    PartialContent {
        /// The bytes.
        data: Data,
        /// Their MIME type.
        mime_type: String,
    },
}

/// What happens to a chunk when its reader is slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// A newer one replaces an unread one.
    Latest,
    /// The oldest unread ones are dropped first.
    DropOldest,
    /// The writer waits for the reader's credit.
    Lossless,
}

impl StreamChunk {
    /// Returns its delivery class.
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

    /// Returns the bytes it counts against a reader's credit.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::Progress { message, .. } | Self::LogLine { message, .. } => message.len(),
            Self::PartialAudio { samples, .. } => samples.0.len(),
            Self::PartialMidi { events } => events.iter().map(MidiEvent::weight).sum(),
            Self::PartialContent { data, .. } => data.0.len(),
        }
    }
}

/// One MIDI event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MidiEvent {
    /// Its time in ticks from the start.
    pub tick: u64,
    /// The raw message.
    pub data: Data,
}

impl MidiEvent {
    /// Returns the bytes it counts against a reader's credit.
    #[must_use]
    pub const fn weight(&self) -> usize {
        size_of::<u64>() + self.data.0.len()
    }
}

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// For debugging the tool.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is off.
    Warn,
    /// Something failed.
    Error,
}
