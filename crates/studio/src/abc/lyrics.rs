//! Lines of text aligned with notes: lyrics (`w:`) and symbols (`s:`).

use super::text::unescape;

/// An entry of a line of lyrics, for the next note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Syllable {
    /// A syllable on the note.
    Sung(String),
    /// The note has no syllable of its own: `_`, `*`, and the second of two hyphens.
    Held,
    /// The rest waits for the next bar.
    Bar,
}

/// Returns the syllables of a line of lyrics.
pub(super) fn syllables(text: &str) -> Vec<Syllable> {
    let mut syllables = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'-') => word.extend(chars.next()),
            '\\' => {
                word.push(c);
                word.extend(chars.next());
            }
            '-' => {
                if word.is_empty() {
                    syllables.push(Syllable::Held);
                } else {
                    word.push('-');
                    close(&mut word, &mut syllables);
                }
            }
            '_' | '*' => {
                close(&mut word, &mut syllables);
                syllables.push(Syllable::Held);
            }
            '|' => {
                close(&mut word, &mut syllables);
                syllables.push(Syllable::Bar);
            }
            '~' => word.push(' '),
            c if c.is_whitespace() => close(&mut word, &mut syllables),
            c => word.push(c),
        }
    }
    close(&mut word, &mut syllables);
    syllables
}

fn close(word: &mut String, syllables: &mut Vec<Syllable>) {
    if !word.is_empty() {
        syllables.push(Syllable::Sung(unescape(word)));
        word.clear();
    }
}

/// Returns the entries of a line of symbols.
pub(super) fn symbols(text: &str) -> Vec<Syllable> {
    let mut symbols = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (symbol, n_bytes) = match first {
            '|' => (Syllable::Bar, 1),
            '*' => (Syllable::Held, 1),
            '!' | '"' => {
                let end = rest[1..].find(first).map_or(rest.len(), |at| at + 2);
                (Syllable::Sung(rest[..end].to_owned()), end)
            }
            c => {
                let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
                (Syllable::Held, end.max(c.len_utf8()))
            }
        };
        symbols.push(symbol);
        rest = rest[n_bytes..].trim_start();
    }
    symbols
}

/// A place in a line of music that lyrics are aligned with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// A note or a chord, by its number.
    Note(usize),
    /// A bar line.
    Bar,
}

/// Aligns syllables with a line of music; returns the note of each that is sung, and the number of
/// those without a note.
pub(super) fn align(slots: &[Slot], syllables: &[Syllable]) -> (Vec<(usize, String)>, usize) {
    let mut sung = Vec::new();
    let mut n_left = 0;
    let mut slot_idx = 0;
    for syllable in syllables {
        if *syllable == Syllable::Bar {
            let ahead = slots[slot_idx..].iter().position(|slot| *slot == Slot::Bar);
            slot_idx = ahead.map_or(slots.len(), |ahead| slot_idx + ahead + 1);
            continue;
        }
        let note = slots[slot_idx..].iter().enumerate().find_map(|(ahead, slot)| match slot {
            Slot::Note(note) => Some((ahead, *note)),
            Slot::Bar => None,
        });
        match (note, syllable) {
            (Some((ahead, note)), Syllable::Sung(text)) => {
                sung.push((note, text.clone()));
                slot_idx += ahead + 1;
            }
            (Some((ahead, _)), Syllable::Held | Syllable::Bar) => slot_idx += ahead + 1,
            (None, Syllable::Sung(_)) => {
                n_left += 1;
                slot_idx = slots.len();
            }
            (None, Syllable::Held | Syllable::Bar) => slot_idx = slots.len(),
        }
    }
    (sung, n_left)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn aligned(music: &str, text: &str) -> String {
        let mut n = 0;
        let slots: Vec<_> = music
            .chars()
            .map(|c| {
                if c == '|' {
                    return Slot::Bar;
                }
                n += 1;
                Slot::Note(n - 1)
            })
            .collect();
        let (sung, _) = align(&slots, &syllables(text));
        let mut notes = vec!["."; n];
        for (note, text) in &sung {
            notes[*note] = text;
        }
        notes.join("/")
    }

    /// REQ: ABC 2.1 "5.1 Alignment".
    #[test]
    fn syllables_find_their_notes() {
        for (music, text, expected) in [
            ("CDEF", "syll-a-ble is", "syll-/a-/ble/is"),
            ("CDEF", "time__ on", "time/././on"),
            ("CDEF", "of~the day", "of the/day/./."),
            ("CDEF", "* a * b", "./a/./b"),
            ("CD|EF|", "a|b", "a/./b/."),
            ("CDE", r"one\-two x", "one-two/x/."),
            ("CDEF", "ah--ha x", "ah-/./ha/x"),
        ] {
            assert_eq!(aligned(music, text), expected, "{text}");
        }
    }
}
