//! What sounds: from a tune to notes with exact times.
//!
//! Three steps: [`score`] gives every voice its written times and pitches, [`order`] writes repeats
//! and parts out, [`realize`] makes notes of it.

mod builder;
mod order;
mod ornament;
mod parts;
mod realize;
pub(super) mod score;
mod voice;

use num_traits::ToPrimitive as _;

use super::diagnostic::Diagnostics;
use super::model::{Book, Field, Fraction, Tune};
use score::Score;

/// The most notes of a performance, all voices and repeats together.
pub const NOTES_MAX: usize = 200_000;
/// The longest performance: four hours.
pub const SECONDS_MAX: u32 = 4 * 60 * 60;

/// How to perform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Quarter notes per minute, instead of all that the tune says.
    pub tempo: Option<u32>,
    /// Semitones up.
    pub transpose: i32,
    /// How hard notes are struck that no dynamics change.
    pub velocity: u8,
    /// The channel of the first voice, from 0.
    pub channel: u8,
    /// Whether chord symbols are accompanied.
    pub chords: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { tempo: None, transpose: 0, velocity: 80, channel: 0, chords: false }
    }
}

/// Why a tune cannot be performed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlayError {
    /// There is no tune with this number.
    #[error("there is no tune {} in this text, it has {n_tunes}", index + 1)]
    NoTune {
        /// Which was asked for, from 0.
        index: usize,
        /// How many there are.
        n_tunes: usize,
    },
    /// Over [`NOTES_MAX`].
    #[error("with its repeats the tune has over {NOTES_MAX} notes: repeat less, or split it")]
    TooManyNotes,
    /// Over [`SECONDS_MAX`].
    #[error("the tune lasts over {SECONDS_MAX} seconds: shorten its rests and repeats")]
    TooLong,
    /// The lengths have no common measure that a computer can count in.
    #[error("the lengths of the notes are too finely divided: use simpler tuplets")]
    TooFine,
}

/// A note that sounds. Times are in whole notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Played {
    /// When it starts.
    pub onset: Fraction,
    /// How long it lasts.
    pub duration: Fraction,
    /// The MIDI key.
    pub key: u8,
    /// How hard it is struck.
    pub velocity: u8,
}

/// What one voice plays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its MIDI channel, from 0.
    pub channel: u8,
    /// Its instruments and when they change.
    pub programs: Vec<(Fraction, u8)>,
    /// Its notes, in the order of their onsets.
    pub notes: Vec<Played>,
    /// What is sung, and when.
    pub lyrics: Vec<(Fraction, String)>,
}

/// What sounds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Performance {
    /// The title.
    pub title: Option<String>,
    /// One for each voice, then the accompaniment.
    pub lines: Vec<Line>,
    /// Quarter notes per minute, from when on; the first at 0.
    pub tempos: Vec<(Fraction, Fraction)>,
    /// Meters, from when on.
    pub meters: Vec<(Fraction, (u32, u32))>,
    /// Sharps (flats if negative) and whether it is minor, from when on.
    pub keys: Vec<(Fraction, (i8, bool))>,
    /// When the last bar ends.
    pub end: Fraction,
}

impl Performance {
    /// All notes of all voices.
    pub fn notes(&self) -> impl Iterator<Item = &Played> {
        self.lines.iter().flat_map(|line| &line.notes)
    }

    /// How long it lasts.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let mut seconds = 0.0;
        for (tempo_idx, (from, tempo)) in self.tempos.iter().enumerate() {
            let to = self.tempos.get(tempo_idx + 1).map_or(self.end, |(to, _)| *to);
            let wholes = to.to_f64().unwrap_or(0.0) - from.to_f64().unwrap_or(0.0);
            seconds += wholes.max(0.0) * 240.0 / tempo.to_f64().unwrap_or(120.0);
        }
        seconds
    }
}

/// Performs one tune of a book.
pub fn perform(book: &Book, index: usize, options: &Options) -> Result<Performance, PlayError> {
    let tune =
        book.tunes.get(index).ok_or(PlayError::NoTune { index, n_tunes: book.tunes.len() })?;
    perform_tune(&book.header, tune, options, &mut Diagnostics::default())
}

/// Performs a tune; what is doubtful about it goes to the diagnostics.
pub(super) fn perform_tune(
    file_header: &[Field],
    tune: &Tune,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Result<Performance, PlayError> {
    let score = Score::build(file_header, tune, diagnostics)?;
    let performance = realize::realize(&score, options)?;
    if performance.seconds() > f64::from(SECONDS_MAX) {
        return Err(PlayError::TooLong);
    }
    Ok(performance)
}
