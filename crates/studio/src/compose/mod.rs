//! Music from a statistical model of note sequences: no trained network, but counts of what follows
//! what, in a set of traditional tunes and in the given music.
//!
//! Main types: [`Piece`] is music on a grid, with its key and its meter; [`compose`] makes more of
//! it for a [`Task`]; [`judge`] estimates whether a piece was performed or programmed.
//!
//! Invariants:
//!
//! - The same task, settings and seed produce the same notes.
//! - A given piece counts more than all the tunes that ship with the model.
//! - Learning and composing stop on request, and nothing grows without a limit.

mod judgement;
mod model;
mod piece;
mod predictor;
mod writer;

use std::cell::Cell;

use rand::SeedableRng as _;
use rand::rngs::Xoshiro256PlusPlus;

use crate::smf::{Event, Sequence};
pub use judgement::{Judgement, judge};
use model::Model;
pub use piece::{Piece, PieceError};
use writer::{Phrase, Writer};

/// The name of the method in answers.
pub const BACKEND: &str =
    "embedded: variable-order statistics of note sequences, no trained network";

/// The most notes of one composition.
pub const NOTES_MAX: usize = 4096;

/// The number of attempts, of which the best fit is taken.
const ATTEMPTS: usize = 8;

/// How to compose.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The approximate number of notes; at most [`NOTES_MAX`].
    pub n_notes: usize,
    /// The sampling temperature: 0 always takes the likeliest choice.
    pub temperature: f64,
    /// Only the likeliest choices that together have this probability.
    pub top_p: f64,
    /// The same seed produces the same music.
    pub seed: u64,
}

/// What to compose.
#[derive(Debug, Clone, Copy)]
pub enum Task<'a> {
    /// Something new.
    New,
    /// Something new that starts like a piece, and keeps its style.
    Seeded(&'a Piece),
    /// A piece and its continuation.
    Continue(&'a Piece),
    /// A bridge from a piece to another, or to anywhere.
    Bridge(&'a Piece, Option<&'a Piece>),
    /// A loop, perhaps in a piece's style.
    Loop(Option<&'a Piece>),
}

/// Composed music.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    /// As a MIDI file.
    pub sequence: Sequence,
    /// The number of new notes.
    pub n_notes: usize,
    /// Its duration.
    pub seconds: f64,
}

/// It was stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the composition was stopped")]
pub struct CompositionStopped;

/// Composes. `go_on` is called now and then, and `false` stops it.
///
/// # Errors
/// If it was stopped.
pub fn compose(
    task: Task<'_>,
    settings: &Settings,
    go_on: &dyn Fn() -> bool,
) -> Result<Composition, CompositionStopped> {
    compose_aloud(task, settings, go_on, &|_| ())
}

/// Composes, and passes on the events of the file in order, as soon as they are certain: those of new
/// music and continuations while it is written, those of bridges and loops once the best is chosen.
///
/// # Errors
/// If it was stopped.
pub fn compose_aloud(
    task: Task<'_>,
    settings: &Settings,
    go_on: &dyn Fn() -> bool,
    hear: &dyn Fn(&[Event]),
) -> Result<Composition, CompositionStopped> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(settings.seed);
    let settings = Settings { n_notes: settings.n_notes.clamp(1, NOTES_MAX), ..*settings };
    let given: Vec<&Piece> = match task {
        Task::New | Task::Loop(None) => Vec::new(),
        Task::Seeded(piece)
        | Task::Continue(piece)
        | Task::Bridge(piece, None)
        | Task::Loop(Some(piece)) => vec![piece],
        Task::Bridge(from, Some(to)) => vec![from, to],
    };
    let model = Model::learn(&given, go_on)?;
    let frame = match given.first() {
        Some(piece) => (*piece).clone(),
        None => model.example(&mut rng).clone(),
    };
    let mut writer = Writer { model: &model, settings, frame: &frame, rng: &mut rng, go_on };
    let voice = Voice { frame: &frame, hear, next: Cell::new(0) };
    let mut aloud = |before: &[piece::Note]| -> Result<_, CompositionStopped> {
        let phrase =
            writer.phrase(before, true, &|notes, end| voice.partial(before, notes, end))?;
        Ok((before.to_vec(), phrase))
    };
    let (before, phrase) = match task {
        Task::New => aloud(&[])?,
        Task::Seeded(piece) => aloud(piece.opening())?,
        Task::Continue(piece) => aloud(&piece.notes)?,
        Task::Bridge(from, to) => {
            let best = best_of(&mut writer, |writer| {
                let phrase = writer.phrase(&from.notes, false, &|_, _| ())?;
                let likelihood = to.map_or(0.0, |to| writer.joins(&phrase, to));
                Ok((phrase, likelihood))
            })?;
            (Vec::new(), best)
        }
        Task::Loop(_) => {
            let best = best_of(&mut writer, |writer| {
                let phrase = writer.round()?;
                let start = frame.with_notes(&phrase.notes);
                let likelihood = writer.joins(&phrase, &start);
                Ok((phrase, likelihood))
            })?;
            (Vec::new(), best)
        }
    };
    let composed = finish(&frame, before, phrase);
    voice.pass_on(&composed.sequence, u64::MAX);
    Ok(composed)
}

