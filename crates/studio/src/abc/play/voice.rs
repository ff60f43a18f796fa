//! The state of one voice while its music is read.

use super::super::exact::{add, later, multiply, subtract};
use super::super::key::Key;
use super::super::lyrics::{Slot, Syllable, align};
use super::super::midi_command::MidiCommand;
use super::super::model::{Fraction, Meter, Note, Properties, Tuplet};
use super::super::pitch::Pitch;
use super::super::resolver::{Reach, Resolver};
use super::PlayError;
use super::score::{
    Control, Ornament, OrnamentKind, Sound, SoundExtras, SoundingNote, Step, StepKind,
};

/// The most lines of lyrics under one line of music; more are ignored.
const VERSES_MAX: usize = 64;

/// Grace notes take a quarter of their written length, as folk musicians play them.
const GRACE_DIVIDER: u32 = 4;

/// Dynamics, and their change of velocity.
const DYNAMICS: &[(&str, i32)] = &[
    ("pppp", -60),
    ("ppp", -45),
    ("pp", -30),
    ("p", -15),
    ("mp", -7),
    ("mf", 0),
    ("f", 15),
    ("ff", 30),
    ("fff", 45),
    ("ffff", 60),
];

/// The change of velocity of an accent.
const ACCENT: i32 = 15;

/// The state of one voice.
#[derive(Debug, Clone)]
pub(super) struct VoiceState {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) steps: Vec<Step>,
    pub(super) notes: Vec<SoundingNote>,
    pub(super) time: Fraction,
    pub(super) bar_start: Fraction,
    /// The end of the longest layer of this bar.
    bar_end: Fraction,
    pub(super) unit: Fraction,
    pub(super) meter: Meter,
    pub(super) resolver: Resolver,
    octaves: i32,
    transpose: i32,
    midi_transpose: i32,
    /// The factor, and the number of notes left.
    tuplet: Option<(Fraction, u32)>,
    /// The factor of the next note, from broken rhythm.
    broken: Option<Fraction>,
    /// The previous note, chord or rest, unless it is the second of a broken pair.
    last: Option<usize>,
    graces: Vec<(i32, Fraction)>,
    grace_divider: u32,
    staccato: bool,
    ornament: Option<OrnamentKind>,
    accent: bool,
    force: i32,
    /// The line of music that lyrics are aligned with.
    slots: Vec<Slot>,
    line_is_open: bool,
    n_verses: usize,
    /// Whether this bar's length can be compared with the meter.
    pub(super) is_measured: bool,
    /// Whether the previous bar line was a double one or a repeat.
    pub(super) after_strong: bool,
}

impl VoiceState {
    pub(super) fn new(unit: Fraction, meter: Meter, key: &Key, reach: Reach) -> Self {
        let zero = Fraction::from_integer(0);
        Self {
            id: String::new(),
            name: String::new(),
            steps: Vec::new(),
            notes: Vec::new(),
            time: zero,
            bar_start: zero,
            bar_end: zero,
            unit,
            meter,
            resolver: Resolver::new(key.signature(), reach),
            octaves: 0,
            transpose: 0,
            midi_transpose: 0,
            tuplet: None,
            broken: None,
            last: None,
            graces: Vec::new(),
            grace_divider: GRACE_DIVIDER,
            staccato: false,
            ornament: None,
            accent: false,
            force: 0,
            slots: Vec::new(),
            line_is_open: false,
            n_verses: 0,
            is_measured: true,
            after_strong: true,
        }
    }

    pub(super) fn set_properties(&mut self, properties: &Properties) {
        self.octaves = properties.octaves().unwrap_or(self.octaves);
        self.transpose = properties.transpose().unwrap_or(self.transpose);
    }

    /// Returns this voice under another name.
    pub(super) fn named(&self, id: &str) -> Self {
        Self { id: id.to_owned(), ..self.clone() }
    }

    pub(super) fn push(&mut self, kind: StepKind) {
        self.steps.push(Step { at: self.time, kind });
    }

    /// Applies a `%%MIDI` line: some change how music is read, all are passed on to the
    /// performance.
    pub(super) fn midi(&mut self, command: &MidiCommand) {
        self.obey(command);
        self.push(StepKind::Control(Control::Midi(Box::new(command.clone()))));
    }

