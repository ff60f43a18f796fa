//! Transposes notation so that it reads well in the new key.

use super::accompaniment::transpose_symbol;
use super::key::Key;
use super::model::{Book, Element, Field, Item, KeyField, Note, Tune};
use super::parse::parse_key;
use super::pitch::{Accidental, Letter, Pitch};
use super::resolver::{Reach, Resolver};

/// The furthest transposition.
const SEMITONES_MAX: i32 = 36;
/// Notes outside cannot be written.
const OCTAVE_MAX: i32 = 6;

/// The target of a transposition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// By this many semitones up, down if negative.
    Semitones(i32),
    /// To this tonic, the shorter way; each tune keeps its mode.
    Key(String),
}

/// A transposed book.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transposed {
    /// The book.
    pub book: Book,
    /// The original key of its first tune, if it has one.
    pub original_key: Option<String>,
    /// The new key of its first tune.
    pub new_key: Option<String>,
    /// The transposition of its first tune.
    pub semitones: i32,
}

/// Why a book cannot be transposed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TransposeError {
    /// Over the limit.
    #[error("a tune can be transposed by at most {SEMITONES_MAX} semitones, not by {semitones}")]
    TooFar {
        /// The requested transposition.
        semitones: i32,
    },
    /// A note would be out of range.
    #[error(
        "line {line} has a note that cannot be written {semitones} semitones away: transpose by \
         less"
    )]
    NoPlace {
        /// Its line.
        line: u32,
        /// The transposition.
        semitones: i32,
    },
    /// The key cannot be read.
    #[error("cannot transpose to the key `{key}`: {reason}")]
    BadKey {
        /// The requested key.
        key: String,
        /// What is wrong.
        reason: String,
    },
    /// A tune without a tonic cannot be transposed to a key.
    #[error("the tune on line {line} has no tonic: transpose it by semitones")]
    NoTonic {
        /// Its first line.
        line: u32,
    },
    /// Transposing keeps the mode.
    #[error(
        "the tune on line {line} is in `{from}`, and transposing keeps its mode: ask for `{instead}`"
    )]
    OtherMode {
        /// Its first line.
        line: u32,
        /// Its key.
        from: String,
        /// The key to use instead.
        instead: String,
    },
}

/// Transposes every tune of a book: keys, notes and chord symbols.
pub fn transpose(book: &Book, target: &Target) -> Result<Transposed, TransposeError> {
    let mut out = book.clone();
    let original_key = book.tunes.first().and_then(header_key).map(Key::abc);
    let mut first = None;
    let reach = book.header.iter().find_map(Reach::from_field);
    for tune in &mut out.tunes {
        let semitones = semitones(tune, target)?;
        first.get_or_insert(semitones);
        transpose_tune(tune, semitones, reach.unwrap_or_default())?;
    }
    let new_key = out.tunes.first().and_then(header_key).map(Key::abc);
    Ok(Transposed { book: out, original_key, new_key, semitones: first.unwrap_or(0) })
}

fn header_key(tune: &Tune) -> Option<&Key> {
    tune.header.iter().find_map(|field| match field {
        Field::Key(KeyField { key, .. }) => key.as_ref(),
        Field::Reference(_)
        | Field::Meter(_)
        | Field::UnitLength(_)
        | Field::Tempo(_)
        | Field::Voice(_)
        | Field::Parts(_)
        | Field::Lyrics(_)
        | Field::Symbols(_)
        | Field::Midi { .. }
        | Field::Directive(_)
        | Field::Text { .. } => None,
    })
}

/// Returns the transposition of a tune.
fn semitones(tune: &Tune, target: &Target) -> Result<i32, TransposeError> {
    let wanted = match target {
        Target::Semitones(semitones) if semitones.abs() > SEMITONES_MAX => {
            return Err(TransposeError::TooFar { semitones: *semitones });
        }
        Target::Semitones(semitones) => return Ok(*semitones),
        Target::Key(wanted) => wanted,
    };
    let bad = |reason: String| TransposeError::BadKey { key: wanted.clone(), reason };
    let parsed = parse_key(wanted).map_err(bad)?;
    let Some(Key::Tonal { letter, alteration, mode, .. }) = parsed.key else {
        return Err(bad("it has no tonic; use a key such as `D` or `Bb`".to_owned()));
    };
    let line = tune.line;
    let Some(from @ Key::Tonal { letter: old, alteration: old_alteration, mode: old_mode, .. }) =
        header_key(tune)
    else {
        return Err(TransposeError::NoTonic { line });
    };
    let says_mode = wanted.trim().trim_start_matches(|c: char| "ABCDEFG#b".contains(c));
    if !says_mode.is_empty() && !mode.same_notes(*old_mode) {
        let instead = super::pitch::name(letter, alteration) + old_mode.suffix();
        return Err(TransposeError::OtherMode { line, from: from.abc(), instead });
    }
    let distance = letter.semitones() + alteration - old.semitones() - old_alteration;
    // The shorter way: from 5 down to 6 up.
    Ok((distance + 5).rem_euclid(12) - 5)
}

