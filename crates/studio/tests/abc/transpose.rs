//! Transposing.

use ringback_studio::abc::{self, Options, Target, TransposeError};

use crate::corpus::tunes;
use crate::{book, keys, tune};

/// Returns the onset, duration and key of every note.
fn sounds(book: &abc::Book) -> Vec<(abc::Fraction, abc::Fraction, i32)> {
    let performance = abc::perform(book, 0, &Options::default()).unwrap();
    performance.notes().map(|note| (note.onset, note.duration, i32::from(note.key))).collect()
}

fn transposed(text: &str, semitones: i32) -> String {
    let target = Target::Semitones(semitones);
    abc::print(&abc::transpose(&book(text), &target).unwrap().book)
}

/// REQ: `abc_transpose` gives ABC that parses back to the transposed pitches, for the whole corpus
/// and every semitone of an octave up and down.
#[test]
fn every_tune_of_the_corpus_transposes_to_the_pitches_asked_for() {
    for tune in tunes() {
        let original = book(&tune.text);
        let before = sounds(&original);
        for semitones in -12..=12 {
            let moved = abc::transpose(&original, &Target::Semitones(semitones)).unwrap();
            let printed = abc::print(&moved.book);
            let after = sounds(&book(&printed));
            let expected: Vec<_> =
                before.iter().map(|(on, length, key)| (*on, *length, key + semitones)).collect();
            let same = after.iter().map(|note| note.2).eq(expected.iter().map(|note| note.2))
                && after.len() == expected.len();
            assert!(same, "{} by {semitones}\n{}\n{printed}", tune.name, tune.text);
        }
    }
}

/// REQ: transposing by n and by -n gives the original pitches.
#[test]
fn there_and_back_is_where_it_was() {
    for tune in tunes() {
        let original = book(&tune.text);
        for semitones in [-11, -6, -1, 1, 5, 6, 7, 10] {
            let there = abc::transpose(&original, &Target::Semitones(semitones)).unwrap();
            let back = abc::transpose(&there.book, &Target::Semitones(-semitones)).unwrap();
            assert_eq!(sounds(&back.book), sounds(&original), "{} by {semitones}", tune.name);
        }
    }
}

/// Rule: notes keep their degree in the scale, and accidentals are ABC's.
#[test]
fn spelling_follows_the_new_key() {
    let text = tune("CDE^F|\"Am7/G\"_B2c2|]");
    for (semitones, key, music) in [
        (2, "K:D", "DEF^G|\"Bm7/A\"=c2d2|]"),
        (1, "K:Db", "DEF=G|\"Bbm7/Ab\"_c2d2|]"),
        (-1, "K:B", "B,CD^E|\"G#m7/F#\"=A2B2|]"),
        (3, "K:Eb", "EFG=A|\"Cm7/Bb\"_d2e2|]"),
        (12, "K:C", "cde^f|\"Am7/G\"_b2c'2|]"),
    ] {
        let printed = transposed(&text, semitones);
        assert!(printed.contains(key), "{printed}");
        assert!(printed.contains(music), "{semitones}: {printed}");
    }
}

/// Rule: an earlier implementation wrote `#C#DF` for this, which is not ABC.
#[test]
fn a_semitone_up_is_abc_again() {
    let printed = transposed(&tune("CDE"), 1);
    assert_eq!(keys(&printed), [61, 63, 65]);
}

/// Rule: explicit accidentals of a key move with it.
#[test]
fn a_key_with_its_own_accidentals_moves_whole() {
    let text = "X:1\nT:t\nL:1/4\nK:D phr ^f\nDEFG|\n";
    let printed = transposed(text, 2);
    assert!(printed.contains("K:Ephr ^g"), "{printed}");
    assert_eq!(keys(&printed), [64, 65, 68, 69]);
}

/// REQ: `abc_transpose` to a key: the nearer way, and each tune keeps its mode.
#[test]
fn to_a_key_goes_the_nearer_way() {
    for (from, to, semitones, key) in [
        ("C", "D", 2, "D"),
        ("C", "Bb", -2, "Bb"),
        ("C", "F#", 6, "F#"),
        ("Am", "E", -5, "Em"),
        ("Am", "Bm", 2, "Bm"),
        ("Ador", "D", 5, "Ddor"),
        ("G", "G", 0, "G"),
    ] {
        let text = format!("X:1\nT:t\nL:1/4\nK:{from}\nGABc|\n");
        let moved = abc::transpose(&book(&text), &Target::Key(to.to_owned())).unwrap();
        assert_eq!(
            (moved.semitones, moved.new_key.as_deref()),
            (semitones, Some(key)),
            "{from} {to}"
        );
        assert_eq!(moved.original_key.as_deref(), Some(from));
    }
}

/// Rule: an error about an impossible transposition names a possible one.
#[test]
fn what_cannot_be_transposed_says_why() {
    let minor = book("X:1\nT:t\nL:1/4\nK:Am\nABc|\n");
    let to = |key: &str| abc::transpose(&minor, &Target::Key(key.to_owned()));
    let error = to("Cmaj").unwrap_err();
    assert!(error.to_string().contains("ask for `Cm`"), "{error}");
    assert!(matches!(to("H"), Err(TransposeError::BadKey { .. })));
    assert!(matches!(to("none"), Err(TransposeError::BadKey { .. })));
    let far = abc::transpose(&minor, &Target::Semitones(100));
    assert_eq!(far, Err(TransposeError::TooFar { semitones: 100 }));
    let free = book("X:1\nT:t\nL:1/4\nK:none\nABc|\n");
    let no_tonic = abc::transpose(&free, &Target::Key("D".to_owned()));
    assert_eq!(no_tonic, Err(TransposeError::NoTonic { line: 1 }));
    let high = book(&tune("c'''''|"));
    let no_place = abc::transpose(&high, &Target::Semitones(12));
    assert_eq!(no_place, Err(TransposeError::NoPlace { line: 6, semitones: 12 }));
}
