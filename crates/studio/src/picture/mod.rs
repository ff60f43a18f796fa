//! Pictures of music as SVG: a piano roll of a MIDI file, the waveform of a sound. Their size does
//! not grow with the music: details that are too fine to be seen are merged.

mod roll;
mod waveform;

use std::fmt::Write as _;

pub use roll::piano_roll;
pub use waveform::waveform;

/// The width of every picture, in user units.
const WIDTH: f64 = 1200.0;

/// The margin left of and below the drawing, for labels.
const MARGIN: f64 = 28.0;

/// The approximate number of labelled seconds.
const LABELS: f64 = 12.0;

/// An SVG document under construction.
struct Svg(String);

impl Svg {
    fn new(height: f64, title: &str) -> Self {
        let mut svg = Self(String::new());
        svg.add(format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"sans-serif\" font-size=\"10\">\n<title>{}</title>\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#fcfcfa\"/>\n",
            escaped(title)
        ));
        svg
    }

    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        self.0.write_fmt(text).expect("writing to a string cannot fail");
    }

    /// Draws lines and labels of time across the height.
    fn seconds(&mut self, seconds: f64, height: f64) {
        let step = label_step(seconds);
        let mut at = 0.0;
        while at <= seconds {
            let x = x_of(at, seconds);
            self.add(format_args!(
                "<path d=\"M{x:.1} 0V{:.1}\" stroke=\"#ddd\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" fill=\"#666\">{at} s</text>\n",
                height - MARGIN,
                x + 2.0,
                height - 10.0
            ));
            at += step;
        }
    }

    fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// Returns the position of a second.
fn x_of(at: f64, seconds: f64) -> f64 {
    MARGIN + (WIDTH - MARGIN) * (at / seconds.max(1e-9)).clamp(0.0, 1.0)
}

/// Returns 1, 2 or 5 times a power of ten, so that about [`LABELS`] fit.
fn label_step(seconds: f64) -> f64 {
    let rough = (seconds / LABELS).max(1.0);
    let power = 10_f64.powf(rough.log10().floor());
    let steps = [1.0, 2.0, 5.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= rough).unwrap_or(10.0 * power)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