/// How notes move in a key.
#[derive(Debug, Clone, Copy)]
struct Interval {
    /// Letters up.
    steps: i32,
    semitones: i32,
}

impl Interval {
    /// Returns the interval with the most readable key: the fewest sharps or flats, and for equals
    /// the same kind as before.
    fn best(key: &Key, semitones: i32) -> Self {
        let near = (f64::from(semitones) * 7.0 / 12.0).round() as i32;
        (near - 1..=near + 1)
            .map(|steps| Self { steps, semitones })
            .min_by_key(|interval| {
                let fifths = interval.fifths(key.fifths());
                let turns = fifths.signum() * key.fifths().signum() < 0;
                (fifths.abs(), turns, interval.steps.abs())
            })
            .unwrap_or(Self { steps: near, semitones })
    }

    /// Returns the new number of sharps of a key: an octave has 12 fifths less 7 octaves.
    fn fifths(self, before: i32) -> i32 {
        before + 7 * self.semitones - 12 * self.steps
    }

    /// Returns the new letter, how many octaves that crosses, and the change of its alteration.
    fn letter(self, letter: Letter) -> (Letter, i32, i32) {
        let (moved, octaves) = letter.shifted(self.steps);
        let change = self.semitones + letter.semitones() - moved.semitones() - 12 * octaves;
        (moved, octaves, change)
    }

    fn key(self, key: &Key) -> Key {
        match key {
            Key::None => Key::None,
            // The scale of the pipes is A mixolydian.
            Key::Pipes { .. } if self.semitones == 0 => key.clone(),
            Key::Pipes { .. } => {
                let accidentals = Vec::new();
                let mode = super::key::Mode::Mixolydian;
                let (letter, alteration) = (Letter::A, 0);
                self.key(&Key::Tonal { letter, alteration, mode, explicit: false, accidentals })
            }
            Key::Tonal { letter, alteration, mode, explicit, accidentals } => {
                let (moved, _, change) = self.letter(*letter);
                let accidentals = accidentals
                    .iter()
                    .filter_map(|(letter, accidental)| {
                        let (letter, _, change) = self.letter(*letter);
                        let alteration = accidental.alteration() + change;
                        Some((letter, Accidental::from_alteration(alteration)?))
                    })
                    .collect();
                Key::Tonal {
                    letter: moved,
                    alteration: alteration + change,
                    mode: *mode,
                    explicit: *explicit,
                    accidentals,
                }
            }
        }
    }

    /// Returns the new pitch of a note with this alteration, and its new alteration.
    fn pitch(self, pitch: &Pitch, alteration: i32) -> (Pitch, i32) {
        let key = pitch.midi(alteration) + self.semitones;
        let spelled = |steps: i32| {
            let (letter, octaves) = pitch.letter.shifted(steps);
            let moved = Pitch { letter, octave: pitch.octave + octaves, accidental: None };
            (moved, key - moved.midi(0))
        };
        // A triple sharp cannot be written: an adjacent letter can.
        [self.steps, self.steps + 1, self.steps - 1]
            .into_iter()
            .map(spelled)
            .find(|(_, alteration)| alteration.abs() <= 2)
            .unwrap_or_else(|| spelled(self.steps))
    }

    /// Returns the new root of a chord symbol.
    fn root(self, letter: Letter, alteration: i32) -> (Letter, i32) {
        let pitch = Pitch { letter, octave: 0, accidental: None };
        let (moved, alteration) = self.pitch(&pitch, alteration);
        if alteration.abs() <= 1 {
            return (moved.letter, alteration);
        }
        let (letter, octaves) = moved.letter.shifted(alteration.signum());
        let distance = letter.semitones() + 12 * octaves - moved.letter.semitones();
        (letter, alteration - distance)
    }
}

/// A voice during transposition: its old and new reading.
#[derive(Debug, Clone)]
struct Voice {
    id: String,
    before: Resolver,
    now: Resolver,
    interval: Interval,
}

impl Voice {
    fn set_key(&mut self, old: &Key, semitones: i32) -> Key {
        self.interval = Interval::best(old, semitones);
        let new = self.interval.key(old);
        self.before.set_signature(old.signature());
        self.now.set_signature(new.signature());
        new
    }

    fn bar_line(&mut self) {
        self.before.bar_line();
        self.now.bar_line();
    }

    /// Moves a note and writes the accidental it needs; returns its new alteration.
    fn note(&mut self, note: &mut Note, alteration: i32) -> i32 {
        let had_accidental = note.pitch.accidental.is_some();
        let (mut pitch, alteration) = self.interval.pitch(&note.pitch, alteration);
        if had_accidental || self.now.plain(&pitch) != alteration {
            pitch.accidental = Accidental::from_alteration(alteration);
        }
        note.pitch = pitch;
        self.now.alteration(&pitch);
        alteration
    }

    fn sound(&mut self, notes: &mut [Note], tie: bool) {
        let ties: Vec<(Pitch, bool)> =
            notes.iter().map(|note| (note.pitch, note.tie || tie)).collect();
        let alterations = self.before.sound(&ties);
        let mut tied = Vec::new();
        for (note, alteration) in notes.iter_mut().zip(alterations) {
            let alteration = self.note(note, alteration);
            if note.tie || tie {
                tied.push((note.pitch, alteration));
            }
        }
        self.now.tie(tied.into_iter());
    }