    pub(super) fn obey(&mut self, command: &MidiCommand) {
        match command {
            MidiCommand::Transpose(semitones) => self.midi_transpose = *semitones,
            MidiCommand::TransposeMore(semitones) => {
                self.midi_transpose = (self.midi_transpose + semitones).clamp(-120, 120);
            }
            MidiCommand::GraceDivider(divider) => self.grace_divider = *divider,
            MidiCommand::Program { .. }
            | MidiCommand::Channel(_)
            | MidiCommand::ChordPattern(_)
            | MidiCommand::Chords(_)
            | MidiCommand::ChordProgram(_)
            | MidiCommand::BassProgram(_)
            | MidiCommand::ChordVolume(_)
            | MidiCommand::BassVolume(_)
            | MidiCommand::Drum(_)
            | MidiCommand::Drums(_)
            | MidiCommand::Other => {}
        }
    }

    fn key(&self, pitch: &Pitch, alteration: i32) -> i32 {
        pitch.midi(alteration) + 12 * self.octaves + self.transpose + self.midi_transpose
    }

    /// Adds a note, or a chord with its outer length and tie.
    pub(super) fn sound(
        &mut self,
        notes: &[Note],
        outer: Option<(Fraction, bool)>,
    ) -> Result<(), PlayError> {
        let Some(first) = notes.first() else { return Ok(()) };
        let mut factor = self.unit;
        if let Some(rhythm) = self.next_factor()? {
            factor = multiply(factor, rhythm)?;
        }
        if let Some((length, _)) = outer {
            factor = multiply(factor, length)?;
        }
        let outer_tie = outer.is_some_and(|(_, tie)| tie);
        let notes_from = self.notes.len();
        for note in notes {
            let tie = note.tie || outer_tie;
            let alteration = self.resolver.next_note(&note.pitch, tie);
            let key = self.key(&note.pitch, alteration);
            let duration = multiply(note.length, factor)?;
            self.notes.push(SoundingNote { key, duration, tie });
        }
        self.resolver.end_sound();
        let ornament = self.ornament.take().map(|kind| self.ornament(kind, &first.pitch));
        let graces = std::mem::take(&mut self.graces);
        let has_more = ornament.is_some() || !graces.is_empty();
        let sound = Sound {
            notes: notes_from..self.notes.len(),
            duration: self.notes[notes_from].duration,
            staccato: std::mem::take(&mut self.staccato),
            force: self.force + if std::mem::take(&mut self.accent) { ACCENT } else { 0 },
            more: has_more.then(|| Box::new(SoundExtras { graces, ornament, verses: Vec::new() })),
        };
        if !self.line_is_open {
            self.slots.clear();
            self.line_is_open = true;
        }
        self.slots.push(Slot::Note(self.steps.len()));
        self.advance(sound)
    }

    /// Returns an ornament with the neighbours of a note.
    fn ornament(&self, kind: OrnamentKind, pitch: &Pitch) -> Ornament {
        let neighbour = |steps| {
            let (letter, octaves) = pitch.letter.shifted(steps);
            let pitch = Pitch { letter, octave: pitch.octave + octaves, accidental: None };
            self.key(&pitch, self.resolver.plain(&pitch))
        };
        Ornament { kind, upper: neighbour(1), lower: neighbour(-1), unit: self.unit }
    }

    pub(super) fn rest(&mut self, duration: Fraction) -> Result<(), PlayError> {
        let duration = match self.next_factor()? {
            Some(factor) => multiply(duration, factor)?,
            None => duration,
        };
        self.resolver.tie(std::iter::empty());
        (self.staccato, self.accent, self.ornament) = (false, false, None);
        self.advance(Sound { duration, ..Sound::default() })
    }

    fn advance(&mut self, sound: Sound) -> Result<(), PlayError> {
        let duration = sound.duration;
        let is_second = self.broken.take().is_some();
        self.last = (!is_second).then_some(self.steps.len());
        self.push(StepKind::Sound(sound));
        self.time = add(self.time, duration)?;
        Ok(())
    }

    /// Returns the factor of the next note from tuplets and broken rhythm, if any.
    fn next_factor(&mut self) -> Result<Option<Fraction>, PlayError> {
        let Some((ratio, n_left)) = self.tuplet else { return Ok(self.broken) };
        self.tuplet = (n_left > 1).then_some((ratio, n_left - 1));
        Ok(Some(match self.broken {
            Some(broken) => multiply(broken, ratio)?,
            None => ratio,
        }))
    }

