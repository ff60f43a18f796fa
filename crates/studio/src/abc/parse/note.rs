//! Notes, rests, chords and grace notes.

use super::super::model::{Chord, Element, Fraction, Note, Place};
use super::super::pitch::{Accidental, Letter, Pitch};
use super::cursor::Cursor;
use super::music::Music;

/// Octaves further away do not exist in MIDI.
const OCTAVE_MAX: i32 = 6;
/// The most notes in a chord or a group of grace notes.
const NOTES_MAX: usize = 64;

const HELP_LENGTH: &str = "a length is a number or a fraction such as `2`, `/2` or `3/2`";

/// Returns whether a note can start here.
pub(super) fn starts_note(cursor: &Cursor<'_>) -> bool {
    let mut ahead = 0;
    while matches!(cursor.peek_at(ahead), Some('^' | '_' | '=')) {
        ahead += 1;
    }
    cursor.peek_at(ahead).is_some_and(|c| matches!(c, 'A'..='G' | 'a'..='g'))
}

impl Music<'_> {
    /// Reads a note with its length and tie; the cursor is at its first character.
    pub(super) fn note(&mut self) -> Option<Note> {
        let accidental = self.accidental();
        let letter = self.cursor.next()?;
        let lower = letter.is_ascii_lowercase();
        let octave = self.octave(i32::from(lower));
        let letter = Letter::from_upper(letter.to_ascii_uppercase())?;
        let length = self.length();
        let tie = self.tie();
        Some(Note { pitch: Pitch { letter, octave, accidental }, length, tie, marks: Vec::new() })
    }

    fn accidental(&mut self) -> Option<Accidental> {
        let at = self.cursor.place();
        let mark = self.cursor.peek().filter(|c| matches!(c, '^' | '_' | '='))?;
        let n = self.cursor.count(mark);
        let rest = matches!(self.cursor.peek(), Some('^' | '_' | '='));
        let accidental = match (mark, n) {
            ('^', 1) => Accidental::Sharp,
            ('^', 2) => Accidental::DoubleSharp,
            ('_', 1) => Accidental::Flat,
            ('_', 2) => Accidental::DoubleFlat,
            ('=', 1) => Accidental::Natural,
            _ => {
                self.error(at, "no such accidental", "use one of ^ ^^ = _ __ before a note");
                return None;
            }
        };
        if rest {
            self.error(at, "two accidentals before one note", "use one of ^ ^^ = _ __");
            while matches!(self.cursor.peek(), Some('^' | '_' | '=')) {
                self.cursor.next();
            }
        }
        Some(accidental)
    }

    fn octave(&mut self, start: i32) -> i32 {
        let at = self.cursor.place();
        let mut octave = start;
        while let Some(mark @ ('\'' | ',')) = self.cursor.peek() {
            self.cursor.next();
            octave = octave.saturating_add(if mark == ',' { -1 } else { 1 });
        }
        if octave.abs() > OCTAVE_MAX {
            self.error(at, "a note beyond the range of MIDI", "use fewer octave marks");
        }
        octave.clamp(-OCTAVE_MAX, OCTAVE_MAX)
    }

    /// Reads a length; an invalid one is 1 and an error.
    pub(super) fn length(&mut self) -> Fraction {
        let at = self.cursor.place();
        self.cursor.length().unwrap_or_else(|()| {
            self.error(at, "a length of 0", HELP_LENGTH);
            Fraction::from_integer(1)
        })
    }

    /// Reads a tie, which may be dotted.
    fn tie(&mut self) -> bool {
        if self.cursor.peek() == Some('.') && self.cursor.peek_at(1) == Some('-') {
            self.cursor.next();
        }
        self.cursor.take('-')
    }

    /// Reads `[CEG]2-`; the cursor is after the bracket.
    pub(super) fn chord(&mut self, at: Place) {
        let mut notes: Vec<Note> = Vec::new();
        let mut marks = Vec::new();
        loop {
            let here = self.cursor.place();
            match self.cursor.peek() {
                None => {
                    self.error(at, "a chord is not closed", "close it with `]`, as in `[CEG]`");
                    break;
                }
                Some(']') => {
                    self.cursor.next();
                    break;
                }
                Some(_) if starts_note(&self.cursor) => {
                    let note = self.note();
                    let note = note.map(|note| Note { marks: std::mem::take(&mut marks), ..note });
                    notes.extend(note.filter(|_| notes.len() < NOTES_MAX));
                }
                Some('!') => {
                    self.cursor.next();
                    marks.extend(self.cursor.until('!'));
                }
                Some('"') => {
                    self.cursor.next();
                    if let Some(text) = self.cursor.until('"') {
                        self.push(here, Element::Quoted(text));
                    }
                }
                // Slurs and beams inside a chord do not affect its sound.
                Some(' ' | '(' | ')' | '.' | '-') => {
                    self.cursor.next();
                }
                Some('|') => {
                    self.error(at, "a chord is not closed", "close it with `]`, as in `[CEG]`");
                    break;
                }
                Some(c) => {
                    self.cursor.next();
                    self.error(
                        here,
                        format!("`{c}` cannot stand in a chord"),
                        "a chord has notes only, as in `[CEG]`",
                    );
                }
            }
        }
        let length = self.length();
        let tie = self.tie();
        if notes.is_empty() {
            self.error(at, "a chord without notes", "write notes between the brackets: `[CEG]`");
        } else {
            self.push(at, Element::Chord(Chord { notes, length, tie }));
        }
    }

    /// Reads `{gab}`; the cursor is after the brace.
    pub(super) fn grace(&mut self, at: Place) {
        let slash = self.cursor.take('/');
        let mut notes = Vec::new();
        loop {
            let here = self.cursor.place();
            match self.cursor.peek() {
                None => {
                    self.error(at, "grace notes are not closed", "close them with `}`: `{ga}`");
                    break;
                }
                Some('}') => {
                    self.cursor.next();
                    break;
                }
                Some(_) if starts_note(&self.cursor) => {
                    let note = self.note();
                    notes.extend(note.filter(|_| notes.len() < NOTES_MAX));
                }
                // Slurs, beams, chords and broken rhythm do not change such short notes.
                Some(' ' | '(' | ')' | '[' | ']' | '-' | '>' | '<' | '~' | '.') => {
                    self.cursor.next();
                }
                Some(c) => {
                    self.cursor.next();
                    self.error(
                        here,
                        format!("`{c}` cannot stand among grace notes"),
                        "braces hold notes only, as in `{ga}`",
                    );
                }
            }
        }
        if !notes.is_empty() {
            self.push(at, Element::Grace { slash, notes });
        }
    }
}