    fn rest(&mut self) {
        self.before.tie(std::iter::empty());
        self.now.tie(std::iter::empty());
    }
}

struct Transposer {
    semitones: i32,
    template: Voice,
    voices: Vec<Voice>,
    current: Option<usize>,
}

fn transpose_tune(tune: &mut Tune, semitones: i32, reach: Reach) -> Result<(), TransposeError> {
    let old = header_key(tune).cloned().unwrap_or_else(Key::c_major);
    let reach = tune.header.iter().find_map(Reach::from_field).unwrap_or(reach);
    let interval = Interval::best(&old, semitones);
    let template = Voice {
        id: "1".to_owned(),
        before: Resolver::new(old.signature(), reach),
        now: Resolver::new(interval.key(&old).signature(), reach),
        interval,
    };
    let mut transposer = Transposer { semitones, template, voices: Vec::new(), current: None };
    for field in &mut tune.header {
        if let Field::Key(KeyField { key: Some(key), .. }) = field {
            *key = interval.key(key);
        }
        if let Field::Voice(voice) = field {
            transposer.voice(&voice.id);
        }
    }
    tune.body.iter_mut().try_for_each(|item| transposer.item(item))
}

impl Transposer {
    fn voice(&mut self, id: &str) -> usize {
        let known = self.voices.iter().position(|voice| voice.id == id);
        known.unwrap_or_else(|| {
            self.voices.push(Voice { id: id.to_owned(), ..self.template.clone() });
            self.voices.len() - 1
        })
    }

    fn current(&mut self) -> &mut Voice {
        if self.current.is_none() {
            if self.voices.is_empty() {
                self.voices.push(self.template.clone());
            }
            self.current = Some(0);
        }
        &mut self.voices[self.current.unwrap_or(0)]
    }

    fn item(&mut self, item: &mut Item) -> Result<(), TransposeError> {
        let semitones = self.semitones;
        let no_place = TransposeError::NoPlace { line: item.at.line, semitones };
        let written: &[Note] = match &mut item.element {
            Element::Note(note) => {
                self.current().sound(std::slice::from_mut(note), false);
                std::slice::from_ref(note)
            }
            Element::Chord(chord) => {
                self.current().sound(&mut chord.notes, chord.tie);
                &chord.notes
            }
            Element::Grace { notes, .. } => {
                let voice = self.current();
                for note in notes.iter_mut() {
                    let alteration = voice.before.alteration(&note.pitch);
                    voice.note(note, alteration);
                }
                notes
            }
            element @ (Element::Rest { .. }
            | Element::BarRest { .. }
            | Element::Spacer
            | Element::Bar(_)
            | Element::Ending(_)
            | Element::Tuplet(_)
            | Element::Broken { .. }
            | Element::SlurOpen
            | Element::SlurClose
            | Element::Decoration(_)
            | Element::Quoted(_)
            | Element::Overlay
            | Element::Space
            | Element::LineEnd { .. }
            | Element::Field { .. }) => {
                self.other(element);
                &[]
            }
        };
        let fits = |note: &Note| note.pitch.octave.abs() <= OCTAVE_MAX;
        if written.iter().all(fits) { Ok(()) } else { Err(no_place) }
    }

    /// Handles anything without a pitch of its own.
    fn other(&mut self, element: &mut Element) {
        match element {
            Element::Rest { .. } | Element::BarRest { .. } => self.current().rest(),
            Element::Bar(_) | Element::Overlay => self.current().bar_line(),
            Element::Quoted(text) => {
                let interval = self.current().interval;
                if let Some(moved) = transpose_symbol(text, |l, a| interval.root(l, a)) {
                    *text = moved;
                }
            }
            Element::Field { field, .. } => self.field(field),
            Element::Note(_)
            | Element::Chord(_)
            | Element::Grace { .. }
            | Element::Spacer
            | Element::Ending(_)
            | Element::Tuplet(_)
            | Element::Broken { .. }
            | Element::SlurOpen
            | Element::SlurClose
            | Element::Decoration(_)
            | Element::Space
            | Element::LineEnd { .. } => {}
        }
    }

    fn field(&mut self, field: &mut Field) {
        if let Field::Voice(voice) = field {
            self.current = Some(self.voice(&voice.id));
        } else if let Field::Key(KeyField { key: Some(key), .. }) = field {
            *key = self.set_key(key);
        } else if let Some(reach) = Reach::from_field(field) {
            let voice = self.current();
            voice.before.set_reach(reach);
            voice.now.set_reach(reach);
        }
    }

    /// Handles a key inside the music: before the body names a voice it applies to all.
    fn set_key(&mut self, old: &Key) -> Key {
        let semitones = self.semitones;
        if self.current.is_none() && !self.voices.is_empty() {
            for voice in &mut self.voices {
                voice.set_key(old, semitones);
            }
            return Interval::best(old, semitones).key(old);
        }
        self.current().set_key(old, semitones)
    }
}
