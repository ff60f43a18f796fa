//! Which pitch a written note has: the key's signature, accidentals earlier in the bar, ties.

use super::key::Signature;
use super::model::Field;
use super::pitch::Pitch;

/// Octaves from -6 to 7.
const OCTAVES: usize = 14;

/// How far an accidental reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Reach {
    /// Only its own note.
    Note,
    /// The same note in the same octave, up to the bar line.
    Octave,
    /// The same letter in every octave, up to the bar line: what ABC 2.1 says (11.3).
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

/// Follows the accidentals of a voice.
#[derive(Debug, Clone)]
pub(super) struct Resolver {
    signature: Signature,
    reach: Reach,
    /// What accidentals of this bar say, by letter and octave.
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

    /// Accidentals end here; ties go on.
    pub(super) fn bar_line(&mut self) {
        self.bar = [[None; OCTAVES]; 7];
    }

    /// What a note without accidental is altered by here.
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

    /// What a note is altered by, and what its accidental means for the rest of the bar.
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

    /// The notes that sounded last, if they are tied to what comes.
    pub(super) fn tie(&mut self, tied: impl Iterator<Item = (Pitch, i32)>) {
        self.tied.clear();
        self.tied.extend(tied);
    }

    /// The next note of a sound: what it is altered by. Ties count from the next sound on.
    pub(super) fn next_note(&mut self, pitch: &Pitch, tie: bool) -> i32 {
        let alteration = self.alteration(pitch);
        if tie {
            self.tying.push((*pitch, alteration));
        }
        alteration
    }

    /// All notes of a sound have been read.
    pub(super) fn end_sound(&mut self) {
        std::mem::swap(&mut self.tied, &mut self.tying);
        self.tying.clear();
    }

    /// A note or a chord: what each of its notes is altered by.
    pub(super) fn sound(&mut self, notes: &[(Pitch, bool)]) -> Vec<i32> {
        let alterations = notes.iter().map(|(pitch, tie)| self.next_note(pitch, *tie)).collect();
        self.end_sound();
        alterations
    }
}

fn octave_index(pitch: &Pitch) -> usize {
    (pitch.octave + 6).clamp(0, OCTAVES as i32 - 1) as usize
}
