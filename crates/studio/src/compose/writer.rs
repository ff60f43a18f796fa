//! Writes music note by note, according to the model.

use rand::rngs::Xoshiro256PlusPlus;

use super::model::{History, Model, Place, Rhythm, rhythm_of};
use super::piece::{Note, Piece, STEPS};
use super::predictor::draw;
use super::{CompositionStopped, Settings};

/// The most additional notes until the music returns to the tonic.
const CADENCE_NOTES_MAX: usize = 24;
/// Notes between two checks whether to stop.
const NOTES_BETWEEN_LOOKS: usize = 64;
/// The most notes of one chord; a model that has only seen chords would never advance.
const CHORD_NOTES_MAX: usize = 6;
/// How far a pitch may go beyond the range of the given piece.
const RANGE_MORE: u8 = 5;
/// The approximate number of notes in a bar, to choose the number of bars of a loop.
const NOTES_PER_BAR: usize = 6;
/// The most bars of a loop.
const LOOP_BARS_MAX: i64 = 8;
/// The number of notes at the start of the next piece that must fit.
const JOINT_NOTES: usize = 4;
/// The velocity added to the first note of a bar, and of a beat.
const ACCENTS: (u8, u8) = (10, 5);

/// New notes.
#[derive(Debug, Clone)]
pub(super) struct Phrase {
    pub(super) notes: Vec<Note>,
    /// The end of the music.
    pub(super) end: i64,
    history: History,
}

/// Writes music.
pub(super) struct Writer<'a> {
    pub(super) model: &'a Model,
    pub(super) settings: Settings,
    /// The piece whose key, meter, range and loudness are kept.
    pub(super) frame: &'a Piece,
    pub(super) rng: &'a mut Xoshiro256PlusPlus,
    pub(super) go_on: &'a dyn Fn() -> bool,
}

