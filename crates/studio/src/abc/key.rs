//! Keys: their signatures and notation.

use super::pitch::{Accidental, Letter, name};

/// The alteration of each letter, in the order of [`Letter::ALL`].
pub(crate) type Signature = [i32; 7];

/// A key as written after `K:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// `K:none`: no signature.
    None,
    /// `K:HP` and `K:Hp`, the Highland bagpipe: F and C sound sharp; `Hp` shows it.
    Pipes {
        /// Whether the signature is written on the staff.
        marked: bool,
    },
    /// A tonic, a mode, and accidentals that change its signature.
    Tonal {
        /// The tonic's letter.
        letter: Letter,
        /// The tonic's own sharp or flat.
        alteration: i32,
        /// The mode.
        mode: Mode,
        /// Whether the accidentals alone make the signature (`exp`).
        explicit: bool,
        /// Accidentals listed one by one.
        accidentals: Vec<(Letter, Accidental)>,
    },
}

/// The modes of ABC. Major is Ionian and minor is Aeolian under the usual names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the variants are their names")]
pub enum Mode {
    Major,
    Minor,
    Ionian,
    Dorian,
    Phrygian,
    Lydian,
    Mixolydian,
    Aeolian,
    Locrian,
}

impl Mode {
    /// Reads a mode: the first three letters count, in any case; `m` is minor.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.to_ascii_lowercase();
        let head: String = text.chars().take(3).collect();
        Some(match head.as_str() {
            "" | "maj" => Self::Major,
            "m" | "min" => Self::Minor,
            "ion" => Self::Ionian,
            "dor" => Self::Dorian,
            "phr" => Self::Phrygian,
            "lyd" => Self::Lydian,
            "mix" => Self::Mixolydian,
            "aeo" => Self::Aeolian,
            "loc" => Self::Locrian,
            _ => return None,
        })
    }

    /// Returns its notation after a tonic.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Major => "",
            Self::Minor => "m",
            Self::Ionian => "ion",
            Self::Dorian => "dor",
            Self::Phrygian => "phr",
            Self::Lydian => "lyd",
            Self::Mixolydian => "mix",
            Self::Aeolian => "aeo",
            Self::Locrian => "loc",
        }
    }

    /// Returns the sharps in addition to major on the same tonic.
    fn fifths(self) -> i32 {
        match self {
            Self::Major | Self::Ionian => 0,
            Self::Minor | Self::Aeolian => -3,
            Self::Dorian => -2,
            Self::Phrygian => -4,
            Self::Lydian => 1,
            Self::Mixolydian => -1,
            Self::Locrian => -5,
        }
    }

    /// Returns whether two modes have the same notes.
    #[must_use]
    pub fn same_notes(self, other: Self) -> bool {
        self.fifths() == other.fifths()
    }
}

impl Key {
    /// Returns C major.
    #[must_use]
    pub fn c_major() -> Self {
        Self::major(Letter::C, 0)
    }

    /// Returns a plain major key.
    #[must_use]
    pub fn major(letter: Letter, alteration: i32) -> Self {
        let accidentals = Vec::new();
        Self::Tonal { letter, alteration, mode: Mode::Major, explicit: false, accidentals }
    }

    /// Returns the sharps of the tonic and mode alone, flats if negative, as in a MIDI file.
    #[must_use]
    pub fn fifths(&self) -> i32 {
        match self {
            Self::None => 0,
            Self::Pipes { .. } => 2,
            Self::Tonal { letter, alteration, mode, .. } => {
                letter.fifths() - 1 + 7 * alteration + mode.fifths()
            }
        }
    }

    /// Returns whether it counts as minor.
    #[must_use]
    pub fn is_minor(&self) -> bool {
        matches!(self, Self::Tonal { mode: Mode::Minor | Mode::Aeolian, .. })
    }

    /// Returns the alteration of each letter.
    #[must_use]
    pub(crate) fn signature(&self) -> Signature {
        let regular = signature_of(self.fifths());
        match self {
            Self::None => [0; 7],
            Self::Pipes { .. } => regular,
            Self::Tonal { explicit, accidentals, .. } => {
                let mut signature = if *explicit { [0; 7] } else { regular };
                for (letter, accidental) in accidentals {
                    signature[letter.index()] = accidental.alteration();
                }
                signature
            }
        }
    }

    /// Returns its notation after `K:`.
    #[must_use]
    pub fn abc(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::Pipes { marked } => if *marked { "Hp" } else { "HP" }.to_owned(),
            Self::Tonal { letter, alteration, mode, explicit, accidentals } => {
                let mut text = name(*letter, *alteration) + mode.suffix();
                if *explicit {
                    text.push_str(" exp");
                }
                for (letter, accidental) in accidentals {
                    let letter = letter.upper().to_ascii_lowercase();
                    text.push_str(&format!(" {}{letter}", accidental.abc()));
                }
                text
            }
        }
    }
}

/// Returns the regular signature with this number of sharps, or flats if negative.
#[must_use]
pub(crate) fn signature_of(fifths: i32) -> Signature {
    Letter::ALL.map(|letter| (fifths + 6 - letter.fifths()).div_euclid(7))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abc::parse::field::key;

    /// Returns the alterations of a key: `f+1 c+1`.
    fn altered(text: &str) -> String {
        let key = key(text).unwrap().key.unwrap();
        let signature = key.signature();
        let altered = Letter::ALL.into_iter().filter(|letter| signature[letter.index()] != 0);
        altered
            .map(|letter| format!("{}{:+}", letter.upper(), signature[letter.index()]))
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// REQ: ABC 2.1 "3.1.14 K: - key": tonics, modes and explicit accidentals.
    #[test]
    fn every_kind_of_key_has_its_signature() {
        for (text, expected) in [
            ("C", ""),
            ("G", "F+1"),
            ("F", "B-1"),
            ("Bbm", "D-1 E-1 G-1 A-1 B-1"),
            ("G#m", "C+1 D+1 F+1 G+1 A+1"),
            ("C#", "C+1 D+1 E+1 F+1 G+1 A+1 B+1"),
            ("D#", "C+1 D+1 E+1 F+2 G+1 A+1 B+1".replace("C+1", "C+2").as_str()),
            ("Ador", "F+1"),
            ("A Dorian", "F+1"),
            ("DMIX", "F+1"),
            ("E phrygian", ""),
            ("F lyd", ""),
            ("B loc", ""),
            ("Amin", ""),
            ("Aaeolian", ""),
            ("C ionian", ""),
            ("none", ""),
            ("", ""),
            ("HP", "C+1 F+1"),
            ("D exp _b _e ^f", "E-1 F+1 B-1"),
            ("D phr ^f", "E-1 F+1 B-1"),
            ("D maj =c", "F+1"),
        ] {
            assert_eq!(altered(text), expected, "K:{text}");
        }
    }

    /// Rule: a key reads back as it is written.
    #[test]
    fn a_key_reads_back() {
        for text in ["G", "Bbm", "F#dor", "none", "HP", "Hp", "D exp _b _e ^f", "Dphr ^f"] {
            let parsed = key(text).unwrap().key.unwrap();
            assert_eq!(key(&parsed.abc()).unwrap().key.unwrap(), parsed, "K:{text}");
        }
    }
}
