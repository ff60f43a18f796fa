//! Chord symbols as bass and chords, and drums, bar by bar.

mod symbol;

use super::exact::{add, divide, multiply};
use super::midi_command::{DrumPattern, MidiCommand, steps};
use super::model::{Fraction, Meter};
use super::play::score::Score;
use super::play::{Line, Options, PlayError, PlayedNote};

pub(super) use symbol::{ChordSymbol, transpose_symbol};

/// Velocities of bass and chords unless the tune sets others.
const BASS_VELOCITY: u8 = 80;
const CHORD_VELOCITY: u8 = 75;
/// The drum channel.
const DRUM_CHANNEL: u8 = 9;

/// The input of the accompaniment, collected while the voices are played.
#[derive(Debug)]
pub(super) struct Accompaniment {
    /// Whether chord symbols are played.
    chords: bool,
    bars: Vec<Fraction>,
    symbols: Vec<(Fraction, ChordSymbol)>,
    meters: Vec<(Fraction, Meter)>,
    commands: Vec<(Fraction, MidiCommand)>,
}

/// The settings of a bar.
#[derive(Debug)]
struct Style {
    /// An explicit pattern, and its start.
    pattern: Option<(Fraction, Vec<(char, u32)>)>,
    chords: bool,
    chord_velocity: u8,
    bass_velocity: u8,
    drum: Option<DrumPattern>,
    drums: bool,
}

impl Style {
    fn obey(&mut self, since: Fraction, command: &MidiCommand) {
        match command {
            MidiCommand::ChordPattern(text) => {
                self.pattern = steps(text, "fcbzghijGHIJ").ok().map(|pattern| (since, pattern));
            }
            MidiCommand::Chords(on) => self.chords = *on,
            MidiCommand::ChordVolume(velocity) => self.chord_velocity = (*velocity).max(1),
            MidiCommand::BassVolume(velocity) => self.bass_velocity = (*velocity).max(1),
            MidiCommand::Drum(pattern) => self.drum = Some(pattern.clone()),
            MidiCommand::Drums(on) => self.drums = *on,
            MidiCommand::Program { .. }
            | MidiCommand::Channel(_)
            | MidiCommand::Transpose(_)
            | MidiCommand::TransposeMore(_)
            | MidiCommand::ChordProgram(_)
            | MidiCommand::BassProgram(_)
            | MidiCommand::GraceDivider(_)
            | MidiCommand::Other => {}
        }
    }
}

impl Default for Style {
    fn default() -> Self {
        Self {
            pattern: None,
            chords: true,
            chord_velocity: CHORD_VELOCITY,
            bass_velocity: BASS_VELOCITY,
            drum: None,
            drums: false,
        }
    }
}

impl Accompaniment {
    pub(super) fn new(score: &Score, chords: bool) -> Self {
        let zero = Fraction::from_integer(0);
        Self {
            chords,
            bars: Vec::new(),
            symbols: Vec::new(),
            meters: vec![(zero, score.meter.clone())],
            commands: Vec::new(),
        }
    }

    /// Starts a bar; only the first voice counts them.
    pub(super) fn bar(&mut self, at: Fraction, is_first: bool) {
        if is_first && self.bars.last() != Some(&at) {
            self.bars.push(at);
        }
    }

    pub(super) fn symbol(&mut self, at: Fraction, text: &str) {
        if self.chords {
            self.symbols.extend(ChordSymbol::parse(text).map(|symbol| (at, symbol)));
        }
    }

    pub(super) fn meter(&mut self, at: Fraction, meter: &Meter) {
        self.meters.push((at, meter.clone()));
    }

    pub(super) fn command(&mut self, at: Fraction, command: &MidiCommand) {
        self.commands.push((at, command.clone()));
    }

    /// Returns the lines of bass, chords and drums; none if there is nothing to play.
    pub(super) fn lines(
        mut self,
        end: Fraction,
        options: &Options,
        used: &[u8],
        notes_max: usize,
    ) -> Result<Vec<Line>, PlayError> {
        let has_drums = self.commands.iter().any(|(_, it)| *it == MidiCommand::Drums(true));
        if !self.chords && !has_drums {
            return Ok(Vec::new());
        }
        self.symbols.sort_by_key(|(at, _)| *at);
        let free = |taken: &[u8]| {
            (0..16).find(|c| *c != DRUM_CHANNEL && !used.contains(c) && !taken.contains(c))
        };
        let bass_channel = free(&[]).unwrap_or(14);
        let chord_channel = free(&[bass_channel]).unwrap_or(15);
        let line = |name: &str, channel| Line { name: name.to_owned(), channel, ..Line::default() };
        let mut bass = line("bass", bass_channel);
        let mut chords = line("chords", chord_channel);
        let mut drums = line("drums", DRUM_CHANNEL);
        self.commands.sort_by_key(|(at, _)| *at);
        self.programs(&mut bass, &mut chords);
        let mut commands = self.commands.iter().peekable();
        let mut style = Style::default();
        for (bar_idx, from) in self.bars.iter().enumerate() {
            let to = self.bars.get(bar_idx + 1).copied().unwrap_or(end);
            let bar = Bar { from: *from, to, meter: latest(&self.meters, *from) };
            while let Some((since, command)) = commands.next_if(|(since, _)| since <= from) {
                style.obey(*since, command);
            }
            if self.chords && style.chords {
                self.chord_bar(&bar, &style, options, &mut bass, &mut chords)?;
            }
            if style.drums {
                drum_bar(&bar, &style, &mut drums)?;
            }
            if bass.notes.len() + chords.notes.len() + drums.notes.len() > notes_max {
                return Err(PlayError::TooManyNotes);
            }
        }
        Ok([bass, chords, drums].into_iter().filter(|line| !line.notes.is_empty()).collect())
    }

