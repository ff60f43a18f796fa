//! The information fields: from the text after the colon to a [`Field`].

use super::super::key::{Key, Mode};
use super::super::midi_command::MidiCommand;
use super::super::model::{Field, Fraction, KeyField, Meter, Properties, Tempo, VoiceField};
use super::super::pitch::{Accidental, Letter};

/// What is wrong with a field, and how to fix it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    pub(crate) help: &'static str,
}

fn problem(message: impl Into<String>, help: &'static str) -> Problem {
    Problem { message: message.into(), help }
}

const HELP_METER: &str = "a meter is `C`, `C|`, `none` or numbers such as `4/4`, `6/8`, `(2+3)/8`";
const HELP_LENGTH: &str = "a unit length is a fraction such as `1/8`";
const HELP_TEMPO: &str =
    "a tempo is a beat and a number, as in `1/4=120`, with a name in quotes if you like";
const HELP_KEY: &str =
    "a key is a tonic and a mode, as in `G`, `Bbm`, `A dor`, `D exp _b ^f`, or `none`";

/// The largest denominator of a fraction.
const DENOMINATOR_MAX: i64 = 512;

/// Clefs that may be written without `clef=`.
const CLEFS: &[&str] =
    &["treble", "alto", "tenor", "bass", "perc", "soprano", "mezzosoprano", "baritone", "none"];

/// Reads a field whose meaning does not depend on its place.
pub(super) fn field(letter: char, text: &str) -> Result<Field, Problem> {
    let text = text.trim();
    Ok(match letter {
        'X' => Field::Reference(reference(text)?),
        'M' => Field::Meter(meter(text)?),
        'L' => Field::UnitLength(unit_length(text)?),
        'Q' => Field::Tempo(tempo(text)?),
        'K' => Field::Key(key(text)?),
        'V' => Field::Voice(voice(text)?),
        'P' => Field::Parts(text.to_owned()),
        'w' => Field::Lyrics(text.to_owned()),
        's' => Field::Symbols(text.to_owned()),
        'I' => directive(text)?,
        letter => Field::Text { letter, text: text.to_owned() },
    })
}

/// Reads the text after `%%` or `I:`.
pub(super) fn directive(text: &str) -> Result<Field, Problem> {
    let text = text.trim();
    match text.strip_prefix("MIDI").filter(|rest| rest.starts_with([' ', '\t', '='])) {
        Some(rest) => {
            let rest = rest.trim_start_matches(['=', ' ', '\t']);
            let command = MidiCommand::parse(rest)
                .map_err(|help| problem(format!("`MIDI {rest}` cannot be understood"), help))?;
            Ok(Field::Midi { text: rest.to_owned(), command })
        }
        None => Ok(Field::Directive(text.to_owned())),
    }
}

fn reference(text: &str) -> Result<u32, Problem> {
    if text.is_empty() {
        return Ok(0);
    }
    text.parse().map_err(|_| problem(format!("`{text}` is not a reference number"), "write `X:1`"))
}

fn meter(text: &str) -> Result<Meter, Problem> {
    match text {
        "" | "none" => return Ok(Meter::Free),
        "C" => return Ok(Meter::Common),
        "C|" => return Ok(Meter::Cut),
        _ => {}
    }
    let wrong = || problem(format!("`{text}` is not a meter"), HELP_METER);
    let (above, below) = text.split_once('/').ok_or_else(wrong)?;
    let above = above.trim().trim_start_matches('(').trim_end_matches(')');
    let number = |text: &str| text.trim().parse::<u32>().ok().filter(|n| (1..=256).contains(n));
    let above: Option<Vec<u32>> = above.split('+').map(number).collect();
    let above = above.filter(|above| above.len() <= 16).ok_or_else(wrong)?;
    let below = number(below).filter(|below| below.is_power_of_two()).ok_or_else(wrong)?;
    Ok(Meter::Beats { above, below })
}

fn unit_length(text: &str) -> Result<Fraction, Problem> {
    let wrong = || problem(format!("`{text}` is not a unit length"), HELP_LENGTH);
    if text == "1" {
        return Ok(Fraction::from_integer(1));
    }
    fraction(text).ok_or_else(wrong)
}

/// `1/4`, within limits.
fn fraction(text: &str) -> Option<Fraction> {
    let (above, below) = text.split_once('/')?;
    let above = above.trim().parse::<i64>().ok().filter(|n| (1..=64).contains(n))?;
    let below = below.trim().parse::<i64>().ok().filter(|n| (1..=DENOMINATOR_MAX).contains(n))?;
    if below & (below - 1) != 0 {
        return None; // note lengths are repeated halves
    }
    Some(Fraction::new(above, below))
}

