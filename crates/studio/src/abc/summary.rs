//! Facts about a tune.

use super::model::{Book, Element, Field, Item};
use super::play::{Options, perform};
use super::print::meter_text;
use super::text::unescape;

/// Facts about a tune.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Summary {
    /// Its reference number.
    pub reference: Option<u32>,
    /// Its title.
    pub title: Option<String>,
    /// Its composer.
    pub composer: Option<String>,
    /// Its key as written.
    pub key: Option<String>,
    /// Its meter as written.
    pub meter: Option<String>,
    /// Quarter notes per minute at its start.
    pub tempo: Option<u32>,
    /// Its voices.
    pub voices: Vec<String>,
    /// Notes as written; each note of a chord counts.
    pub n_notes: usize,
    /// Bar lines as written.
    pub n_bars: usize,
    /// Its duration with repeats.
    pub seconds: Option<f64>,
}

/// Returns the facts about one tune of a book; `None` if the tune does not exist.
#[must_use]
pub fn summary(book: &Book, index: usize) -> Option<Summary> {
    let tune = book.tunes.get(index)?;
    let mut summary = Summary::default();
    for field in book.header.iter().chain(&tune.header) {
        match field {
            Field::Reference(number) => summary.reference = Some(*number),
            Field::Text { letter: 'T', text } if summary.title.is_none() => {
                summary.title = Some(unescape(text));
            }
            Field::Text { letter: 'C', text } => summary.composer = Some(unescape(text)),
            Field::Key(field) => summary.key = field.key.as_ref().map(|key| key.abc()),
            Field::Meter(meter) => summary.meter = Some(meter_text(meter)),
            Field::UnitLength(_)
            | Field::Tempo(_)
            | Field::Voice(_)
            | Field::Parts(_)
            | Field::Lyrics(_)
            | Field::Symbols(_)
            | Field::Midi { .. }
            | Field::Directive(_)
            | Field::Text { .. } => {}
        }
    }
    summary.n_notes = tune.body.iter().map(n_notes).sum();
    summary.n_bars = tune.body.iter().filter(|item| is_bar(item)).count();
    if let Ok(performance) = perform(book, index, &Options::default()) {
        summary.voices = performance.lines.iter().map(|line| line.name.clone()).collect();
        summary.seconds = Some(performance.seconds());
        let tempo = performance.tempos.first().map(|(_, tempo)| tempo.round().to_integer());
        summary.tempo = tempo.and_then(|tempo| u32::try_from(tempo).ok());
    }
    Some(summary)
}

fn n_notes(item: &Item) -> usize {
    if let Element::Chord(chord) = &item.element {
        chord.notes.len()
    } else {
        usize::from(matches!(item.element, Element::Note(_)))
    }
}

fn is_bar(item: &Item) -> bool {
    matches!(item.element, Element::Bar(_))
}
