//! A tunebook as data: what was written, in the order it was written.

use num_rational::Ratio;

use super::key::Key;
use super::midi_command::MidiCommand;
use super::pitch::Pitch;

/// An exact number: a length in whole notes, or a factor.
pub type Fraction = Ratio<i64>;

/// A text of ABC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Book {
    /// Fields before the first tune, which apply to all.
    pub header: Vec<Field>,
    /// The tunes.
    pub tunes: Vec<Tune>,
}

/// A tune.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tune {
    /// The line it starts on.
    pub line: u32,
    /// The fields up to `K:`.
    pub header: Vec<Field>,
    /// Everything after the header.
    pub body: Vec<Item>,
}

/// A place in a text, both from 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u32,
    /// The character in the line.
    pub column: u32,
}

/// An item in the body of a tune, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The place.
    pub at: Place,
    /// The element.
    pub element: Element,
}

/// The elements in the body of a tune.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Element {
    /// A note.
    Note(Note),
    /// Notes that sound together.
    Chord(Chord),
    /// A rest; `x` hides it.
    Rest {
        /// In unit lengths.
        length: Fraction,
        /// Whether it is printed.
        visible: bool,
    },
    /// A rest of whole bars.
    BarRest {
        /// The number of bars.
        bars: u32,
        /// Whether it is printed.
        visible: bool,
    },
    /// Space on paper, without duration.
    Spacer,
    /// Grace notes before the next note.
    Grace {
        /// Whether it is an acciaccatura.
        slash: bool,
        /// The notes.
        notes: Vec<Note>,
    },
    /// A bar line.
    Bar(Bar),
    /// The start of a numbered ending.
    Ending(Vec<u32>),
    /// The next `r` notes take the time of `q` instead of `p`.
    Tuplet(Tuplet),
    /// `>` or `<`, one or more: the note before gives time to the one after, or takes it.
    Broken {
        /// The number of signs.
        n: u32,
        /// Whether the first note becomes longer.
        long_first: bool,
    },
    /// A slur opens.
    SlurOpen,
    /// A slur closes.
    SlurClose,
    /// A decoration by its name, such as `trill`.
    Decoration(String),
    /// A chord symbol or an annotation.
    Quoted(String),
    /// The bar starts again in another layer.
    Overlay,
    /// A break of the beam.
    Space,
    /// The end of a line of music.
    LineEnd {
        /// Whether the next line continues it.
        continued: bool,
    },
    /// A field, in brackets or on a line of its own.
    Field {
        /// The field; boxed, because notes are many and small.
        field: Box<Field>,
        /// Whether it is in brackets.
        inline: bool,
    },
}

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Its pitch as written.
    pub pitch: Pitch,
    /// Its length in unit lengths.
    pub length: Fraction,
    /// Whether it is tied to the next.
    pub tie: bool,
    /// Decorations of this note inside a chord.
    pub marks: Vec<String>,
}

/// Notes that sound together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chord {
    /// The notes with their own lengths; there is at least one.
    pub notes: Vec<Note>,
    /// The factor of all their lengths.
    pub length: Fraction,
    /// Whether the whole chord is tied to the next.
    pub tie: bool,
}

/// A bar line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bar {
    /// How many more times the section before it is played.
    pub repeats_before: u32,
    /// How many more times the section after it is played.
    pub repeats_after: u32,
    /// Its appearance.
    pub style: BarStyle,
}

/// The appearance of a bar line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BarStyle {
    /// `|`
    Single,
    /// `||`
    Double,
    /// `|]`
    ThinThick,
    /// `[|`
    ThickThin,
    /// `.|`
    Dotted,
    /// `[|]`
    Invisible,
}

/// `(p:q:r`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuplet {
    /// The number of notes …
    pub p: u32,
    /// … in the time of this many; depends on the meter if absent.
    pub q: Option<u32>,
    /// … for this many following notes; `p` if absent.
    pub r: Option<u32>,
}