fn tempo(text: &str) -> Result<Tempo, Problem> {
    let wrong = || problem(format!("`{text}` is not a tempo"), HELP_TEMPO);
    let (rest, name) = take_quoted(text).ok_or_else(wrong)?;
    let rest = rest.trim();
    if rest.is_empty() {
        return Ok(Tempo { text: name, beats: Vec::new(), per_minute: None });
    }
    let (beats, number) = match rest.split_once('=') {
        Some((beats, number)) => (beats.trim(), number.trim()),
        None => ("", rest),
    };
    // Fractions of a beat per minute are inaudible.
    let number = number.split('.').next().unwrap_or_default();
    let per_minute = number.parse::<u32>().ok().filter(|n| (1..=2000).contains(n));
    let beats = beats.split_whitespace().map(beat).collect::<Option<Vec<_>>>().ok_or_else(wrong)?;
    if beats.len() > 8 {
        return Err(wrong());
    }
    let per_minute = Some(per_minute.ok_or_else(wrong)?);
    Ok(Tempo { text: name, beats, per_minute })
}

/// Reads the length of a beat; `C` and `C3`, the unit length and three of them, come from an old
/// ABC and are read as eighths, the usual unit.
fn beat(text: &str) -> Option<Fraction> {
    match text.strip_prefix('C') {
        Some("") => Some(Fraction::new(1, 8)),
        Some(times) => {
            let times = times.parse::<i64>().ok().filter(|n| (1..=64).contains(n))?;
            Some(Fraction::new(times, 8))
        }
        None => fraction(text),
    }
}

/// Extracts a quoted name; `None` if its quote is not closed.
fn take_quoted(text: &str) -> Option<(String, Option<String>)> {
    let Some((before, rest)) = text.split_once('"') else {
        return Some((text.to_owned(), None));
    };
    let (name, after) = rest.split_once('"')?;
    Some((format!("{before} {after}"), Some(name.to_owned())))
}

/// Reads the text after `K:`.
pub(crate) fn key(text: &str) -> Result<KeyField, Problem> {
    let text = text.trim();
    if text.is_empty() || text.eq_ignore_ascii_case("none") {
        return Ok(KeyField { key: Some(Key::None), properties: Properties::default() });
    }
    let mut words = words(text).into_iter().peekable();
    let mut properties = Properties::default();
    let Some((first, None)) = words.peek().cloned() else {
        return clef_only(text, words, properties);
    };
    if clef_of(&first).is_some() && first != "none" {
        return clef_only(text, words, properties);
    }
    words.next();
    let mut key =
        tonic(&first).ok_or_else(|| problem(format!("`{text}` is not a key"), HELP_KEY))?;
    let mut is_first = true;
    for (word, value) in words {
        if let Some(value) = value {
            properties.0.push((word, value));
        } else if let Some(clef) = clef_of(&word) {
            properties.0.push(("clef".to_owned(), clef));
        } else if !change_key(&mut key, &word, is_first) {
            return Err(problem(format!("`{word}` in the key `{text}` is unknown"), HELP_KEY));
        }
        is_first = false;
    }
    Ok(KeyField { key: Some(key), properties })
}

fn clef_only(
    text: &str,
    words: impl Iterator<Item = (String, Option<String>)>,
    mut properties: Properties,
) -> Result<KeyField, Problem> {
    for (word, value) in words {
        match value {
            Some(value) => properties.0.push((word, value)),
            None => match clef_of(&word) {
                Some(clef) => properties.0.push(("clef".to_owned(), clef)),
                None => {
                    return Err(problem(format!("`{word}` in `K:{text}` is unknown"), HELP_KEY));
                }
            },
        }
    }
    Ok(KeyField { key: None, properties })
}

/// Reads a tonic, perhaps with a mode attached.
fn tonic(word: &str) -> Option<Key> {
    match word {
        "HP" => return Some(Key::Pipes { marked: false }),
        "Hp" => return Some(Key::Pipes { marked: true }),
        "none" => return Some(Key::None),
        _ => {}
    }
    let mut chars = word.chars();
    let letter = Letter::from_upper(chars.next()?)?;
    let rest = chars.as_str();
    let (alteration, rest) = match rest.chars().next() {
        Some('#') => (1, &rest[1..]),
        Some('b') => (-1, &rest[1..]),
        _ => (0, rest),
    };
    let (rest, explicit) = match rest.strip_suffix("exp") {
        Some(rest) => (rest, true),
        None => (rest, false),
    };
    let mode = mode(rest)?;
    Some(Key::Tonal { letter, alteration, mode, explicit, accidentals: Vec::new() })
}

/// Reads a mode as a word: `m`, or at least three letters.
fn mode(word: &str) -> Option<Mode> {
    if !word.chars().all(|c| c.is_ascii_alphabetic()) {
        return None;
    }
    Mode::parse(word)
}

/// Adds a word to a key; `false` if the word means nothing there.
fn change_key(key: &mut Key, word: &str, is_first: bool) -> bool {
    let Key::Tonal { mode: known, explicit, accidentals, .. } = key else { return false };
    if word == "exp" {
        *explicit = true;
        return true;
    }
    if is_first && let Some(mode) = mode(word) {
        *known = mode;
        return true;
    }
    let Some(found) = key_accidental(word) else { return false };
    accidentals.retain(|(letter, _)| *letter != found.0);
    accidentals.push(found);
    true
}

