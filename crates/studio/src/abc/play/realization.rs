//! From a score to a performance: expands repeats, joins ties, gives time to grace notes.

use super::super::accompaniment::Accompaniment;
use super::super::exact::{add, compare, divide, later, multiply, subtract};
use super::super::midi_command::MidiCommand;
use super::super::model::Fraction;
use super::order::{self, Stretch};
use super::score::{Control, Score, Sound, Step, StepKind, Voice};
use super::{Line, NOTES_MAX, Options, Performance, PlayError, PlayedNote, ornament};

/// The tempo of a tune without one.
const TEMPO_DEFAULT: i64 = 120;

/// The drum channel, which no voice gets by default.
const DRUM_CHANNEL: u8 = 9;

/// Performs a score.
pub(super) fn realize(score: &Score, options: &Options) -> Result<Performance, PlayError> {
    let mut performance = Performance { title: score.title.clone(), ..Performance::default() };
    let mut n_notes = 0;
    let mut accompaniment = Accompaniment::new(score, options.chords);
    for (voice_idx, voice) in score.voices.iter().enumerate() {
        let mut player = Player {
            voice,
            options,
            line: Line { name: line_name(voice), ..Line::default() },
            time: Fraction::from_integer(0),
            tied: Vec::new(),
            n_notes,
            performance: &mut performance,
            accompaniment: &mut accompaniment,
            is_first: voice_idx == 0,
        };
        player.line.channel = channel(options.channel, voice_idx);
        player.line.notes.reserve(voice.notes.len());
        player.header(score);
        for stretch in order::stretches(score, voice)? {
            player.stretch(stretch)?;
        }
        n_notes = player.n_notes;
        let (line, end) = (player.line, player.time);
        performance.end = later(performance.end, end);
        performance.lines.push(line);
    }
    finish(&mut performance, score, options);
    let channels: Vec<u8> = performance.lines.iter().map(|line| line.channel).collect();
    let lines = accompaniment.lines(performance.end, options, &channels, NOTES_MAX - n_notes)?;
    performance.lines.extend(lines);
    Ok(performance)
}

fn line_name(voice: &Voice) -> String {
    if voice.name.is_empty() { voice.id.clone() } else { voice.name.clone() }
}

/// Returns a channel for each voice, from the first on, without the drum channel.
fn channel(first: u8, voice_idx: usize) -> u8 {
    let is_melodic = |channel: &u8| *channel != DRUM_CHANNEL || first == *channel;
    let melodic = (0..16).map(|n| (first + n) % 16).filter(is_melodic);
    melodic.cycle().nth(voice_idx).unwrap_or(first)
}

/// Sorts tempo, meter and key, which apply to the whole performance; the first is at 0.
fn finish(performance: &mut Performance, score: &Score, options: &Options) {
    let zero = Fraction::from_integer(0);
    let default = score.tempo.unwrap_or_else(|| Fraction::from_integer(TEMPO_DEFAULT));
    if let Some(tempo) = options.tempo {
        performance.tempos = vec![(zero, Fraction::from_integer(i64::from(tempo)))];
    } else {
        performance.tempos.sort_by_key(|(at, _)| *at);
        if performance.tempos.first().is_none_or(|(at, _)| *at > zero) {
            performance.tempos.insert(0, (zero, default));
        }
    }
    for line in &mut performance.lines {
        line.notes.sort_by(|a, b| compare(a.onset, b.onset).then(a.key.cmp(&b.key)));
    }
}

struct Player<'a> {
    voice: &'a Voice,
    options: &'a Options,
    line: Line,
    /// The start of the current stretch.
    time: Fraction,
    /// Tied notes: their key, their index in the line and their end. Each key once, and hardly ever
    /// more than the notes of a chord.
    tied: Vec<(u8, usize, Fraction)>,
    n_notes: usize,
    performance: &'a mut Performance,
    accompaniment: &'a mut Accompaniment,
    /// Whether this is the first voice, whose meters and keys are the file's.
    is_first: bool,
}

