//! Letters, accidentals and pitches as written.

/// A note's name without accidental or octave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the variants are their names")]
pub enum Letter {
    C,
    D,
    E,
    F,
    G,
    A,
    B,
}

impl Letter {
    /// All of them, upwards from C.
    pub const ALL: [Self; 7] = [Self::C, Self::D, Self::E, Self::F, Self::G, Self::A, Self::B];

    /// Reads an upper case letter.
    #[must_use]
    pub fn from_upper(c: char) -> Option<Self> {
        Some(match c {
            'C' => Self::C,
            'D' => Self::D,
            'E' => Self::E,
            'F' => Self::F,
            'G' => Self::G,
            'A' => Self::A,
            'B' => Self::B,
            _ => return None,
        })
    }

    /// Returns the upper case letter.
    #[must_use]
    pub fn upper(self) -> char {
        ['C', 'D', 'E', 'F', 'G', 'A', 'B'][self.index()]
    }

    /// Returns its position in the octave, from 0 for C.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Returns the semitones above C, without accidental.
    #[must_use]
    pub fn semitones(self) -> i32 {
        [0, 2, 4, 5, 7, 9, 11][self.index()]
    }

    /// Returns its position in the circle of fifths, from 0 for F to 6 for B.
    #[must_use]
    pub fn fifths(self) -> i32 {
        [1, 3, 5, 0, 2, 4, 6][self.index()]
    }

    /// Returns the letter this many steps up, and how many octaves that crosses.
    #[must_use]
    pub fn shifted(self, steps: i32) -> (Self, i32) {
        let step = self.index() as i32 + steps;
        (Self::ALL[step.rem_euclid(7) as usize], step.div_euclid(7))
    }
}

/// An accidental before a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the variants are their names")]
pub enum Accidental {
    DoubleFlat,
    Flat,
    Natural,
    Sharp,
    DoubleSharp,
}

impl Accidental {
    const ALL: [Self; 5] =
        [Self::DoubleFlat, Self::Flat, Self::Natural, Self::Sharp, Self::DoubleSharp];

    /// Returns the semitones up, from -2 to 2.
    #[must_use]
    pub fn alteration(self) -> i32 {
        self as i32 - 2
    }

    /// Returns the accidental for this many semitones; `None` outside -2 to 2.
    #[must_use]
    pub fn from_alteration(alteration: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|accidental| accidental.alteration() == alteration)
    }

    /// Returns its ABC notation.
    #[must_use]
    pub fn abc(self) -> &'static str {
        ["__", "_", "=", "^", "^^"][self as usize]
    }
}

/// A pitch as written: the sounding one depends on the key and the bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pitch {
    /// The letter.
    pub letter: Letter,
    /// 0 for the octave of middle C, which ABC writes in upper case.
    pub octave: i32,
    /// The accidental before it.
    pub accidental: Option<Accidental>,
}

impl Pitch {
    /// Returns the MIDI key if the letter is altered by this many semitones; `None` outside 0 to
    /// 127.
    #[must_use]
    pub fn midi(&self, alteration: i32) -> i32 {
        60 + 12 * self.octave + self.letter.semitones() + alteration
    }
}

/// Returns the notation of a letter with an alteration in a key or a chord symbol: `F#`, `Bb`.
#[must_use]
pub(crate) fn name(letter: Letter, alteration: i32) -> String {
    let sign = if alteration < 0 { "b" } else { "#" };
    format!("{}{}", letter.upper(), sign.repeat(alteration.unsigned_abs() as usize))
}
