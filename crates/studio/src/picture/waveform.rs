//! A waveform: the range and the loudness of the sound at each column of the picture.

use super::{MARGIN, Svg, WIDTH, x_of};
use crate::analysis::Sound;

const HEIGHT: f64 = 240.0;

/// Columns of the picture.
const COLUMNS: usize = 1172;

/// The most beats that are marked; more would hide the wave.
const BEATS_MAX: usize = 2000;

/// Draws a sound, with marks at `beats`, in seconds.
#[must_use]
pub fn waveform(sound: &Sound, beats: &[f64], title: &str) -> String {
    let mut svg = Svg::new(HEIGHT, title);
    let seconds = sound.seconds();
    svg.seconds(seconds, HEIGHT);
    let middle = (HEIGHT - MARGIN) / 2.0;
    let column_width = (WIDTH - MARGIN) / COLUMNS as f64;
    let (mut swing, mut loud) = (String::new(), String::new());
    for (idx, column) in columns(&sound.mono).enumerate() {
        let x = MARGIN + idx as f64 * column_width;
        let y = |value: f32| middle - f64::from(value.clamp(-1.0, 1.0)) * middle;
        swing.push_str(&format!("M{x:.1} {:.1}V{:.1}", y(column.high), y(column.low)));
        loud.push_str(&format!("M{x:.1} {:.1}V{:.1}", y(column.rms), y(-column.rms)));
    }
    svg.add(format_args!("<path d=\"{swing}\" stroke=\"#7fa7c9\" stroke-width=\"1.1\"/>\n"));
    svg.add(format_args!("<path d=\"{loud}\" stroke=\"#2f6690\" stroke-width=\"1.1\"/>\n"));
    for beat in beats.iter().take(BEATS_MAX) {
        let x = x_of(*beat, seconds);
        let y = HEIGHT - MARGIN;
        svg.add(format_args!(
            "<path d=\"M{x:.1} 0V{y}\" stroke=\"#d1495b\" stroke-opacity=\"0.5\"/>\n"
        ));
    }
    svg.finish()
}

struct Column {
    low: f32,
    high: f32,
    rms: f32,
}

fn columns(samples: &[f32]) -> impl Iterator<Item = Column> {
    let wide = samples.len().div_ceil(COLUMNS).max(1);
    samples.chunks(wide).map(|chunk| {
        let power = chunk.iter().map(|sample| sample * sample).sum::<f32>() / chunk.len() as f32;
        Column {
            low: chunk.iter().copied().fold(0.0, f32::min),
            high: chunk.iter().copied().fold(0.0, f32::max),
            rms: power.sqrt(),
        }
    })
}
