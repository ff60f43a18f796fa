//! The knowledge of the model: the tunes that ship with it, and the given pieces.

use std::sync::LazyLock;

use rand::RngExt as _;
use rand::rngs::Xoshiro256PlusPlus;

use super::CompositionStopped;
use super::piece::{Note, Piece, STEPS};
use super::predictor::Predictor;
use crate::abc;

/// Traditional tunes in ABC notation.
const TUNES: &str = include_str!("tunes.abc");

/// The weight of the given pieces against all the tunes together.
const GIVEN_WEIGHT: usize = 2;
/// The number of previous rhythms in a context.
const RHYTHMS: usize = 3;
/// The number of previous pitches in a context.
const PITCHES: usize = 4;
/// The longest gap and length that are learned: two whole notes.
const STEPS_MAX: i64 = 8 * STEPS;
/// Notes between two checks whether to stop.
const NOTES_BETWEEN_LOOKS: usize = 512;
/// Stands for everything before the first note.
const BEGINNING: i32 = i32::MIN;

/// The tunes, read once.
static PIECES: LazyLock<Vec<Piece>> = LazyLock::new(|| {
    let Ok(parsed) = abc::parse(TUNES) else { return Vec::new() };
    let piece = |index| {
        let performance = abc::perform(&parsed.book, index, &abc::Options::default()).ok()?;
        Piece::from_sequence(&abc::to_midi(&performance)).ok()
    };
    (0..parsed.book.tunes.len()).filter_map(piece).collect()
});

/// The length of a note, and the distance to the next onset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rhythm {
    /// Steps to the next onset; 0 inside a chord.
    pub(super) gap: i64,
    pub(super) length: i64,
}

impl Rhythm {
    const fn symbol(self) -> i32 {
        (self.gap * 1024 + self.length) as i32
    }

    const fn from_symbol(symbol: i32) -> Self {
        Self { gap: (symbol / 1024) as i64, length: (symbol % 1024) as i64 }
    }
}

/// The knowledge of the model.
#[derive(Debug, Default)]
pub(super) struct Model {
    rhythms: Predictor,
    pitches: Predictor,
}

/// The notes so far, as the model sees them.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    rhythms: Vec<i32>,
    degrees: Vec<i32>,
}

/// The position of a note, and the kind of music.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) at: i64,
    pub(super) bar: i64,
    pub(super) is_minor: bool,
    /// Whether it sounds together with the previous note.
    pub(super) is_chord: bool,
}

impl Model {
    /// Learns the tunes and the given pieces.
    pub(super) fn learn(
        given: &[&Piece],
        go_on: &dyn Fn() -> bool,
    ) -> Result<Self, CompositionStopped> {
        let mut model = Self::default();
        let tunes = PIECES.iter().map(|piece| (piece, 1));
        let n_notes = |pieces: &mut dyn Iterator<Item = &Piece>| -> usize {
            pieces.map(|piece| piece.notes.len()).sum()
        };
        let n_given = n_notes(&mut given.iter().copied()).max(1);
        let weight = (n_notes(&mut PIECES.iter()) * GIVEN_WEIGHT).div_ceil(n_given);
        let weight = u32::try_from(weight).unwrap_or(u32::MAX);
        let given = given.iter().map(|piece| (*piece, weight));
        for (piece, weight) in tunes.chain(given) {
            model.learn_piece(piece, weight, go_on)?;
        }
        Ok(model)
    }

    /// Returns one of the tunes, for its key and meter.
    pub(super) fn example(&self, rng: &mut Xoshiro256PlusPlus) -> &'static Piece {
        &PIECES[rng.random_range(0..PIECES.len())]
    }

    fn learn_piece(
        &mut self,
        piece: &Piece,
        weight: u32,
        go_on: &dyn Fn() -> bool,
    ) -> Result<(), CompositionStopped> {
        let mut history = History::default();
        for (note_idx, note) in piece.notes.iter().enumerate() {
            if note_idx % NOTES_BETWEEN_LOOKS == 0 && !go_on() {
                return Err(CompositionStopped);
            }
            let place = piece.place(note_idx);
            let degree = piece.degree(note.key);
            self.pitches.learn(&history.pitch_context(place), degree, weight);
            let rhythm = piece.rhythm(note_idx);
            self.rhythms.learn(&history.rhythm_context(place), rhythm.symbol(), weight);
            history.push(degree, rhythm);
        }
        Ok(())
    }

    /// Returns the candidates for the next pitch, in semitones from the tonic.
    pub(super) fn degrees(
        &self,
        history: &History,
        place: Place,
    ) -> super::predictor::Distribution {
        self.pitches.distribution(&history.pitch_context(place))
    }

    /// Returns the candidates for the next rhythm.
    pub(super) fn rhythms(
        &self,
        history: &History,
        place: Place,
    ) -> super::predictor::Distribution {
        self.rhythms.distribution(&history.rhythm_context(place))
    }

    /// Returns how likely the first notes of a piece are after a history.
    pub(super) fn joins(&self, history: &History, piece: &Piece, notes: &[Note]) -> f64 {
        let mut history = history.clone();
        let mut likelihood = 0.0;
        for (note_idx, note) in notes.iter().enumerate() {
            let place = piece.place(note_idx);
            let degree = piece.degree(note.key);
            likelihood += self.pitches.likelihood(&history.pitch_context(place), degree);
            history.push(degree, piece.rhythm(note_idx));
        }
        likelihood
    }
}