impl Player<'_> {
    fn header(&mut self, score: &Score) {
        let zero = Fraction::from_integer(0);
        if self.is_first {
            self.performance.meters.extend(score.meter.numbers().map(|numbers| (zero, numbers)));
            self.performance.keys.push((zero, key_numbers(&score.key)));
        }
        for command in &score.commands {
            self.midi(zero, command);
        }
    }

    fn stretch(&mut self, stretch: Stretch) -> Result<(), PlayError> {
        let Stretch { from, to, pass } = stretch;
        let start = self.voice.time(from);
        // The time of the performance that corresponds to the written time 0.
        let shift = subtract(self.time, start)?;
        self.accompaniment.bar(self.time, self.is_first);
        for step in &self.voice.steps[from..to] {
            let at = add(step.at, shift)?;
            self.step(step, at, pass)?;
        }
        self.time = add(self.voice.time(to), shift)?;
        Ok(())
    }

    fn step(&mut self, step: &Step, at: Fraction, pass: u32) -> Result<(), PlayError> {
        match &step.kind {
            StepKind::Sound(sound) => self.sound(sound, at, pass)?,
            StepKind::Symbol(text) => self.accompaniment.symbol(at, text),
            StepKind::Bar { .. } => self.accompaniment.bar(at, self.is_first),
            StepKind::Control(control) => self.control(control, at),
            StepKind::Ending(_) | StepKind::Part(_) => {}
        }
        Ok(())
    }

    fn control(&mut self, control: &Control, at: Fraction) {
        match control {
            Control::Tempo(tempo) => self.performance.tempos.push((at, *tempo)),
            Control::Meter(meter) => {
                if self.is_first {
                    self.performance.meters.extend(meter.numbers().map(|numbers| (at, numbers)));
                    self.accompaniment.meter(at, meter);
                }
            }
            Control::Key(key) => {
                if self.is_first {
                    self.performance.keys.push((at, key_numbers(key)));
                }
            }
            Control::Midi(command) => self.midi(at, command),
        }
    }

    fn midi(&mut self, at: Fraction, command: &MidiCommand) {
        match command {
            MidiCommand::Program { program, .. } => self.line.programs.push((at, *program)),
            MidiCommand::Channel(channel) => self.line.channel = *channel,
            MidiCommand::ChordPattern(_)
            | MidiCommand::Chords(_)
            | MidiCommand::ChordProgram(_)
            | MidiCommand::BassProgram(_)
            | MidiCommand::ChordVolume(_)
            | MidiCommand::BassVolume(_)
            | MidiCommand::Drum(_)
            | MidiCommand::Drums(_) => self.accompaniment.command(at, command),
            MidiCommand::Transpose(_)
            | MidiCommand::TransposeMore(_)
            | MidiCommand::GraceDivider(_)
            | MidiCommand::Other => {}
        }
    }

    fn sound(&mut self, sound: &Sound, at: Fraction, pass: u32) -> Result<(), PlayError> {
        let velocity = (i32::from(self.options.velocity) + sound.force).clamp(1, 127) as u8;
        let (mut taken, mut onset, mut ornament) = (Fraction::from_integer(0), at, None);
        if let Some(more) = &sound.more {
            let verse = more.verses.get(pass as usize - 1).or(more.verses.first());
            self.line.lyrics.extend(verse.cloned().flatten().map(|text| (at, text)));
            taken = self.graces(&more.graces, sound.duration, at, velocity)?;
            onset = add(at, taken)?;
            ornament = more.ornament.as_ref();
        }
        let voice = self.voice;
        let notes = &voice.notes[sound.notes.clone()];
        if let ([note], Some(ornament)) = (notes, ornament)
            && !note.tie
            && !self.is_tied(note.key)
        {
            let time = (onset, subtract(note.duration, taken)?);
            return ornament::notes(ornament, note.key, time, &mut |key, onset, duration| {
                self.note(key, (onset, duration), velocity, false)
            });
        }
        for note in notes {
            let mut duration = subtract(note.duration, taken)?;
            if *duration.numer() <= 0 {
                // This note of the chord is shorter than the grace notes before it.
                duration = note.duration;
            }
            if sound.staccato && !note.tie {
                duration = multiply(duration, Fraction::new(1, 2))?;
            }
            let tie = note.tie;
            self.note(note.key, (onset, duration), velocity, tie)?;
        }
        Ok(())
    }

    /// Returns whether a note is the second of a tie.
    fn is_tied(&self, key: i32) -> bool {
        let key = u8::try_from(key + self.options.transpose).ok();
        key.is_some_and(|key| self.tied.iter().any(|(tied, ..)| *tied == key))
    }

    /// Plays the grace notes before a sound; returns the time they take from it, at most half.
    fn graces(
        &mut self,
        graces: &[(i32, Fraction)],
        sound_duration: Fraction,
        at: Fraction,
        velocity: u8,
    ) -> Result<Fraction, PlayError> {
        let zero = Fraction::from_integer(0);
        let mut total = zero;
        for (_, duration) in graces {
            total = add(total, *duration)?;
        }
        if total == zero {
            return Ok(zero);
        }
        let half = multiply(sound_duration, Fraction::new(1, 2))?;
        let scale = if total > half { divide(half, total)? } else { Fraction::from_integer(1) };
        let mut onset = at;
        for (key, duration) in graces {
            let duration = multiply(*duration, scale)?;
            self.note(*key, (onset, duration), velocity, false)?;
            onset = add(onset, duration)?;
        }
        subtract(onset, at)
    }

    /// Plays a note, joined with the one it is tied to. Keys outside MIDI are silent.
    fn note(
        &mut self,
        key: i32,
        (onset, duration): (Fraction, Fraction),
        velocity: u8,
        tie: bool,
    ) -> Result<(), PlayError> {
        let Some(key) = u8::try_from(key + self.options.transpose).ok().filter(|key| *key < 128)
        else {
            return Ok(());
        };
        let end = add(onset, duration)?;
        let known = self.tied.iter().position(|(tied, ..)| *tied == key);
        let before = known.map(|tied_idx| self.tied.swap_remove(tied_idx));
        let note_idx = match before.filter(|(.., tied_end)| *tied_end == onset) {
            Some((_, note_idx, _)) => {
                let longer = add(self.line.notes[note_idx].duration, duration)?;
                self.line.notes[note_idx].duration = longer;
                note_idx
            }
            None => {
                self.n_notes += 1;
                if self.n_notes > NOTES_MAX {
                    return Err(PlayError::TooManyNotes);
                }
                self.line.notes.push(PlayedNote { onset, duration, key, velocity });
                self.line.notes.len() - 1
            }
        };
        if tie {
            self.tied.push((key, note_idx, end));
        }
        Ok(())
    }
}

fn key_numbers(key: &super::super::key::Key) -> (i8, bool) {
    (key.fifths().clamp(-7, 7) as i8, key.is_minor())
}
