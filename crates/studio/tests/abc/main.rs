//! ABC from outside: parsing, printing, transposing, validation and playing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod against_abc2midi;
mod corpus;
mod hostile;
mod play;
mod print;
mod transpose;
mod validate;

use ringback_studio::abc::{self, Book, Options, Performance};

/// Returns the book of a text without errors.
fn book(text: &str) -> Book {
    let parsed = abc::parse(text).unwrap();
    assert!(parsed.is_valid(), "{text}\n{:#?}", parsed.diagnostics);
    parsed.book
}

/// Returns a tune in C with quarters as unit and this music.
fn tune(music: &str) -> String {
    format!("X:1\nT:Test\nM:4/4\nL:1/4\nK:C\n{music}\n")
}

fn perform(text: &str) -> Performance {
    abc::perform(&book(text), 0, &Options::default()).unwrap()
}

/// Returns the sounds, as `onset+duration:key` in quarter notes, voice by voice.
fn sounds(text: &str) -> String {
    let performance = perform(text);
    let line = |line: &abc::Line| {
        let notes = line
            .notes
            .iter()
            .map(|note| format!("{}+{}:{}", note.onset * 4, note.duration * 4, note.key));
        notes.collect::<Vec<_>>().join(" ")
    };
    performance.lines.iter().map(line).collect::<Vec<_>>().join(" / ")
}

/// Returns the keys that sound, one after another.
fn keys(text: &str) -> Vec<u8> {
    perform(text).notes().map(|note| note.key).collect()
}
