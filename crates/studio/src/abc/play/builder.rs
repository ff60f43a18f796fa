//! Builds a [`Score`]: reads a tune's items one by one and tracks the state of each voice.

use std::cmp::Ordering;

use super::super::diagnostic::Diagnostics;
use super::super::exact::{compare, multiply, subtract};
use super::super::key::Key;
use super::super::lyrics;
use super::super::midi_command::MidiCommand;
use super::super::model::{
    Bar, BarStyle, Element, Field, Fraction, Item, KeyField, Meter, Note, Place, Properties, Tune,
    VoiceField,
};
use super::super::resolver::Reach;
use super::super::text::unescape;
use super::PlayError;
use super::score::{Control, Score, StepKind, Voice};
use super::voice::VoiceState;

/// Further voices are merged: a MIDI file has sixteen channels.
const VOICES_MAX: usize = 64;

/// The score under construction, and the current place.
pub(super) struct Builder<'a> {
    diagnostics: &'a mut Diagnostics,
    score: Score,
    /// The initial state of a voice.
    template: VoiceState,
    voices: Vec<VoiceState>,
    /// The current voice; `None` until music or `V:` names one.
    current: Option<usize>,
    /// The number of items in the body.
    n_items: usize,
}

impl<'a> Builder<'a> {
    pub(super) fn new(
        file_header: &[Field],
        tune: &Tune,
        diagnostics: &'a mut Diagnostics,
    ) -> Self {
        let mut meter = Meter::Common;
        let (mut unit, mut tempo, mut title, mut parts) = (None, None, None, None);
        let (mut key, mut properties) = (Key::c_major(), Properties::default());
        let mut reach = Reach::default();
        for field in file_header.iter().chain(&tune.header) {
            match field {
                Field::Meter(found) => meter = found.clone(),
                Field::UnitLength(found) => unit = Some(*found),
                Field::Tempo(found) => tempo = Some(found.clone()),
                Field::Key(KeyField { key: found, properties: more }) => {
                    key = found.clone().unwrap_or(key);
                    properties = more.clone();
                }
                Field::Parts(order) => parts = Some(order.clone()),
                Field::Text { letter: 'T', text } if title.is_none() => {
                    title = Some(unescape(text));
                }
                Field::Directive(_) => reach = Reach::from_field(field).unwrap_or(reach),
                Field::Reference(_)
                | Field::Voice(_)
                | Field::Lyrics(_)
                | Field::Symbols(_)
                | Field::Midi { .. }
                | Field::Text { .. } => {}
            }
        }
        let unit = unit.unwrap_or_else(|| meter.unit_length());
        let mut template = VoiceState::new(unit, meter.clone(), &key, reach);
        template.set_properties(&properties);
        let tempo = tempo.and_then(|tempo| tempo.quarters_per_minute(unit));
        let score =
            Score { title, parts, voices: Vec::new(), meter, key, tempo, commands: Vec::new() };
        let n_items = tune.body.len();
        let voices = Vec::new();
        let mut builder = Self { diagnostics, score, template, voices, current: None, n_items };
        builder.declare_voices(tune, file_header);
        builder
    }