/// `^f`, `_B`, `=c`.
fn key_accidental(word: &str) -> Option<(Letter, Accidental)> {
    let letter = word.chars().last()?;
    let letter_of = Letter::from_upper(letter.to_ascii_uppercase())?;
    let sign = word.strip_suffix(letter)?;
    let alterations = -2..=2;
    let accidental =
        alterations.filter_map(Accidental::from_alteration).find(|known| known.abc() == sign)?;
    Some((letter_of, accidental))
}

/// Returns the clef that a word names, with its octave.
fn clef_of(word: &str) -> Option<String> {
    let base = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == '+' || c == '-');
    CLEFS.contains(&base).then(|| word.to_owned())
}

fn voice(text: &str) -> Result<VoiceField, Problem> {
    let mut words = words(text).into_iter();
    let Some((id, None)) = words.next().filter(|(id, _)| !id.is_empty()) else {
        return Err(problem("a voice without a name", "write `V:1` or `V:tenor clef=bass`"));
    };
    let properties = words
        .filter_map(|(word, value)| match value {
            Some(value) => Some((word, value)),
            None => clef_of(&word).map(|clef| ("clef".to_owned(), clef)),
        })
        .map(|(word, value)| match word.as_str() {
            "nm" => ("name".to_owned(), value),
            "snm" => ("subname".to_owned(), value),
            _ => (word, value),
        });
    Ok(VoiceField { id, properties: Properties(properties.collect()) })
}

/// Splits words, with the value of those that are `name=value`; a value may be quoted.
fn words(text: &str) -> Vec<(String, Option<String>)> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let end = rest.find(|c: char| c.is_whitespace() || c == '=').unwrap_or(rest.len());
        // An accidental of a key starts with the sign that otherwise introduces a value.
        let end = if end == 0 { rest.find(char::is_whitespace).unwrap_or(rest.len()) } else { end };
        let word = rest[..end].to_owned();
        rest = &rest[end..];
        if let Some(after) = rest.strip_prefix('=') {
            let (value, after) = value(after);
            words.push((word, Some(value)));
            rest = after;
        } else {
            words.push((word, None));
        }
        rest = rest.trim_start();
    }
    words
}

fn value(text: &str) -> (String, &str) {
    if let Some(quoted) = text.strip_prefix('"') {
        return match quoted.split_once('"') {
            Some((value, rest)) => (value.to_owned(), rest),
            None => (quoted.to_owned(), ""),
        };
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (text[..end].to_owned(), &text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quarters(text: &str) -> Option<Fraction> {
        tempo(text).unwrap().quarters_per_minute(Fraction::new(1, 8))
    }

    /// REQ: ABC 2.1 "3.1.8 Q: - tempo": the beat counts, and there may be several.
    #[test]
    fn a_tempo_counts_its_own_beat() {
        let whole = Fraction::from_integer;
        assert_eq!(quarters("1/4=120"), Some(whole(120)));
        assert_eq!(quarters("3/8=80"), Some(whole(120)));
        assert_eq!(quarters("\"Allegro\" 1/2=60"), Some(whole(120)));
        assert_eq!(quarters("1/4 3/8 1/4 3/8=40"), Some(whole(200)));
        assert_eq!(quarters("120"), Some(whole(60)), "unit lengths, as in old ABC");
        assert_eq!(quarters("\"Slowly\""), None);
        for wrong in ["fast", "1/4=", "1/0=120", "1/4=0", "\"open", "1/4=x"] {
            assert!(tempo(wrong).is_err(), "{wrong}");
        }
    }

    /// REQ: ABC 2.1 "3.1.6 M: - meter".
    #[test]
    fn meters_have_their_bars() {
        for (text, bar) in [
            ("C", Some((1, 1))),
            ("C|", Some((1, 1))),
            ("6/8", Some((3, 4))),
            ("(2+3+2)/8", Some((7, 8))),
            ("2+2+3/16", Some((7, 16))),
            ("none", None),
            ("", None),
        ] {
            let bar = bar.map(|(above, below)| Fraction::new(above, below));
            assert_eq!(meter(text).unwrap().bar(), bar, "M:{text}");
        }
        for wrong in ["4", "4/3", "0/4", "4/0", "x/4", "(2+x)/8", "4/4/4"] {
            assert!(meter(wrong).is_err(), "{wrong}");
        }
    }

    /// REQ: ABC 2.1 "4.6 Clefs and transposition".
    #[test]
    fn clefs_and_transposition_are_properties() {
        let field = key("G clef=treble-8 transpose=-2").unwrap();
        assert_eq!(field.properties.octaves(), Some(-1));
        assert_eq!(field.properties.transpose(), Some(-2));
        assert_eq!(key("bass").unwrap().key, None);
        assert_eq!(key("Am alto").unwrap().properties.get("clef"), Some("alto"));
        let tenor = voice("T2 clef=bass octave=1 name=\"Tenor II\"").unwrap();
        assert_eq!(tenor.properties.get("name"), Some("Tenor II"));
        assert_eq!(tenor.properties.octaves(), Some(1));
    }

    /// Rule: an error about an invalid field says what to write.
    #[test]
    fn wrong_keys_are_refused() {
        for wrong in ["H", "c", "Gfoo", "G maj ^x", "C#b"] {
            assert!(key(wrong).is_err(), "{wrong}");
        }
    }
}
