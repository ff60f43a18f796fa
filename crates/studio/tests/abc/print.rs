//! Printing.

use proptest::prelude::*;
use ringback_studio::abc::{self, Element, Options, Performance};

use crate::corpus::tunes;
use crate::{book, tune};

/// Returns the full performance of a text; `None` if it has no tune.
fn music(text: &str) -> Option<Performance> {
    let parsed = abc::parse(text).unwrap();
    abc::perform(&parsed.book, 0, &Options { chords: true, ..Options::default() }).ok()
}

/// REQ: parse, print, parse gives the same music.
#[test]
fn every_tune_of_the_corpus_survives_printing() {
    for tune in tunes() {
        let printed = abc::print(&book(&tune.text));
        assert_eq!(music(&printed), music(&tune.text), "{}\n{printed}", tune.name);
        assert_eq!(abc::print(&book(&printed)), printed, "{}: printed twice", tune.name);
    }
}

/// Rule: printed text has the same elements as the original, not only the same sound.
#[test]
fn the_elements_survive_printing() {
    let text = tune(
        "\"Am\"!trill!{g}C>D|[1 (3:2:4E/F/G/A/ [CE2G]3/2-|[2 z2x/Z2y.|\\\n&[K:Gm clef=bass]^^c__b'|]",
    );
    let elements = |text: &str| -> Vec<Element> {
        book(text).tunes[0].body.iter().map(|item| item.element.clone()).collect()
    };
    assert_eq!(elements(&abc::print(&book(&text))), elements(&text));
}

proptest! {
    /// Rule: printing never changes the music, whatever was read.
    #[test]
    fn any_text_survives_printing(music_text in "[A-Ga-gzxZy0-9/|:\\[\\](){}<>^_=,'\" .&~!%\\-\n]{0,80}") {
        let text = tune(&music_text);
        let parsed = abc::parse(&text).unwrap();
        let printed = abc::print(&parsed.book);
        prop_assert_eq!(music(&printed), music(&text), "{}", printed);
    }
}