    /// Declares the voices of the header, with its `%%MIDI` lines for them.
    fn declare_voices(&mut self, tune: &Tune, file_header: &[Field]) {
        let mut declared = None;
        for field in file_header.iter().chain(&tune.header) {
            if let Field::Voice(voice) = field {
                declared = Some(self.voice(voice));
            }
            if let Field::Midi { command, .. } = field {
                match declared {
                    Some(voice_idx) => self.voices[voice_idx].midi(command),
                    None => {
                        self.template.obey(command);
                        self.score.commands.push(command.clone());
                    }
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> Score {
        if self.voices.is_empty() {
            self.current_voice();
        }
        for mut voice in self.voices {
            voice.close_bar();
            self.score.voices.push(Voice {
                id: voice.id,
                name: voice.name,
                steps: voice.steps,
                notes: voice.notes,
                end: voice.time,
            });
        }
        self.score
    }

    pub(super) fn item(&mut self, item: &Item) -> Result<(), PlayError> {
        let at = item.at;
        match &item.element {
            Element::Note(note) => self.notes(std::slice::from_ref(note), None)?,
            Element::Chord(chord) => self.notes(&chord.notes, Some((chord.length, chord.tie)))?,
            Element::Rest { length, .. } => {
                let voice = self.current_voice();
                let duration = multiply(*length, voice.unit)?;
                voice.rest(duration)?;
            }
            Element::BarRest { bars, .. } => self.bar_rest(at, *bars)?,
            Element::Grace { notes, .. } => {
                let voice = self.current_voice();
                for note in notes {
                    voice.grace(note)?;
                }
            }
            Element::Bar(bar) => self.bar(at, *bar)?,
            Element::Ending(numbers) => {
                let voice = self.current_voice();
                voice.push(StepKind::Ending(numbers.clone()));
            }
            Element::Tuplet(tuplet) => self.current_voice().start_tuplet(*tuplet),
            Element::Broken { n, long_first } => {
                if !self.current_voice().broken(*n, *long_first)? {
                    let help = "put `>` or `<` between two notes, and each note in one pair only";
                    self.diagnostics.warning(at, "broken rhythm without a note to change", help);
                }
            }
            Element::Decoration(name) => self.current_voice().decorate(name),
            Element::Quoted(text) => self.quoted(text),
            Element::Overlay => self.current_voice().overlay(),
            Element::LineEnd { continued } => {
                if !continued {
                    self.current_voice().end_line();
                }
            }
            Element::Field { field, .. } => self.field(at, field),
            Element::Spacer | Element::SlurOpen | Element::SlurClose | Element::Space => {}
        }
        Ok(())
    }

    fn notes(&mut self, notes: &[Note], outer: Option<(Fraction, bool)>) -> Result<(), PlayError> {
        self.current_voice().sound(notes, outer)
    }

    fn bar_rest(&mut self, at: Place, bars: u32) -> Result<(), PlayError> {
        let voice = self.current_voice();
        let Some(bar) = voice.meter.bar() else {
            let help = "give a meter with `M:`, or write the rest with `z`";
            self.diagnostics.warning(at, "a rest of whole bars without a meter", help);
            return Ok(());
        };
        let duration = multiply(bar, Fraction::from_integer(i64::from(bars)))?;
        voice.rest(duration)?;
        // It spans bar lines of its own, so its bar is not measured.
        voice.is_measured = false;
        Ok(())
    }

    fn bar(&mut self, at: Place, bar: Bar) -> Result<(), PlayError> {
        let is_strong = bar.repeats_before > 0
            || bar.repeats_after > 0
            || !matches!(bar.style, BarStyle::Single | BarStyle::Dotted | BarStyle::Invisible);
        let voice = self.current_voice();
        voice.close_bar();
        let length = subtract(voice.time, voice.bar_start)?;
        let expected = voice.meter.bar().filter(|_| voice.is_measured);
        let after_strong = std::mem::replace(&mut voice.after_strong, is_strong);
        let is_pickup = is_strong || after_strong;
        let wrong = expected.filter(|expected| {
            *length.numer() != 0
                && match compare(length, *expected) {
                    Ordering::Less => !is_pickup,
                    Ordering::Equal => false,
                    Ordering::Greater => true,
                }
        });
        voice.start_bar();
        let Bar { repeats_before, repeats_after, style } = bar;
        voice.push(StepKind::Bar { repeats_before, repeats_after, style });
        if let Some(expected) = wrong {
            let message =
                format!("this bar has {length} of a whole note, but the meter requires {expected}");
            let help = "correct the lengths, the bar line or `M:`";
            self.diagnostics.warning(at, message, help);
        }
        Ok(())
    }

    fn quoted(&mut self, text: &str) {
        // Text that starts with one of these signs is only printed.
        if !text.starts_with(['^', '_', '<', '>', '@']) {
            let text = unescape(text);
            self.current_voice().push(StepKind::Symbol(text));
        }
    }

    fn field(&mut self, at: Place, field: &Field) {
        match field {
            Field::Voice(voice) => self.current = Some(self.voice(voice)),
            Field::Parts(label) => {
                if let Some(label) = label.chars().find(|c| c.is_alphabetic()) {
                    self.part(label);
                }
            }
            Field::Meter(meter) => self.each(|voice| {
                voice.meter = meter.clone();
                voice.is_measured = voice.time == voice.bar_start;
                voice.push(StepKind::Control(Control::Meter(meter.clone())));
            }),
            Field::UnitLength(unit) => self.each(|voice| voice.unit = *unit),
            Field::Key(KeyField { key, properties }) => self.each(|voice| {
                voice.set_properties(properties);
                if let Some(key) = key {
                    voice.resolver.set_signature(key.signature());
                    voice.push(StepKind::Control(Control::Key(key.clone())));
                }
            }),
            Field::Tempo(tempo) => {
                let voice = self.current_voice();
                if let Some(tempo) = tempo.quarters_per_minute(voice.unit) {
                    voice.push(StepKind::Control(Control::Tempo(tempo)));
                }
            }
            Field::Midi { command, .. } => self.midi(command),
            Field::Lyrics(text) => self.lyrics(at, text),
            Field::Symbols(text) => {
                let symbols = lyrics::symbols(text);
                self.current_voice().symbols(&symbols);
            }
            Field::Directive(_) => {
                if let Some(reach) = Reach::from_field(field) {
                    self.each(|voice| voice.resolver.set_reach(reach));
                }
            }
            Field::Reference(_) | Field::Text { .. } => {}
        }
    }

    fn midi(&mut self, command: &MidiCommand) {
        self.current_voice().midi(command);
    }

    fn lyrics(&mut self, at: Place, text: &str) {
        let syllables = lyrics::syllables(text);
        let n_left = self.current_voice().lyrics(&syllables);
        if n_left > 0 {
            let message = format!("{n_left} more syllables than notes in the line of music above");
            let help = "use `_` and `*` for notes without a syllable, and one `w:` for each line";
            self.diagnostics.warning(at, message, help);
        }
    }

    fn part(&mut self, label: char) {
        // The template has the parts so far, for voices that start later.
        self.template.push(StepKind::Part(label));
        for voice in &mut self.voices {
            voice.push(StepKind::Part(label));
        }
    }

    /// Applies a change to all voices before the body names one; then to that voice.
    fn each(&mut self, change: impl Fn(&mut VoiceState)) {
        match self.current {
            Some(voice_idx) => change(&mut self.voices[voice_idx]),
            None if self.voices.is_empty() => change(self.current_voice()),
            None => self.voices.iter_mut().for_each(change),
        }
    }

    fn current_voice(&mut self) -> &mut VoiceState {
        let voice_idx = match self.current {
            Some(voice_idx) => voice_idx,
            None => {
                if self.voices.is_empty() {
                    let mut voice = self.template.named("1");
                    // Nearly all of the body belongs to this voice, and nearly every item is a
                    // step.
                    voice.steps.reserve(self.n_items);
                    voice.notes.reserve(self.n_items);
                    self.voices.push(voice);
                }
                0
            }
        };
        self.current = Some(voice_idx);
        &mut self.voices[voice_idx]
    }

    /// Returns the voice of a field, and creates it if it is new.
    fn voice(&mut self, field: &VoiceField) -> usize {
        let known = self.voices.iter().position(|voice| voice.id == field.id);
        let voice_idx = known.unwrap_or_else(|| {
            if self.voices.len() < VOICES_MAX {
                self.voices.push(self.template.named(&field.id));
            }
            self.voices.len() - 1
        });
        let voice = &mut self.voices[voice_idx];
        voice.set_properties(&field.properties);
        if let Some(name) = field.properties.get("name") {
            voice.name = name.to_owned();
        }
        voice_idx
    }
}
