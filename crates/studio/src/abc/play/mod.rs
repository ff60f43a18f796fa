//! Performances: from a tune to notes with exact times.
//!
//! Three steps: [`score`] gives every voice its written times and pitches, [`order`] expands
//! repeats and parts, [`realize`] turns it into notes.

mod builder;
mod order;
mod ornament;
mod parts;
mod realization;
pub(super) mod score;
mod voice;

use num_traits::ToPrimitive as _;

use super::diagnostic::Diagnostics;
use super::model::{Book, Field, Fraction, Tune};
use score::Score;

/// The most notes of a performance, with all voices and repeats.
pub const NOTES_MAX: usize = 200_000;
/// The longest performance: four hours.
pub const SECONDS_MAX: u32 = 4 * 60 * 60;

/// How to perform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Quarter notes per minute, instead of the tune's tempos.
    pub tempo: Option<u32>,
    /// Semitones up.
    pub transpose: i32,
    /// The velocity of notes without dynamics.
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
    /// No tune has this number.
    #[error("no tune {} in this text, which has {n_tunes}", index + 1)]
    NoTune {
        /// The requested index, from 0.
        index: usize,
        /// The number of tunes.
        n_tunes: usize,
    },
    /// Over [`NOTES_MAX`].
    #[error("with its repeats the tune has over {NOTES_MAX} notes: repeat less, or split it")]
    TooManyNotes,
    /// Over [`SECONDS_MAX`].
    #[error("the tune lasts over {SECONDS_MAX} seconds: shorten its rests and repeats")]
    TooLong,
    /// The lengths have no common denominator that fits into the arithmetic.
    #[error("the lengths of the notes are too finely divided: use simpler tuplets")]
    TooFine,
}

/// A sounding note. Times are in whole notes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedNote {
    /// Its start.
    pub onset: Fraction,
    /// Its length.
    pub duration: Fraction,
    /// The MIDI key.
    pub key: u8,
    /// Its velocity.
    pub velocity: u8,
}

/// The notes of one voice.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Line {
    /// Its name.
    pub name: String,
    /// Its MIDI channel, from 0.
    pub channel: u8,
    /// Its instruments and when they change.
    pub programs: Vec<(Fraction, u8)>,
    /// Its notes, by onset.
    pub notes: Vec<PlayedNote>,
    /// Its lyrics, and their times.
    pub lyrics: Vec<(Fraction, String)>,
}

/// A performance.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Performance {
    /// The title.
    pub title: Option<String>,
    /// One for each voice, then the accompaniment.
    pub lines: Vec<Line>,
    /// Quarter notes per minute, each with its start; the first at 0.
    pub tempos: Vec<(Fraction, Fraction)>,
    /// Meters, each with its start.
    pub meters: Vec<(Fraction, (u32, u32))>,
    /// Sharps (flats if negative) and whether it is minor, each with its start.
    pub keys: Vec<(Fraction, (i8, bool))>,
    /// The end of the last bar.
    pub end: Fraction,
}

impl Performance {
    /// Returns all notes of all voices.
    pub fn notes(&self) -> impl Iterator<Item = &PlayedNote> {
        self.lines.iter().flat_map(|line| &line.notes)
    }

    /// Returns its duration.
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

/// Performs a tune; its problems go to the diagnostics.
pub(super) fn perform_tune(
    file_header: &[Field],
    tune: &Tune,
    options: &Options,
    diagnostics: &mut Diagnostics,
) -> Result<Performance, PlayError> {
    let score = Score::build(file_header, tune, diagnostics)?;
    let performance = realization::realize(&score, options)?;
    if performance.seconds() > f64::from(SECONDS_MAX) {
        return Err(PlayError::TooLong);
    }
    Ok(performance)
}
