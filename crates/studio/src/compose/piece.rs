//! Music on a grid: the input and the output of the model.

use crate::analysis::{Key, Mode, key_of};
use crate::smf::{Event, Message, ReadError, Sequence, TextKind, Timing, Track};

/// Steps per quarter note: fine enough for triplets of sixteenths.
pub(super) const STEPS: i64 = 24;
/// The most notes of a piece that are learned from; the rest is ignored.
const NOTES_READ_MAX: usize = 20_000;
/// The drum channel, whose keys are not pitches.
const DRUMS: u8 = 9;
/// Microseconds per quarter note of a file without a tempo: 120 a minute.
const TEMPO: u32 = 500_000;
/// The weight of the last note in finding the key.
const LAST_NOTE: f32 = 4.0;

/// A note on the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Note {
    /// The step of its start.
    pub(super) at: i64,
    /// Its length in steps.
    pub(super) length: i64,
    pub(super) key: u8,
    pub(super) velocity: u8,
}

/// Music on a grid, with its key and its meter.
#[derive(Debug, Clone, PartialEq)]
pub struct Piece {
    /// At least one, by onset, the highest first.
    pub(super) notes: Vec<Note>,
    /// Steps per bar.
    pub(super) bar: i64,
    meter: (u8, u8),
    /// Microseconds per quarter note.
    tempo: u32,
    program: u8,
    pub(super) tonic: u8,
    pub(super) is_minor: bool,
    /// The average distance of onsets from the grid, in quarter notes.
    pub(super) unevenness: f64,
}

/// Why a piece cannot be learned from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PieceError {
    /// The file cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It has no notes except drums.
    #[error("the MIDI file has no notes except drums: use one with a melody")]
    Empty,
}

impl Piece {
    /// Reads a MIDI file. Drums are ignored.
    ///
    /// # Errors
    /// If it cannot be learned from.
    pub fn read(bytes: &[u8]) -> Result<Self, PieceError> {
        Self::from_sequence(&Sequence::read(bytes)?)
    }

    /// Returns the music of a sequence.
    ///
    /// # Errors
    /// If it has no notes.
    pub fn from_sequence(sequence: &Sequence) -> Result<Self, PieceError> {
        let mut reading = Reading::new(sequence);
        for event in sequence.tracks.iter().flatten() {
            reading.facts(event);
        }
        for track in &sequence.tracks {
            reading.track(track);
        }
        let Reading { mut notes, meter, tempo, program, n_uneven, .. } = reading;
        if notes.is_empty() {
            return Err(PieceError::Empty);
        }
        notes.sort_by_key(|note| (note.at, std::cmp::Reverse(note.key)));
        notes.dedup_by_key(|note| (note.at, note.key));
        let unevenness = n_uneven / notes.len() as f64;
        notes.truncate(NOTES_READ_MAX);
        let Key { tonic, mode, .. } = key(&notes).ok_or(PieceError::Empty)?;
        let meter = meter.unwrap_or((4, 2));
        let bar = (STEPS * 4 * i64::from(meter.0)) >> meter.1;
        Ok(Self {
            notes,
            bar: bar.max(STEPS),
            meter,
            tempo: tempo.unwrap_or(TEMPO),
            program: program.unwrap_or(0),
            tonic,
            is_minor: mode == Mode::Minor,
            unevenness,
        })
    }

    /// Returns other notes in this piece's key, meter and tempo.
    pub(super) fn with_notes(&self, notes: &[Note]) -> Self {
        Self { notes: notes.to_vec(), ..self.clone() }
    }

    /// Returns the notes of the first bar that has any, and of the one after.
    pub(super) fn opening(&self) -> &[Note] {
        let first_bar = self.notes[0].at.div_euclid(self.bar);
        let n_notes =
            self.notes.partition_point(|note| note.at.div_euclid(self.bar) <= first_bar + 1);
        &self.notes[..n_notes]
    }

    /// Returns the average velocity.
    pub(super) fn velocity(&self) -> u8 {
        let sum: usize = self.notes.iter().map(|note| usize::from(note.velocity)).sum();
        u8::try_from(sum / self.notes.len()).unwrap_or(127)
    }

