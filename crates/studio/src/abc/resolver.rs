//! The pitch of a written note: the key's signature, accidentals earlier in the bar, ties.

use super::key::Signature;
use super::model::Field;
use super::pitch::Pitch;

/// Octaves from -6 to 7.
const OCTAVES: usize = 14;

/// The scope of an accidental.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Reach {
    /// Only its own note.
    Note,
    /// The same note in the same octave, up to the bar line.
    Octave,
    /// The same letter in every octave, up to the bar line, as in ABC 2.1 (11.3).
    #[default]
    Letter,
}

impl Reach {
    /// Reads `%%propagate-accidentals`.
    pub(super) fn from_field(field: &Field) -> Option<Self> {
        let Field::Directive(text) = field else { return None };
        match text.strip_prefix("propagate-accidentals")?.trim() {
            "not" => Some(Self::Note),
            "octave" => Some(Self::Octave),
            "pitch" => Some(Self::Letter),
            _ => None,
        }
    }
}

/// Tracks the accidentals of a voice.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    signature: Signature,
    reach: Reach,
    /// The accidentals of this bar, by letter and octave.
    bar: [[Option<i8>; OCTAVES]; 7],
    /// The notes that the next ones may be tied to.
    tied: Vec<(Pitch, i32)>,
    /// Those of the sound that is being read.
    tying: Vec<(Pitch, i32)>,
}

impl Resolver {
    pub(super) fn new(signature: Signature, reach: Reach) -> Self {
        Self { signature, reach, bar: [[None; OCTAVES]; 7], tied: Vec::new(), tying: Vec::new() }
    }

    pub(super) fn set_signature(&mut self, signature: Signature) {
        self.signature = signature;
        self.bar = [[None; OCTAVES]; 7];
    }

    pub(super) fn set_reach(&mut self, reach: Reach) {
        self.reach = reach;
    }

    /// Ends accidentals; ties go on.
    pub(super) fn bar_line(&mut self) {
        self.bar = [[None; OCTAVES]; 7];
    }

    /// Returns the alteration of a note without accidental here.
    pub(super) fn plain(&self, pitch: &Pitch) -> i32 {
        let tied = self
            .tied
            .iter()
            .find(|(tied, _)| tied.letter == pitch.letter && tied.octave == pitch.octave);
        if let Some((_, alteration)) = tied {
            return *alteration;
        }
        let letter = pitch.letter.index();
        self.bar[letter][octave_index(pitch)].map_or(self.signature[letter], i32::from)
    }

    /// Returns the alteration of a note, and applies its accidental to the rest of the bar.
    pub(super) fn alteration(&mut self, pitch: &Pitch) -> i32 {
        let Some(accidental) = pitch.accidental else { return self.plain(pitch) };
        let alteration = accidental.alteration();
        let held = Some(alteration as i8);
        let octaves = &mut self.bar[pitch.letter.index()];
        match self.reach {
            Reach::Note => {}
            Reach::Octave => octaves[octave_index(pitch)] = held,
            Reach::Letter => *octaves = [held; OCTAVES],
        }
        alteration
    }

    /// Sets the last notes that are tied to the next.
    pub(super) fn tie(&mut self, tied: impl Iterator<Item = (Pitch, i32)>) {
        self.tied.clear();
        self.tied.extend(tied);
    }

    /// Returns the alteration of the next note of a sound. Ties count from the next sound on.
    pub(super) fn next_note(&mut self, pitch: &Pitch, tie: bool) -> i32 {
        let alteration = self.alteration(pitch);
        if tie {
            self.tying.push((*pitch, alteration));
        }
        alteration
    }

    /// Ends a sound after all of its notes.
    pub(super) fn end_sound(&mut self) {
        std::mem::swap(&mut self.tied, &mut self.tying);
        self.tying.clear();
    }

    /// Returns the alteration of each note of a note or chord.
    pub(super) fn sound(&mut self, notes: &[(Pitch, bool)]) -> Vec<i32> {
        let alterations = notes.iter().map(|(pitch, tie)| self.next_note(pitch, *tie)).collect();
        self.end_sound();
        alterations
    }
}

fn octave_index(pitch: &Pitch) -> usize {
    (pitch.octave + 6).clamp(0, OCTAVES as i32 - 1) as usize
}
