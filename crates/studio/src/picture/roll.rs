//! A piano roll: time to the right, pitch upwards, a colour for each channel.

use std::collections::BTreeSet;

use super::{MARGIN, Svg, WIDTH, x_of};
use crate::render::{Note, Score};

/// The height of a key.
const KEY: f64 = 6.0;

/// Keys above and below the highest and lowest note.
const KEYS_AROUND: u8 = 3;

/// The most notes that are drawn; more would be finer than the picture.
const NOTES_MAX: usize = 20_000;

/// Spreads hues as far apart as 16 can be.
const HUE_STEP: u32 = 67;

/// Draws a MIDI file.
#[must_use]
pub fn piano_roll(score: &Score, title: &str) -> String {
    let notes = score.notes();
    let low = notes.iter().map(|note| note.key).min().unwrap_or(60).saturating_sub(KEYS_AROUND);
    let high = (notes.iter().map(|note| note.key).max().unwrap_or(72) + KEYS_AROUND).min(127);
    let height = f64::from(high - low + 1) * KEY + MARGIN;
    let mut svg = Svg::new(height, title);
    let y_of = |key: u8| f64::from(high - key) * KEY;
    for key in low..=high {
        keyboard(&mut svg, key, y_of(key));
    }
    svg.seconds(score.seconds, height);
    for note in distinct(&notes, score.seconds) {
        draw(&mut svg, note, y_of(note.key), score.seconds);
    }
    svg.finish()
}

/// Draws a row of the keyboard: black keys are darker; each C has its name.
fn keyboard(svg: &mut Svg, key: u8, y: f64) {
    if [1, 3, 6, 8, 10].contains(&(key % 12)) {
        svg.add(format_args!(
            "<rect x=\"{MARGIN}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{KEY}\" fill=\"#f0f0ec\"/>\n",
            WIDTH - MARGIN
        ));
    }
    if key.is_multiple_of(12) {
        let octave = i32::from(key) / 12 - 1;
        svg.add(format_args!(
            "<text x=\"4\" y=\"{:.1}\" fill=\"#666\">C{octave}</text>\n",
            y + KEY
        ));
    }
}

fn draw(svg: &mut Svg, note: &Note, y: f64, seconds: f64) {
    let (from, to) = (x_of(note.at, seconds), x_of(note.at + note.seconds, seconds));
    let hue = u32::from(note.channel) * HUE_STEP % 360;
    let opacity = 0.35 + 0.65 * f64::from(note.velocity) / 127.0;
    svg.add(format_args!(
        "<rect x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{KEY}\" rx=\"1\" \
         fill=\"hsl({hue} 65% 45%)\" fill-opacity=\"{opacity:.2}\"/>\n",
        (to - from).max(1.0)
    ));
}

/// Drops notes that would be drawn over one another, or could not be seen.
fn distinct(notes: &[Note], seconds: f64) -> Vec<&Note> {
    let mut seen = BTreeSet::new();
    let places = notes.iter().filter(|note| {
        let place = (x_of(note.at, seconds) * 2.0) as u32;
        seen.insert((place, note.key, note.channel))
    });
    places.take(NOTES_MAX).collect()
}