    fn programs(&self, bass: &mut Line, chords: &mut Line) {
        for (at, command) in &self.commands {
            if let MidiCommand::BassProgram(program) = command {
                bass.programs.push((*at, *program));
            }
            if let MidiCommand::ChordProgram(program) = command {
                chords.programs.push((*at, *program));
            }
        }
    }

    /// Returns the pattern of a bar: that of the last command, unless the meter has changed since.
    fn pattern(&self, style: &Style, bar: &Bar<'_>) -> Option<Vec<(char, u32)>> {
        let after = self.meters.partition_point(|(since, _)| *since <= bar.from);
        let meter_since = self.meters[..after].last().map(|(since, _)| *since);
        match &style.pattern {
            Some((since, pattern)) if Some(*since) >= meter_since => Some(pattern.clone()),
            Some(_) | None => {
                let own = bar.meter.and_then(own_pattern)?;
                steps(own, "fcz").ok()
            }
        }
    }

    fn chord_bar(
        &self,
        bar: &Bar<'_>,
        style: &Style,
        options: &Options,
        bass: &mut Line,
        chords: &mut Line,
    ) -> Result<(), PlayError> {
        let Some(pattern) = self.pattern(style, bar) else { return Ok(()) };
        let lengths = pattern.iter().map(|(_, length)| *length);
        for (step_idx, onset, duration) in bar.steps(lengths)? {
            let Some(symbol) = latest(&self.symbols, onset) else { continue };
            let strike = |line: &mut Line, key: i32, velocity: u8| {
                if let Some(key) = u8::try_from(key + options.transpose).ok().filter(|k| *k < 128) {
                    line.notes.push(PlayedNote { onset, duration, key, velocity });
                }
            };
            let step = pattern[step_idx].0;
            if matches!(step, 'f' | 'b') {
                strike(bass, symbol.bass(), style.bass_velocity);
            }
            let keys = symbol.keys();
            if matches!(step, 'c' | 'b') {
                keys.iter().for_each(|key| strike(chords, *key, style.chord_velocity));
            }
            if let Some(note_idx) = "ghijGHIJ".find(step) {
                let down = if note_idx >= 4 { 12 } else { 0 };
                if let Some(key) = keys.get(note_idx % 4) {
                    strike(chords, key - down, style.chord_velocity);
                }
            }
        }
        Ok(())
    }
}

fn drum_bar(bar: &Bar<'_>, style: &Style, line: &mut Line) -> Result<(), PlayError> {
    let Some(drum) = &style.drum else { return Ok(()) };
    let lengths = drum.steps.iter().map(|(_, length)| *length);
    let mut n_strokes = 0;
    for (step_idx, onset, duration) in bar.steps(lengths)? {
        if drum.steps[step_idx].0 {
            let (key, velocity) = (drum.keys[n_strokes], drum.velocities[n_strokes].max(1));
            line.notes.push(PlayedNote { onset, duration, key, velocity });
            n_strokes += 1;
        }
    }
    Ok(())
}

/// A bar of the performance.
struct Bar<'a> {
    from: Fraction,
    to: Fraction,
    meter: Option<&'a Meter>,
}

impl Bar<'_> {
    /// Spreads steps over a whole bar of the meter: those that start before the bar ends, each with
    /// its number, onset and length.
    fn steps(
        &self,
        lengths: impl Iterator<Item = u32> + Clone,
    ) -> Result<Vec<(usize, Fraction, Fraction)>, PlayError> {
        let Some(bar) = self.meter.and_then(Meter::bar) else { return Ok(Vec::new()) };
        let sum: i64 = lengths.clone().map(i64::from).sum();
        let step = divide(bar, Fraction::from_integer(sum.max(1)))?;
        let mut found = Vec::new();
        let mut onset = self.from;
        for (step_idx, length) in lengths.enumerate() {
            if onset >= self.to {
                break;
            }
            let duration = multiply(step, Fraction::from_integer(i64::from(length)))?;
            found.push((step_idx, onset, duration));
            onset = add(onset, duration)?;
        }
        Ok(found)
    }
}

/// Returns the value at a time: the last entry not after it. The list is sorted.
fn latest<T>(list: &[(Fraction, T)], at: Fraction) -> Option<&T> {
    let after = list.partition_point(|(since, _)| *since <= at);
    list[..after].last().map(|(_, value)| value)
}

/// Returns the pattern of a meter.
fn own_pattern(meter: &Meter) -> Option<&'static str> {
    match meter.numbers()? {
        (2, 4) => Some("fzcz"),
        (4, 4) | (2, 2) => Some("fzczfzcz"),
        (3, 4) => Some("fzczcz"),
        (6, 8) => Some("fzcfzc"),
        (9, 8) => Some("fzcfzcfzc"),
        (12, 8) => Some("fzcfzcfzcfzc"),
        (3, 8) => Some("fzc"),
        _ => None,
    }
}
