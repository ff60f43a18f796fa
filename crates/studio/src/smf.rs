//! Standard MIDI Files, formats 0 and 1: reading with limits, writing, and where a tick lies in
//! seconds.
//!
//! Main types: [`Sequence`] holds tracks of [`Event`]s; [`TempoMap`] turns ticks into seconds.

mod read;
mod tempo_map;
mod write;

pub use read::ReadError;
pub use tempo_map::TempoMap;

/// The largest file that is read.
pub const BYTES_MAX: usize = 16 * 1024 * 1024;
/// The most events a file may have, all tracks together.
pub const EVENTS_MAX: usize = 2_000_000;

/// The music of a MIDI file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// What a tick is.
    pub timing: Timing,
    /// The tracks; they play together.
    pub tracks: Vec<Track>,
}

/// What a tick is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// So many ticks make a quarter note; the tempo says how long that is. 1 to 32767.
    PerQuarter(u16),
    /// So many ticks make a second: film time, which no tempo changes.
    PerSecond(u32),
}

/// Events in the order of their ticks.
pub type Track = Vec<Event>;

/// What happens at a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, from the start of the file.
    pub tick: u64,
    /// What.
    pub message: Message,
}

/// What can happen. Values are those of MIDI: channels 0 to 15, the rest 0 to 127.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A note starts. Its velocity is never 0: that reads as [`Message::NoteOff`].
    NoteOn {
        /// The channel.
        channel: u8,
        /// 60 is middle C.
        key: u8,
        /// How hard.
        velocity: u8,
    },
    /// A note ends.
    NoteOff {
        /// The channel.
        channel: u8,
        /// Which note.
        key: u8,
    },
    /// The channel gets another instrument.
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
        /// Which controller.
        controller: u8,
        /// Where it goes.
        value: u8,
    },
    /// The pitch wheel moves, from -8192 to 8191.
    PitchBend {
        /// The channel.
        channel: u8,
        /// Where it goes.
        bend: i16,
    },
    /// Pressure on a key or, without one, on the whole channel.
    Pressure {
        /// The channel.
        channel: u8,
        /// Which note.
        key: Option<u8>,
        /// How much.
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

/// What a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextKind {
    /// Anything.
    Text,
    /// Who owns the music.
    Copyright,
    /// The name of the track, of the whole piece in the first track.
    TrackName,
    /// The name of the instrument.
    Instrument,
    /// A syllable that is sung.
    Lyric,
    /// A place in the music.
    Marker,
    /// Something to do on stage.
    Cue,
}

impl Sequence {
    /// The last tick at which something happens.
    #[must_use]
    pub fn end_tick(&self) -> u64 {
        self.tracks.iter().filter_map(|track| track.last()).map(|last| last.tick).max().unwrap_or(0)
    }

    /// How long it lasts.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        TempoMap::new(self).seconds(self.end_tick())
    }

    /// How many notes it starts.
    #[must_use]
    pub fn n_notes(&self) -> usize {
        let events = self.tracks.iter().flatten();
        events.filter(|event| matches!(event.message, Message::NoteOn { .. })).count()
    }
}

#[cfg(test)]
mod tests;