/// Passes on the events of a composition that are certain.
struct Voice<'a> {
    frame: &'a Piece,
    hear: &'a dyn Fn(&[Event]),
    /// The events before this tick were passed on.
    next: Cell<u64>,
}

impl Voice<'_> {
    /// The notes so far, of which only the last may still change. Later ones start at `end` or after
    /// it.
    fn partial(&self, before: &[piece::Note], notes: &[piece::Note], end: i64) {
        let Some(last) = notes.last() else { return };
        let all = [before, notes].concat();
        let shift = shift_of(&all, self.frame);
        let certain = u64::try_from(last.at - shift).unwrap_or(0);
        self.pass_on(&self.frame.sequence(&shifted(all, shift), end - shift), certain);
    }

    /// Passes on the events before a tick.
    fn pass_on(&self, sequence: &Sequence, before: u64) {
        let is_new = |event: &&Event| (self.next.get()..before).contains(&event.tick);
        let new: Vec<_> = sequence.tracks.iter().flatten().filter(is_new).cloned().collect();
        if !new.is_empty() {
            (self.hear)(&new);
        }
        self.next.set(self.next.get().max(before));
    }
}

/// Returns how much earlier the music starts in its file: a phrase after other music starts in a bar
/// of its own.
fn shift_of(notes: &[piece::Note], frame: &Piece) -> i64 {
    let first = notes.first().map_or(0, |note| note.at);
    first - first.rem_euclid(frame.bar)
}

fn shifted(mut notes: Vec<piece::Note>, shift: i64) -> Vec<piece::Note> {
    for note in &mut notes {
        note.at -= shift;
    }
    notes
}

fn best_of(
    writer: &mut Writer<'_>,
    attempt: impl Fn(&mut Writer<'_>) -> Result<(Phrase, f64), CompositionStopped>,
) -> Result<Phrase, CompositionStopped> {
    let (mut best, mut best_likelihood) = attempt(writer)?;
    for _ in 1..ATTEMPTS {
        let (phrase, likelihood) = attempt(writer)?;
        if likelihood > best_likelihood {
            (best, best_likelihood) = (phrase, likelihood);
        }
    }
    Ok(best)
}

/// Returns a MIDI file of the old and the new notes, from the first bar on.
fn finish(frame: &Piece, before: Vec<piece::Note>, phrase: Phrase) -> Composition {
    let n_notes = phrase.notes.len();
    let mut notes = before;
    notes.extend(phrase.notes);
    let shift = shift_of(&notes, frame);
    let end = phrase.end - shift;
    let sequence = frame.sequence(&shifted(notes, shift), end);
    Composition { seconds: sequence.seconds(), sequence, n_notes }
}