    /// Returns a MIDI file of notes in this piece's tempo, meter and instrument, that lasts until
    /// `end`.
    pub(super) fn sequence(&self, notes: &[Note], end: i64) -> Sequence {
        let mut track = Track::new();
        let mut push = |step: i64, message| {
            track.push(Event { tick: u64::try_from(step).unwrap_or(0), message });
        };
        push(0, Message::Tempo(self.tempo));
        let (numerator, denominator_power) = self.meter;
        push(0, Message::TimeSignature { numerator, denominator_power });
        push(0, Message::Program { channel: 0, program: self.program });
        for (note_idx, note) in notes.iter().enumerate() {
            // A key has to be released before it is struck again.
            let again = notes[note_idx + 1..]
                .iter()
                .take_while(|next| next.at < note.at + note.length)
                .find(|next| next.key == note.key && next.at > note.at);
            let off = again.map_or(note.at + note.length, |next| next.at);
            let Note { at, key, velocity, .. } = *note;
            push(at, Message::NoteOn { channel: 0, key, velocity });
            push(off, Message::NoteOff { channel: 0, key });
        }
        push(end, Message::Text(TextKind::Marker, "end".to_owned()));
        track.sort_by_key(|event| {
            (event.tick, u8::from(matches!(event.message, Message::NoteOn { .. })))
        });
        Sequence { timing: Timing::PerQuarter(STEPS as u16), tracks: vec![track] }
    }
}

/// Returns the key, with more weight on the last note.
fn key(notes: &[Note]) -> Option<Key> {
    let mut chroma = [0.0; 12];
    for note in notes {
        chroma[usize::from(note.key % 12)] += note.length as f32;
    }
    if let Some(last) = notes.last() {
        chroma[usize::from(last.key % 12)] += last.length as f32 * LAST_NOTE;
    }
    key_of(&chroma)
}

/// The state while a sequence is read.
struct Reading {
    notes: Vec<Note>,
    ticks_per_quarter: f64,
    meter: Option<(u8, u8)>,
    tempo: Option<u32>,
    program: Option<u8>,
    /// The sum of the distances of onsets from the grid.
    n_uneven: f64,
}

impl Reading {
    fn new(sequence: &Sequence) -> Self {
        let ticks_per_quarter = match sequence.timing {
            Timing::PerQuarter(ticks) => f64::from(ticks),
            // Film time has no quarters: 120 a minute are as good as any.
            Timing::PerSecond(ticks) => f64::from(ticks) / 2.0,
        };
        Self {
            notes: Vec::new(),
            ticks_per_quarter,
            meter: None,
            tempo: None,
            program: None,
            n_uneven: 0.0,
        }
    }

    /// Reads the first tempo, meter and instrument.
    fn facts(&mut self, event: &Event) {
        match event.message {
            Message::Tempo(micros) => {
                self.tempo.get_or_insert(micros);
            }
            Message::TimeSignature { numerator: numerator @ 1..=16, denominator_power }
                if denominator_power <= 4 =>
            {
                self.meter.get_or_insert((numerator, denominator_power));
            }
            Message::Program { channel, program } if channel != DRUMS => {
                self.program.get_or_insert(program);
            }
            Message::NoteOn { .. }
            | Message::NoteOff { .. }
            | Message::Program { .. }
            | Message::TimeSignature { .. }
            | Message::Control { .. }
            | Message::PitchBend { .. }
            | Message::Pressure { .. }
            | Message::KeySignature { .. }
            | Message::Text(..) => {}
        }
    }

    fn track(&mut self, track: &Track) {
        let mut sounding: Vec<(u8, u8, u64, u8)> = Vec::new();
        for event in track {
            match event.message {
                Message::NoteOn { channel, key, velocity } if channel != DRUMS => {
                    sounding.push((channel, key, event.tick, velocity));
                }
                Message::NoteOff { channel, key } => {
                    let found = sounding.iter().position(|(c, k, ..)| (*c, *k) == (channel, key));
                    if let Some(idx) = found {
                        let (_, key, tick, velocity) = sounding.remove(idx);
                        self.note(key, (tick, event.tick), velocity);
                    }
                }
                Message::NoteOn { .. }
                | Message::Program { .. }
                | Message::Control { .. }
                | Message::PitchBend { .. }
                | Message::Pressure { .. }
                | Message::Tempo(_)
                | Message::TimeSignature { .. }
                | Message::KeySignature { .. }
                | Message::Text(..) => {}
            }
        }
    }

    fn note(&mut self, key: u8, (on, off): (u64, u64), velocity: u8) {
        let steps = |tick: u64| tick as f64 / self.ticks_per_quarter * STEPS as f64;
        let (start, end) = (steps(on), steps(off));
        // Written music starts notes on sixteenths and triplets of eighths.
        let quarter = start / STEPS as f64;
        let off_grid = |parts: f64| (quarter * parts - (quarter * parts).round()).abs() / parts;
        self.n_uneven += off_grid(4.0).min(off_grid(3.0));
        let at = start.round() as i64;
        let length = (end.round() as i64 - at).max(1);
        self.notes.push(Note { at, length, key, velocity });
    }
}
