//! Tunes as text, in ABC 2.1: parsing with places and error recovery, printing, transposing,
//! validation, and conversion to a MIDI file.
//!
//! Main types: [`Book`] is the parsed text; [`Parsed`] adds diagnostics; [`Performance`] has the
//! sounding notes. Start with [`parse`], then use [`print()`], [`transpose()`], [`perform`] and
//! [`to_midi`].
//!
//! ```
//! use ringback_studio::abc;
//!
//! let parsed = abc::parse("X:1\nT:Scale\nL:1/4\nK:D\nDEFG|ABcd|]\n")?;
//! assert!(parsed.is_valid());
//! let performance = abc::perform(&parsed.book, 0, &abc::Options::default())?;
//! let keys: Vec<u8> = performance.notes().map(|note| note.key).collect();
//! assert_eq!(keys, [62, 64, 66, 67, 69, 71, 73, 74]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Invariants:
//!
//! - An invalid text is not an error, but a [`Parsed`] with diagnostics. Only a limit is an error.
//! - Printing and parsing again results in the same music.
//! - Time is exact: no length is rounded before ticks are written.

mod accompaniment;
mod check;
mod diagnostic;
mod exact;
mod key;
mod lyrics;
mod midi;
mod midi_command;
mod model;
mod parse;
mod pitch;
mod play;
mod print;
mod resolver;
mod summary;
mod text;
mod transpose;

pub use check::{perform_each, validate};
pub use diagnostic::{Diagnostic, Severity};
pub use key::{Key, Mode};
pub use midi::to_midi;
pub use midi_command::{DrumPattern, MidiCommand};
pub use model::{
    Bar, BarStyle, Book, Chord, Element, Field, Fraction, Item, KeyField, Meter, Note, Place,
    Properties, Tempo, Tune, Tuplet, VoiceField,
};
pub use parse::{LimitError, Parsed, TEXT_BYTES_MAX, parse, parse_key};
pub use pitch::{Accidental, Letter, Pitch};
pub use play::{
    Line, NOTES_MAX, Options, Performance, PlayError, PlayedNote, SECONDS_MAX, perform,
};
pub use print::print;
pub use summary::{Summary, summary};
pub use text::unescape;
pub use transpose::{Target, TransposeError, Transposed, transpose};
