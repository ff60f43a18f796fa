//! Standard MIDI Files, formats 0 and 1: reading with limits, writing, and converting ticks to
//! seconds.
//!
//! Main types: [`Sequence`] has tracks of [`Event`]s; [`TempoMap`] converts ticks to seconds.

mod read;
mod tempo_map;
mod write;

pub use read::ReadError;
pub use tempo_map::TempoMap;

/// The largest file that is read.
pub const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most events of a file, in all tracks.
pub const EVENTS_MAX: usize = 2_000_000;

/// The music of a MIDI file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// The unit of ticks.
    pub timing: Timing,
    /// The tracks; they play together.
    pub tracks: Vec<Track>,
}

/// The unit of ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// This many ticks per quarter note, whose length the tempo sets. 1 to 32767.
    PerQuarter(u16),
    /// This many ticks per second: film time, which no tempo changes.
    PerSecond(u32),
}

/// Events by tick.
pub type Track = Vec<Event>;

/// An event at a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The time, from the start of the file.
    pub tick: u64,
    /// The message.
    pub message: Message,
}

/// The messages. Values are those of MIDI: channels 0 to 15, the rest 0 to 127.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A note starts. Its velocity is never 0: that reads as [`Message::NoteOff`].
    NoteOn {
        /// The channel.
        channel: u8,
        /// 60 is middle C.
        key: u8,
        /// The velocity.
        velocity: u8,
    },
    /// A note ends.
    NoteOff {
        /// The channel.
        channel: u8,
        /// The note.
        key: u8,
    },
    /// The instrument of the channel changes.
    Program {
        /// The channel.
        channel: u8,
        /// The instrument.
        program: u8,
    },
    /// A controller moves.
    Control {
        /// The channel.
        channel: u8,
        /// The controller.
        controller: u8,
        /// The new value.
        value: u8,
    },
    /// The pitch wheel moves, from -8192 to 8191.
    PitchBend {
        /// The channel.
        channel: u8,
        /// The new value.
        bend: i16,
    },
    /// Pressure on a key or, without one, on the whole channel.
    Pressure {
        /// The channel.
        channel: u8,
        /// The note.
        key: Option<u8>,
        /// The new value.
        pressure: u8,
    },
    /// The tempo changes: microseconds per quarter note.
    Tempo(u32),
    /// The meter changes.
    TimeSignature {
        /// The upper number.
        numerator: u8,
        /// The lower number as a power of two: 3 is an eighth.
        denominator_power: u8,
    },
    /// The key changes.
    KeySignature {
        /// Sharps, or flats if negative.
        sharps: i8,
        /// Whether it is minor.
        minor: bool,
    },
    /// A text.
    Text(TextKind, String),
}

/// The kind of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Anything.
    Text,
    /// The copyright holder.
    Copyright,
    /// The name of the track, of the whole piece in the first track.
    TrackName,
    /// The name of the instrument.
    Instrument,
    /// A syllable that is sung.
    Lyric,
    /// A place in the music.
    Marker,
    /// A stage cue.
    Cue,
}

impl Sequence {
    /// Returns the last tick with an event.
    #[must_use]
    pub fn end_tick(&self) -> u64 {
        self.tracks.iter().filter_map(|track| track.last()).map(|last| last.tick).max().unwrap_or(0)
    }

    /// Returns its duration.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        TempoMap::new(self).seconds(self.end_tick())
    }

    /// Returns the number of notes.
    #[must_use]
    pub fn n_notes(&self) -> usize {
        let events = self.tracks.iter().flatten();
        events.filter(|event| matches!(event.message, Message::NoteOn { .. })).count()
    }
}

#[cfg(test)]
mod tests;
