//! Chord symbols: `Am7`, `C/E`, `F#dim`.

use super::super::pitch::{Letter, name};

/// The lowest keys for the roots of chords.
const CHORD_BASE: i32 = 48;
/// And for the bass.
const BASS_BASE: i32 = 36;

/// Kinds of chords and their notes above the root; the longest matching name counts.
const KINDS: &[(&str, &[i32])] = &[
    ("", &[0, 4, 7]),
    ("maj", &[0, 4, 7]),
    ("M", &[0, 4, 7]),
    ("m", &[0, 3, 7]),
    ("min", &[0, 3, 7]),
    ("-", &[0, 3, 7]),
    ("5", &[0, 7]),
    ("6", &[0, 4, 7, 9]),
    ("m6", &[0, 3, 7, 9]),
    ("7", &[0, 4, 7, 10]),
    ("m7", &[0, 3, 7, 10]),
    ("min7", &[0, 3, 7, 10]),
    ("maj7", &[0, 4, 7, 11]),
    ("M7", &[0, 4, 7, 11]),
    ("mM7", &[0, 3, 7, 11]),
    ("m7b5", &[0, 3, 6, 10]),
    ("7sus4", &[0, 5, 7, 10]),
    ("sus", &[0, 5, 7]),
    ("sus4", &[0, 5, 7]),
    ("sus2", &[0, 2, 7]),
    ("sus9", &[0, 2, 7]),
    ("dim", &[0, 3, 6]),
    ("dim7", &[0, 3, 6, 9]),
    ("o", &[0, 3, 6]),
    ("aug", &[0, 4, 8]),
    ("+", &[0, 4, 8]),
    ("aug7", &[0, 4, 8, 10]),
    ("7+", &[0, 4, 8, 10]),
    ("9", &[0, 4, 7, 10, 14]),
    ("m9", &[0, 3, 7, 10, 14]),
    ("maj9", &[0, 4, 7, 11, 14]),
    ("add9", &[0, 4, 7, 14]),
    ("11", &[0, 4, 7, 10, 14, 17]),
    ("13", &[0, 4, 7, 10, 14, 21]),
];

/// A playable chord.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChordSymbol {
    /// Semitones above C.
    root: i32,
    /// Semitones above C, if the bass is another note.
    bass: Option<i32>,
    intervals: &'static [i32],
}

impl ChordSymbol {
    /// Reads a symbol; `None` if it is not a chord, such as `N.C.`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (root, rest) = root(text)?;
        let (kind, bass) = match rest.split_once('/') {
            Some((kind, bass)) => (kind, root_of(bass)),
            None => (rest, None),
        };
        let kind = kind.trim_matches(['(', ')', ' ']);
        let intervals = KINDS
            .iter()
            .filter(|(known, _)| kind.starts_with(known))
            .max_by_key(|(known, _)| known.len())
            .map(|(_, intervals)| *intervals)?;
        Some(Self { root: semitones(root), bass: bass.map(semitones), intervals })
    }

    /// Returns the key of the bass.
    pub(crate) fn bass(&self) -> i32 {
        BASS_BASE + self.bass.unwrap_or(self.root)
    }

    /// Returns the keys of the chord, upwards; with another bass they are inverted to lie above it.
    pub(crate) fn keys(&self) -> Vec<i32> {
        let base = CHORD_BASE + self.root;
        let lowest = self.bass.map_or(base, |bass| CHORD_BASE + bass);
        let mut keys: Vec<i32> = self
            .intervals
            .iter()
            .map(|interval| base + interval)
            .map(|key| if key < lowest { key + 12 } else { key })
            .collect();
        keys.sort_unstable();
        keys
    }
}

/// Returns the symbol with its root and bass transposed; `None` if it is not a chord.
pub(crate) fn transpose_symbol(
    text: &str,
    shift: impl Fn(Letter, i32) -> (Letter, i32),
) -> Option<String> {
    let ((letter, alteration), rest) = root(text)?;
    let moved = |(letter, alteration)| {
        let (letter, alteration) = shift(letter, alteration);
        name(letter, alteration)
    };
    let root_text = moved((letter, alteration));
    Some(
        match rest.rsplit_once('/').and_then(|(kind, bass)| root(bass).map(|found| (kind, found))) {
            Some((kind, (bass, after))) => format!("{root_text}{kind}/{}{after}", moved(bass)),
            None => format!("{root_text}{rest}"),
        },
    )
}

/// Returns a letter with its sharps or flats, and the remaining text.
fn root(text: &str) -> Option<((Letter, i32), &str)> {
    let letter = Letter::from_upper(text.chars().next()?)?;
    let rest = &text[1..];
    let (alteration, rest) = match rest.chars().next() {
        Some('#') => (1, &rest[1..]),
        Some('b') => (-1, &rest[1..]),
        _ => (0, rest),
    };
    Some(((letter, alteration), rest))
}

/// Returns a bass note; both cases are in use.
fn root_of(text: &str) -> Option<(Letter, i32)> {
    let mut chars = text.trim().chars();
    let first = chars.next()?.to_ascii_uppercase();
    root(&format!("{first}{}", chars.as_str())).map(|(found, _)| found)
}

fn semitones((letter, alteration): (Letter, i32)) -> i32 {
    (letter.semitones() + alteration).rem_euclid(12)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// REQ: ABC 2.1 "4.18 Chord symbols".
    #[test]
    fn symbols_are_chords() {
        for (text, bass, keys) in [
            ("C", 36, vec![48, 52, 55]),
            ("Am", 45, vec![57, 60, 64]),
            ("G7/B", 47, vec![59, 62, 65, 67]),
            ("F#m7b5", 42, vec![54, 57, 60, 64]),
            ("Bb", 46, vec![58, 62, 65]),
            ("E+", 40, vec![52, 56, 60]),
            ("Cmaj7", 36, vec![48, 52, 55, 59]),
        ] {
            let symbol = ChordSymbol::parse(text).unwrap();
            assert_eq!((symbol.bass(), symbol.keys()), (bass, keys), "{text}");
        }
        assert_eq!(ChordSymbol::parse("N.C."), None);
        assert_eq!(ChordSymbol::parse(""), None);
    }
}
