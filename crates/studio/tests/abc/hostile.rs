//! Nasty texts: every one has an answer, soon and small.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use ringback_studio::abc::{self, LimitError, Options, PlayError, Target};

use crate::tune;

/// Does everything that can be done with a text.
fn everything(text: &str) {
    let Ok(parsed) = abc::validate(text) else { return };
    let printed = abc::print(&parsed.book);
    assert!(printed.len() <= 8 * text.len() + 1000, "{} from {}", printed.len(), text.len());
    let options = Options { chords: true, ..Options::default() };
    for index in 0..parsed.book.tunes.len().min(3) {
        assert!(abc::summary(&parsed.book, index).is_some());
        if let Ok(performance) = abc::perform(&parsed.book, index, &options) {
            assert!(performance.notes().count() <= 2 * abc::NOTES_MAX);
            assert!(abc::to_midi(&performance).write().starts_with(b"MThd"));
        }
    }
    drop(abc::transpose(&parsed.book, &Target::Semitones(5)));
}

/// REQ: a fuzz corpus is committed: texts that are nasty in their own way.
#[test]
fn every_text_of_the_nasty_corpus_has_an_answer() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nasty");
    let mut n = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        everything(&String::from_utf8_lossy(&bytes));
        n += 1;
    }
    assert!(n >= 20, "{n} texts");
}

/// REQ: a small text never makes a large performance.
#[test]
fn a_small_text_that_explodes_is_refused() {
    let refused = |text: &str| {
        let book = abc::parse(text).unwrap().book;
        abc::perform(&book, 0, &Options::default()).unwrap_err()
    };
    let chord = "[CDEFGABcdefgab]";
    let parts = format!("X:1\nT:t\nL:1/64\nP:((A9)9)9\nK:C\nP:A\n{}|\n", chord.repeat(30));
    assert_eq!(refused(&parts), PlayError::TooManyNotes);
    assert_eq!(refused("X:1\nT:t\nP:(((A99)99)99)99\nK:C\nP:A\nC|\n"), PlayError::TooManyNotes);
    assert_eq!(refused(&tune(&"Z9999|".repeat(20))), PlayError::TooLong);
    assert_eq!(refused("X:1\nT:t\nQ:1/4=1\nK:C\nC9999|\n"), PlayError::TooLong);
    let primes = ["61", "59", "53", "47", "43", "41", "37", "31", "29", "23", "19", "17"];
    let fine: String = primes.iter().map(|p| format!("({p}:64:1C")).collect();
    assert_eq!(refused(&tune(&fine)), PlayError::TooFine);
}

/// REQ: ABC past its limits is a typed error with the place.
#[test]
fn a_text_over_the_limits_is_refused() {
    let long = "C".repeat(abc::TEXT_BYTES_MAX + 1);
    assert_eq!(abc::parse(&long), Err(LimitError::Text { size: long.len() }));
    let line = "~G".repeat(2000);
    let text = format!("X:1\nT:t\nm:~G={}\nK:C\n{line}\n", "GABc".repeat(50));
    assert_eq!(abc::parse(&text), Err(LimitError::Macros { line: 5 }));
}

/// REQ: bounded time: long texts that are all one thing, so that whatever is quadratic shows.
#[test]
fn long_texts_of_one_thing_have_an_answer() {
    let fill = |piece: &str| tune(&piece.repeat(100_000 / piece.len()));
    for piece in [
        "C",
        "|",
        ":|",
        "|:C:|",
        "[1C:|",
        "[2C:|",
        "C-",
        "(3",
        "{g}",
        "\"Am\"C|",
        "&",
        "&C",
        "C>",
        "[K:G]",
        "[V:1]C",
        "!f!",
        "C|\nw:a|b|\n",
        "w:|\n",
        "C\nw:*|\n",
        "%%MIDI drumon\n",
        "P:A\nC|\n",
        "|1C",
        "C:|1",
        "\u{1f600}",
        "m:a=b\n",
        "X:1\n\n",
        "[",
        "[M:3/4]",
        "C\\\n",
        "U:k=!f!\nkC\n",
        "V:1\nC\n",
    ] {
        everything(&fill(piece));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// REQ: a fuzz target per format: any text at all.
    #[test]
    fn any_text_has_an_answer(text in "\\PC{0,200}") {
        everything(&text);
    }

    /// Does the same for texts of ABC's own characters.
    #[test]
    fn any_music_has_an_answer(music in "[A-Za-z0-9/|:\\[\\](){}<>^_=,'\" .&~!%\\\\\n+*#-]{0,200}") {
        everything(&tune(&music));
    }

    /// And for field lines with arbitrary content.
    #[test]
    fn any_fields_have_an_answer(fields in "([A-Za-z+]:[A-Za-z0-9/|=()#b^_ ,.\"~+*-]{0,20}\n|%%MIDI [a-z]{2,8} [a-z0-9 -]{0,12}\n){0,8}", music in "[A-G|:\\[\\]12]{0,20}") {
        everything(&format!("X:1\n{fields}K:C\n{music}\n{fields}{music}\n"));
    }
}