    pub(super) fn start_tuplet(&mut self, tuplet: Tuplet) {
        let Tuplet { p, q, r } = tuplet;
        let by_meter = if self.meter.is_compound() { 3 } else { 2 };
        let q = q.unwrap_or(match p {
            2 | 4 | 8 => 3,
            3 | 6 => 2,
            _ => by_meter,
        });
        let ratio = Fraction::new(i64::from(q), i64::from(p.max(1)));
        self.tuplet = Some((ratio, r.unwrap_or(p)));
    }

    /// Changes the previous note and remembers the factor of the next; `false` without a previous
    /// note.
    pub(super) fn broken(&mut self, n: u32, long_first: bool) -> Result<bool, PlayError> {
        let short = Fraction::new(1, 1 << n.min(8));
        let long = Fraction::from_integer(2) - short;
        let (before, after) = if long_first { (long, short) } else { (short, long) };
        let Some(Step { kind: StepKind::Sound(sound), .. }) =
            self.last.and_then(|last| self.steps.get_mut(last))
        else {
            return Ok(false);
        };
        let duration = multiply(sound.duration, before)?;
        let change = subtract(duration, sound.duration)?;
        sound.duration = duration;
        for note in &mut self.notes[sound.notes.clone()] {
            note.duration = multiply(note.duration, before)?;
        }
        self.time = add(self.time, change)?;
        self.broken = Some(after);
        Ok(true)
    }

    pub(super) fn grace(&mut self, note: &Note) -> Result<(), PlayError> {
        let alteration = self.resolver.alteration(&note.pitch);
        let key = self.key(&note.pitch, alteration);
        let divider = Fraction::new(1, i64::from(self.grace_divider));
        let mut duration = multiply(multiply(note.length, self.unit)?, divider)?;
        if let Some((ratio, _)) = self.tuplet {
            duration = multiply(duration, ratio)?;
        }
        self.graces.push((key, duration));
        Ok(())
    }

    pub(super) fn decorate(&mut self, name: &str) {
        if let Some((_, force)) = DYNAMICS.iter().find(|(known, _)| *known == name) {
            self.force = *force;
        }
        self.ornament = OrnamentKind::from_name(name).or(self.ornament);
        match name {
            "staccato" => self.staccato = true,
            "accent" | ">" | "emphasis" => self.accent = true,
            _ => {}
        }
    }

    /// Starts the bar again in another layer.
    pub(super) fn overlay(&mut self) {
        self.bar_end = later(self.bar_end, self.time);
        self.time = self.bar_start;
        self.last = None;
        self.tuplet = None;
        self.resolver.bar_line();
    }

    /// Moves to the end of the longest layer.
    pub(super) fn close_bar(&mut self) {
        self.time = later(self.time, self.bar_end);
    }

    pub(super) fn start_bar(&mut self) {
        self.bar_start = self.time;
        self.bar_end = self.time;
        self.is_measured = true;
        self.last = None;
        self.resolver.bar_line();
        if self.line_is_open {
            self.slots.push(Slot::Bar);
        }
    }

    pub(super) fn end_line(&mut self) {
        self.line_is_open = false;
        self.n_verses = 0;
    }

    /// Puts syllables under the previous line of music; returns the number without a note.
    pub(super) fn lyrics(&mut self, syllables: &[Syllable]) -> usize {
        let verse = self.n_verses;
        if verse >= VERSES_MAX {
            return 0;
        }
        self.n_verses += 1;
        let (sung, n_left) = align(&self.slots, syllables);
        for (step_idx, text) in sung {
            if let Some(Step { kind: StepKind::Sound(sound), .. }) = self.steps.get_mut(step_idx) {
                let verses = &mut sound.more.get_or_insert_default().verses;
                verses.resize(verse.max(verses.len()), None);
                verses.push(Some(text));
            }
        }
        n_left
    }

    /// Puts symbols over the previous line of music.
    pub(super) fn symbols(&mut self, symbols: &[Syllable]) {
        if self.n_verses >= VERSES_MAX {
            return;
        }
        let (found, _) = align(&self.slots, symbols);
        for (step_idx, symbol) in found {
            let Some(step) = self.steps.get_mut(step_idx) else { continue };
            if let StepKind::Sound(sound) = &mut step.kind {
                match symbol.trim_matches('!') {
                    "staccato" => sound.staccato = true,
                    "accent" | ">" | "emphasis" => sound.force += ACCENT,
                    _ => {}
                }
            }
        }
    }
}
