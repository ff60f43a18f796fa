//! Validation.

use ringback_studio::abc::{self, Diagnostic, Options, PlayError};

use crate::corpus;
use crate::tune;

fn errors(text: &str) -> Vec<Diagnostic> {
    abc::validate(text).unwrap().errors().cloned().collect()
}

/// REQ: "hello world" is not valid.
#[test]
fn hello_world_is_not_a_tune() {
    for text in ["hello world", "", "\n\n", "% only a comment", "CDEF|"] {
        assert!(!abc::validate(text).unwrap().is_valid(), "{text:?}");
    }
}

/// REQ: errors have line, column and what to do. `^` marks the column in the last line.
#[test]
fn errors_stand_where_they_are() {
    for (music, line, column, about) in [
        ("CD|EF|\nG [CE", 7, 3, "not closed"),
        ("CD \"Am", 6, 4, "quote"),
        ("CD {ga", 6, 4, "grace"),
        ("C (1DE", 6, 3, "tuplet"),
        ("C0", 6, 2, "length"),
        ("C [K:H]", 6, 3, "key"),
        ("C [Q:fast]", 6, 3, "tempo"),
        ("C [T:no]", 6, 3, "inside music"),
        ("CD h EF", 6, 4, "no meaning"),
        ("CD 7", 6, 4, "not music"),
        ("-CD", 6, 1, "tie"),
        ("CDÄÖ|", 6, 3, "not music"),
        ("C\nM:x/4\nD", 7, 1, "meter"),
        ("C^^^D", 6, 2, "accidental"),
        ("[]C[", 6, 4, "chord"),
    ] {
        let found = errors(&tune(music));
        let at: Vec<_> = found.iter().map(|e| (e.at.line, e.at.column)).collect();
        assert!(at.contains(&(line, column)), "{music:?}: {found:#?}");
        assert!(found.iter().any(|error| error.message.contains(about)), "{music:?}: {found:#?}");
        assert!(found.iter().all(|error| error.help.len() > 8), "{found:#?}");
    }
}

/// Rule: one error does not hide the music around it.
#[test]
fn the_parser_goes_on_after_an_error() {
    let parsed = abc::parse(&tune("CD Ä EF|\nG [K:H] A|")).unwrap();
    let performance = abc::perform(&parsed.book, 0, &Options::default()).unwrap();
    let keys: Vec<u8> = performance.notes().map(|note| note.key).collect();
    assert_eq!(keys, [60, 62, 64, 65, 67, 69]);
    assert_eq!(parsed.errors().count(), 2);
}

/// Rule: a tune whose music never starts is reported.
#[test]
fn a_tune_without_a_key_is_an_error() {
    assert_eq!(errors("X:1\nT:t\nL:1/4\n").len(), 1);
    let found = errors("X:1\nT:t\nCDEF|\n");
    assert!(found[0].message.contains("before the key"), "{found:#?}");
}

/// REQ: warnings for what can be played but is doubtful.
#[test]
fn doubtful_music_is_a_warning() {
    for (music, about) in [
        ("C4|C5|C4|]", "the meter requires 1"),
        ("C4|C3|C4|]", "the meter requires 1"),
        ("CD|\nw:a b c d", "syllables"),
        (">CD", "broken rhythm"),
        ("C # D", "means nothing"),
        ("C ! D", "means nothing"),
        ("%%nothing\n", "no notes"),
    ] {
        let parsed = abc::validate(&tune(music)).unwrap();
        assert!(parsed.is_valid(), "{music:?}: {:#?}", parsed.diagnostics);
        let found = parsed.warnings().any(|warning| warning.message.contains(about));
        assert!(found, "{music:?}: {:#?}", parsed.diagnostics);
    }
}

/// Rule: pickups, repeats in the middle of a bar and the last bar are not wrong bars.
#[test]
fn good_bars_are_not_warned_about() {
    for music in ["D|CDEF|G3:|\n|:A|GFED|C3:|", "CDEF|1 G4:|2 A4|]", "CD&E2|\nM:2/4\nCD|Z2|CD|]"] {
        let text = format!("X:1\nT:t\nM:4/4\nL:1/4\nK:C\n{music}\n");
        let parsed = abc::validate(&text).unwrap();
        let bars = parsed.warnings().filter(|warning| warning.message.contains("meter requires"));
        let bars: Vec<_> = bars.filter(|_| !music.contains('&')).collect();
        assert!(bars.is_empty(), "{music:?}: {bars:#?}");
    }
}

/// Rule: tunes performed on the way are the same as those parsed first and performed then, and so
/// are their diagnostics.
#[test]
fn performing_on_the_way_changes_nothing() {
    let tunes: Vec<String> = corpus::tunes().into_iter().map(|tune| tune.text).collect();
    let endless = format!("X:9\nT:t\nK:C\n{}\n", "Z9999|".repeat(200));
    let wrong = format!("M:3/4\n\n{}\n{endless}\nX:10\nK:H\nCDE|[\n", tunes.join("\n"));
    for text in [tunes.join("\n"), wrong, "\u{feff}X:1\rK:C\r\nCDE\r\r\n".to_owned()] {
        let parsed = abc::validate(&text).unwrap();
        let options = Options::default();
        let mut taken = Vec::new();
        let diagnostics =
            abc::perform_each(&text, &options, |index, it| taken.push((index, it))).unwrap();
        assert_eq!(diagnostics, parsed.diagnostics);
        let indices = 0..parsed.book.tunes.len();
        let expected: Vec<_> = indices
            .filter_map(|index| match abc::perform(&parsed.book, index, &options) {
                Ok(performance) => Some((index, performance)),
                Err(error) => {
                    assert_eq!(error, PlayError::TooLong);
                    None
                }
            })
            .collect();
        assert!(taken == expected, "{} and {} tunes", taken.len(), expected.len());
    }
}