impl History {
    /// Returns the history after a piece.
    pub(super) fn of(piece: &Piece, notes: &[Note]) -> Self {
        let piece = piece.with_notes(notes);
        let mut history = Self::default();
        for (note_idx, note) in piece.notes.iter().enumerate() {
            history.push(piece.degree(note.key), piece.rhythm(note_idx));
        }
        history
    }

    pub(super) fn push(&mut self, degree: i32, rhythm: Rhythm) {
        self.degrees.push(degree);
        self.rhythms.push(rhythm.symbol());
    }

    /// Returns the previous pitches, whether the position is strong, and the mode.
    fn pitch_context(&self, place: Place) -> Vec<i32> {
        let is_strong = place.at.rem_euclid(place.bar) == 0;
        let side =
            i32::from(place.is_minor) * 4 + i32::from(is_strong) * 2 + i32::from(place.is_chord);
        context(&self.degrees, PITCHES, side)
    }

    /// Returns the previous rhythms, and the position in the bar.
    fn rhythm_context(&self, place: Place) -> Vec<i32> {
        let side = place.bar * 4096 + place.at.rem_euclid(place.bar);
        context(&self.rhythms, RHYTHMS, side as i32)
    }
}

/// Returns the last symbols, the nearest last but one, and the side information at the end, so that
/// it is kept longest.
fn context(symbols: &[i32], n_symbols: usize, side: i32) -> Vec<i32> {
    let start = symbols.len().saturating_sub(n_symbols);
    let missing = n_symbols - (symbols.len() - start);
    let beginning = std::iter::repeat_n(BEGINNING, missing.min(1));
    beginning.chain(symbols[start..].iter().copied()).chain([side]).collect()
}

impl Piece {
    /// Returns the semitones from the tonic nearest to middle C.
    pub(super) fn degree(&self, key: u8) -> i32 {
        i32::from(key) - self.tonic_key()
    }

    /// Returns the key of the tonic nearest to middle C.
    pub(super) fn tonic_key(&self) -> i32 {
        60 + (i32::from(self.tonic) + 6) % 12 - 6
    }

    fn place(&self, note_idx: usize) -> Place {
        let at = self.notes[note_idx].at;
        let is_chord = note_idx > 0 && self.notes[note_idx - 1].at == at;
        Place { at, bar: self.bar, is_minor: self.is_minor, is_chord }
    }

    /// Returns the rhythm of a note; the last note of a piece fills its bar.
    fn rhythm(&self, note_idx: usize) -> Rhythm {
        let note = self.notes[note_idx];
        let to_bar = self.bar - note.at.rem_euclid(self.bar);
        let gap = self.notes.get(note_idx + 1).map_or(to_bar, |next| next.at - note.at);
        Rhythm { gap: gap.min(STEPS_MAX), length: note.length.min(STEPS_MAX) }
    }
}

/// Returns the rhythm of a symbol of [`Model::rhythms`].
pub(super) const fn rhythm_of(symbol: i32) -> Rhythm {
    Rhythm::from_symbol(symbol)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ: the tunes that ship with the model can all be played and learned from.
    #[test]
    fn every_tune_is_learned() {
        let parsed = abc::validate(TUNES).unwrap();
        assert!(parsed.is_valid(), "{:?}", parsed.errors().next());
        assert_eq!(PIECES.len(), parsed.book.tunes.len());
        assert!(PIECES.len() >= 25);
        let twinkle = &PIECES[0];
        assert_eq!((twinkle.tonic, twinkle.is_minor, twinkle.bar), (0, false, 4 * STEPS));
    }

    #[test]
    fn a_rhythm_comes_back_from_its_symbol() {
        for gap in [0, 1, 24, STEPS_MAX] {
            for length in [1, 23, STEPS_MAX] {
                let rhythm = Rhythm { gap, length };
                assert_eq!(rhythm_of(rhythm.symbol()), rhythm);
            }
        }
    }
}