impl Writer<'_> {
    /// Writes a phrase after earlier notes. With `comes_home` it ends on the tonic at the end of a
    /// bar. `hear` gets the notes so far now and then, and where the next one starts.
    pub(super) fn phrase(
        &mut self,
        before: &[Note],
        comes_home: bool,
        hear: &dyn Fn(&[Note], i64),
    ) -> Result<Phrase, CompositionStopped> {
        let mut phrase = self.start(before);
        let n_notes = self.settings.n_notes;
        let n_notes_max = if comes_home { n_notes + CADENCE_NOTES_MAX } else { n_notes };
        while phrase.notes.len() < n_notes_max {
            let rhythm = self.note(&mut phrase)?;
            if phrase.notes.len().is_multiple_of(NOTES_BETWEEN_LOOKS) {
                hear(&phrase.notes, phrase.end);
            }
            let ends_bar = phrase.end.rem_euclid(self.frame.bar) == 0;
            if phrase.notes.len() >= n_notes && ends_bar && rhythm.gap > 0 && self.is_home(&phrase)
            {
                break;
            }
        }
        self.close(&mut phrase, comes_home);
        Ok(phrase)
    }

    /// Writes whole bars; the last note ends with the last bar.
    pub(super) fn round(&mut self) -> Result<Phrase, CompositionStopped> {
        let bars_wanted = self.settings.n_notes.div_ceil(NOTES_PER_BAR).next_power_of_two();
        let bars = i64::try_from(bars_wanted).unwrap_or(LOOP_BARS_MAX).clamp(1, LOOP_BARS_MAX);
        let length = bars * self.frame.bar;
        let mut phrase = self.start(&[]);
        while phrase.end < length && phrase.notes.len() < super::NOTES_MAX {
            self.note(&mut phrase)?;
        }
        phrase.notes.retain(|note| note.at < length);
        for note in &mut phrase.notes {
            note.length = note.length.min(length - note.at);
        }
        phrase.end = length;
        Ok(phrase)
    }

    /// Returns how likely a piece is to follow.
    pub(super) fn joins(&self, phrase: &Phrase, next: &Piece) -> f64 {
        let notes = &next.notes[..next.notes.len().min(JOINT_NOTES)];
        self.model.joins(&phrase.history, next, notes)
    }

    /// Returns an empty phrase that starts where the last note leads to.
    fn start(&self, before: &[Note]) -> Phrase {
        let history = History::of(self.frame, before);
        let end = before.iter().map(|note| note.at + note.length).max().unwrap_or(0);
        let bar = self.frame.bar;
        // Old music that ends within a bar fills it; new music starts with a bar.
        let end = (end + bar - 1).div_euclid(bar) * bar;
        Phrase { notes: Vec::new(), end, history }
    }

    /// Writes a note at the end of the phrase and moves the end.
    fn note(&mut self, phrase: &mut Phrase) -> Result<Rhythm, CompositionStopped> {
        if phrase.notes.len().is_multiple_of(NOTES_BETWEEN_LOOKS) && !(self.go_on)() {
            return Err(CompositionStopped);
        }
        let at = phrase.end;
        let n_together = phrase.notes.iter().rev().take_while(|note| note.at == at).count();
        let Piece { bar, is_minor, .. } = *self.frame;
        let place = Place { at, bar, is_minor, is_chord: n_together > 0 };
        let Settings { temperature, top_p, .. } = self.settings;
        let degrees = self.model.degrees(&phrase.history, place);
        let degree = draw(&degrees, temperature, top_p, self.rng).unwrap_or(0);
        let rhythms = self.model.rhythms(&phrase.history, place);
        let drawn = draw(&rhythms, temperature, top_p, self.rng);
        let mut rhythm = drawn.map_or(Rhythm { gap: STEPS, length: STEPS }, rhythm_of);
        if rhythm.gap == 0 && n_together + 1 >= CHORD_NOTES_MAX {
            rhythm.gap = rhythm.length.max(1);
        }
        let key = self.key(degree);
        phrase.history.push(degree, rhythm);
        let is_doubled =
            phrase.notes.iter().rev().take(n_together).any(|together| together.key == key);
        if !is_doubled {
            let length = rhythm.length.max(1);
            phrase.notes.push(Note { at, length, key, velocity: self.velocity(at) });
        } else if rhythm.gap == 0 {
            // The same key again at the same time is not a note, and time must advance.
            rhythm.gap = rhythm.length.max(1);
        }
        phrase.end += rhythm.gap;
        Ok(rhythm)
    }

    /// Returns the key of a degree, within the range of the given piece.
    fn key(&self, degree: i32) -> u8 {
        let keys = || self.frame.notes.iter().map(|note| note.key);
        let low = i32::from(keys().min().unwrap_or(60).saturating_sub(RANGE_MORE));
        let high = i32::from(keys().max().unwrap_or(72).saturating_add(RANGE_MORE).min(127));
        let mut key = self.frame.tonic_key() + degree;
        while key < low && key + 12 <= high {
            key += 12;
        }
        while key > high && key - 12 >= low {
            key -= 12;
        }
        key.clamp(0, 127) as u8
    }

    fn velocity(&self, at: i64) -> u8 {
        let accent = match at.rem_euclid(self.frame.bar) {
            0 => ACCENTS.0,
            within if within % STEPS == 0 => ACCENTS.1,
            _ => 0,
        };
        let usual = self.frame.velocity().clamp(1, 127);
        usual.saturating_add(accent).min(127)
    }

    fn is_home(&self, phrase: &Phrase) -> bool {
        phrase.notes.last().is_some_and(|last| last.key % 12 == self.frame.tonic)
    }

    /// Fills the bar; with `comes_home` it ends on the nearest tonic.
    fn close(&self, phrase: &mut Phrase, comes_home: bool) {
        let bar = self.frame.bar;
        phrase.end = (phrase.end + bar - 1).div_euclid(bar) * bar;
        let tonic = i32::from(self.frame.tonic);
        let end = phrase.end;
        let Some(last) = phrase.notes.last_mut() else { return };
        if comes_home {
            let away = (i32::from(last.key) - tonic).rem_euclid(12);
            let home = i32::from(last.key) - if away > 6 { away - 12 } else { away };
            last.key = u8::try_from(home.clamp(0, 127)).unwrap_or(last.key);
            last.length = (end - last.at).clamp(1, bar);
        }
        for note in &mut phrase.notes {
            note.length = note.length.min(end - note.at).max(1);
        }
    }
}
