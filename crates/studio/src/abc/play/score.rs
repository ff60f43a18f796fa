//! A tune's voices with their written times and sounding pitches, before repeats are expanded.

use std::ops::Range;

use super::super::diagnostic::Diagnostics;
use super::super::key::Key;
use super::super::midi_command::MidiCommand;
use super::super::model::{BarStyle, Field, Fraction, Meter, Tune};
use super::PlayError;
use super::builder::Builder;

/// The voices of a tune.
#[derive(Debug, Clone)]
pub(crate) struct Score {
    pub(crate) title: Option<String>,
    /// The order of the parts, if the header has one.
    pub(crate) parts: Option<String>,
    pub(crate) voices: Vec<Voice>,
    /// The meter of the header.
    pub(crate) meter: Meter,
    /// The key of the header.
    pub(crate) key: Key,
    /// Quarter notes per minute of the header.
    pub(crate) tempo: Option<Fraction>,
    /// `%%MIDI` lines of the header.
    pub(crate) commands: Vec<MidiCommand>,
}

/// A voice: its steps, in written order.
#[derive(Debug, Clone)]
pub(crate) struct Voice {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) steps: Vec<Step>,
    /// The notes of all its sounds.
    pub(crate) notes: Vec<SoundingNote>,
    /// The end of its last bar.
    pub(crate) end: Fraction,
}

/// A step of a voice.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// Its written time.
    pub(crate) at: Fraction,
    pub(crate) kind: StepKind,
}

#[derive(Debug, Clone)]
pub(crate) enum StepKind {
    Sound(Sound),
    Bar {
        repeats_before: u32,
        repeats_after: u32,
        style: BarStyle,
    },
    Ending(Vec<u32>),
    Part(char),
    /// A chord symbol.
    Symbol(String),
    Control(Control),
}

/// A note, a chord or a rest (no notes).
#[derive(Debug, Clone, Default)]
pub(crate) struct Sound {
    /// The range of its notes among those of the voice.
    pub(crate) notes: Range<usize>,
    /// Its duration.
    pub(crate) duration: Fraction,
    pub(crate) staccato: bool,
    /// The velocity in addition to the usual one.
    pub(crate) force: i32,
    /// Rare properties.
    pub(crate) more: Option<Box<SoundExtras>>,
}

/// Rare properties of a sound.
#[derive(Debug, Clone, Default)]
pub(crate) struct SoundExtras {
    /// Keys and lengths of the grace notes before it.
    pub(crate) graces: Vec<(i32, Fraction)>,
    pub(crate) ornament: Option<Ornament>,
    /// The syllables, by verse.
    pub(crate) verses: Vec<Option<String>>,
}

/// A sign that stands for several notes, with the keys of its neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ornament {
    pub(crate) kind: OrnamentKind,
    pub(crate) upper: i32,
    pub(crate) lower: i32,
    /// The unit length at its place.
    pub(crate) unit: Fraction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrnamentKind {
    Trill,
    Roll,
}

impl OrnamentKind {
    /// Returns the ornament of a decoration.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        match name {
            "trill" => Some(Self::Trill),
            "roll" => Some(Self::Roll),
            _ => None,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct SoundingNote {
    pub(crate) key: i32,
    pub(crate) duration: Fraction,
    pub(crate) tie: bool,
}

/// A change other than a note.
#[derive(Debug, Clone)]
pub(crate) enum Control {
    /// Quarter notes per minute.
    Tempo(Fraction),
    Meter(Meter),
    Key(Key),
    Midi(Box<MidiCommand>),
}

impl Score {
    /// Builds the score; its problems go to the diagnostics.
    pub(crate) fn build(
        file_header: &[Field],
        tune: &Tune,
        diagnostics: &mut Diagnostics,
    ) -> Result<Self, PlayError> {
        let mut builder = Builder::new(file_header, tune, diagnostics);
        for item in &tune.body {
            builder.item(item)?;
        }
        Ok(builder.finish())
    }
}

impl Voice {
    /// Returns the time of a step; after the last, the end of the voice.
    pub(crate) fn time(&self, step_idx: usize) -> Fraction {
        self.steps.get(step_idx).map_or(self.end, |step| step.at)
    }
}