/// A field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    /// `X:`
    Reference(u32),
    /// `M:`
    Meter(Meter),
    /// `L:`
    UnitLength(Fraction),
    /// `Q:`
    Tempo(Tempo),
    /// `K:`
    Key(KeyField),
    /// `V:`
    Voice(VoiceField),
    /// `P:`, the order of the parts in a header and the name of one in a body.
    Parts(String),
    /// `w:`
    Lyrics(String),
    /// `s:`
    Symbols(String),
    /// `%%MIDI` or `I:MIDI`.
    Midi {
        /// As written.
        text: String,
        /// Its meaning.
        command: MidiCommand,
    },
    /// Another `%%` or `I:`.
    Directive(String),
    /// A field that is text: `T:`, `C:`, `W:` and so on.
    Text {
        /// Its letter.
        letter: char,
        /// Its text.
        text: String,
    },
}

/// `M:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meter {
    /// `none`, or nothing.
    Free,
    /// `C`, four quarters.
    Common,
    /// `C|`, two halves.
    Cut,
    /// Numbers; several above are a compound such as `(2+3+2)/8`.
    Beats {
        /// The numbers above; at least one.
        above: Vec<u32>,
        /// The number below.
        below: u32,
    },
}

impl Meter {
    /// Returns the length of a bar; free time has none.
    #[must_use]
    pub fn bar(&self) -> Option<Fraction> {
        match self {
            Self::Free => None,
            Self::Common | Self::Cut => Some(Fraction::from_integer(1)),
            Self::Beats { above, below } => {
                let sum: i64 = above.iter().map(|n| i64::from(*n)).sum();
                Some(Fraction::new(sum, i64::from((*below).max(1))))
            }
        }
    }

    /// Returns the two numbers for a MIDI file.
    #[must_use]
    pub fn numbers(&self) -> Option<(u32, u32)> {
        match self {
            Self::Free => None,
            Self::Common => Some((4, 4)),
            Self::Cut => Some((2, 2)),
            Self::Beats { above, below } => Some((above.iter().sum(), *below)),
        }
    }

    /// Returns whether its beats have three parts, as in 6/8: then `(2` and the like have another
    /// `q`.
    #[must_use]
    pub fn is_compound(&self) -> bool {
        self.numbers().is_some_and(|(above, _)| above % 3 == 0 && above > 3)
    }

    /// Returns the default unit length, without `L:`.
    #[must_use]
    pub fn unit_length(&self) -> Fraction {
        let is_short = self.bar().is_some_and(|bar| bar < Fraction::new(3, 4));
        Fraction::new(1, if is_short { 16 } else { 8 })
    }
}

/// `Q:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tempo {
    /// Its name.
    pub text: Option<String>,
    /// The lengths that make a beat; empty means the unit length.
    pub beats: Vec<Fraction>,
    /// Beats in a minute.
    pub per_minute: Option<u32>,
}

impl Tempo {
    /// Returns quarter notes per minute, if it has them.
    #[must_use]
    pub fn quarters_per_minute(&self, unit: Fraction) -> Option<Fraction> {
        let beat = if self.beats.is_empty() { unit } else { self.beats.iter().sum() };
        self.per_minute.map(|per_minute| beat * Fraction::from_integer(4 * i64::from(per_minute)))
    }
}

/// `K:`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyField {
    /// The key; absent if only the clef changes.
    pub key: Option<Key>,
    /// Clef and transposition.
    pub properties: Properties,
}

/// `V:`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VoiceField {
    /// Its name in this tune.
    pub id: String,
    /// Clef, transposition, name on paper.
    pub properties: Properties,
}

/// Properties after a key or a voice, as `name=value`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties(pub Vec<(String, String)>);

impl Properties {
    /// Returns the value of a property.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Returns by how many octaves it plays higher than written: `octave=`, else `-8` or `+8` of
    /// the clef.
    #[must_use]
    pub fn octaves(&self) -> Option<i32> {
        let octave = self.get("octave").and_then(|octave| octave.parse::<i32>().ok());
        if let Some(octave) = octave {
            return Some(octave.clamp(-4, 4));
        }
        let clef = self.get("clef")?;
        let octaves = [("-15", -2), ("+15", 2), ("-8", -1), ("+8", 1)]
            .iter()
            .find(|(suffix, _)| clef.ends_with(suffix))
            .map_or(0, |(_, octaves)| *octaves);
        Some(octaves)
    }

    /// Returns by how many semitones it sounds higher than written.
    #[must_use]
    pub fn transpose(&self) -> Option<i32> {
        let value = self.get("transpose")?.parse::<i32>().ok()?;
        Some(value.clamp(-60, 60))
    }
}
