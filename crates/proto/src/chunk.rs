//! Data that a call sends while it runs.

use bytes::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::data::Data;
use crate::error::Error;
use crate::msgpack::{self, TopLevel};

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

/// The lossless bytes of a stream that flow before its reader grants any credit.
pub const FIRST_CREDIT: u64 = 1 << 20;

/// Empty bytes in MsgPack.
const NO_BYTES: &[u8] = &[0xc4, 0];

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

    /// Reads a chunk from MsgPack; if its bytes travelled beside it as RawBinary, they are those of
    /// the field `samples` or `data`, which is left out or empty.
    ///
    /// # Errors
    /// `invalid` when it is malformed, or a chunk of another kind came with bytes.
    pub fn decode(encoded: &[u8], data: Option<&Bytes>) -> Result<Self, Error> {
        let invalid = |why: &str| Error::invalid(format!("invalid chunk: {why:.200}"));
        let read = |encoded: &[u8]| {
            rmp_serde::from_slice::<Self>(encoded).map_err(|error| invalid(&error.to_string()))
        };
        let Some(data) = data else { return read(encoded) };
        let TopLevel::Map(fields) = msgpack::open(encoded)? else {
            return Err(invalid("with RawBinary it must be a map"));
        };
        let field = match fields.get("type").and_then(msgpack::as_text) {
            Some("partial_audio") => "samples",
            Some("partial_content") => "data",
            Some(_) | None => return Err(invalid("its type has no bytes to send as RawBinary")),
        };
        let mut chunk = match fields.get(field) {
            Some(_) => read(encoded)?,
            None => read(&msgpack::with_field(encoded, field, NO_BYTES)?)?,
        };
        if chunk.put_data(data.clone()) {
            Ok(chunk)
        } else {
            Err(invalid(&format!("`{field}` is in part 6 and in part 7")))
        }
    }

    /// Takes out its bytes, so that they can be sent separately as RawBinary.
    #[must_use]
    pub fn take_data(&mut self) -> Option<Bytes> {
        self.data().map(|data| std::mem::take(data).0)
    }

    /// Puts the bytes of a RawBinary chunk where [`Self::take_data`] takes them from. Returns whether
    /// there is such a place, and it was empty.
    pub fn put_data(&mut self, bytes: Bytes) -> bool {
        match self.data() {
            Some(data) if data.0.is_empty() => {
                *data = Data(bytes);
                true
            }
            Some(_) | None => false,
        }
    }

    const fn data(&mut self) -> Option<&mut Data> {
        match self {
            Self::PartialAudio { samples, .. } => Some(samples),
            Self::PartialContent { data, .. } => Some(data),
            Self::PartialMidi { .. } | Self::Progress { .. } | Self::LogLine { .. } => None,
        }
    }

    /// Returns the lossless bytes it counts against a reader's credit.
    #[must_use]
    pub fn lossless_weight(&self) -> u64 {
        match self.delivery() {
            Delivery::Lossless => self.weight() as u64,
            Delivery::Latest | Delivery::DropOldest => 0,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunk: &impl Serialize, data: Option<&'static [u8]>) -> Result<StreamChunk, Error> {
        let encoded = rmp_serde::to_vec_named(chunk).unwrap();
        StreamChunk::decode(&encoded, data.map(Bytes::from_static).as_ref())
    }

    /// Rule: bytes beside a chunk are the field that it leaves out, and nothing else.
    #[test]
    fn raw_bytes_of_a_chunk_are_its_samples_or_data() {
        #[derive(Serialize)]
        struct Bare {
            r#type: &'static str,
            sample_rate: u32,
            channels: u8,
        }
        let bare = Bare { r#type: "partial_audio", sample_rate: 8_000, channels: 1 };
        let samples = Data(Bytes::from_static(b"abcd"));
        let audio = StreamChunk::PartialAudio { samples, sample_rate: 8_000, channels: 1 };
        assert_eq!(decode(&bare, Some(b"abcd")).unwrap(), audio);
        let mut emptied = audio.clone();
        assert_eq!(emptied.take_data().unwrap(), &b"abcd"[..]);
        assert_eq!(decode(&emptied, Some(b"abcd")).unwrap(), audio);
        assert_eq!(decode(&audio, None).unwrap(), audio);
        decode(&audio, Some(b"efgh")).unwrap_err();
        decode(&bare, None).unwrap_err();
        let progress = StreamChunk::Progress { percent: 1.0, message: String::new() };
        decode(&progress, Some(b"")).unwrap_err();
        StreamChunk::decode(&[0x90], Some(&Bytes::new())).unwrap_err();
        StreamChunk::decode(&[], Some(&Bytes::new())).unwrap_err();
    }
}
