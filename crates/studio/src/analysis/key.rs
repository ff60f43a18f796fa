//! The key: which of the 24 fits the pitches best.

pub(crate) mod chroma;

use std::fmt;

/// How stable each degree sounds in a major and in a minor key, as rated by listeners (Krumhansl
/// and Kessler, 1982).
const MAJOR: [f32; 12] = [6.35, 2.23, 3.48, 2.33, 4.38, 4.09, 2.52, 5.19, 2.39, 3.66, 2.29, 2.88];
const MINOR: [f32; 12] = [6.33, 2.68, 3.52, 5.38, 2.60, 3.53, 2.54, 4.75, 3.98, 2.69, 3.34, 3.17];

/// The usual names of the keys.
const NAMES: [&str; 12] = ["C", "Db", "D", "Eb", "E", "F", "F#", "G", "Ab", "A", "Bb", "B"];

/// Major or minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Major.
    Major,
    /// Minor.
    Minor,
}

/// A key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Key {
    /// 0 is C.
    pub tonic: u8,
    /// Major or minor.
    pub mode: Mode,
    /// 0 to 1: how much better it fits than the next best.
    pub confidence: f32,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Mode::Major => "major",
            Mode::Minor => "minor",
        };
        write!(f, "{} {mode}", NAMES[usize::from(self.tonic % 12)])
    }
}

/// Returns the key of these pitch classes; `None` if all are empty.
pub(crate) fn of(chroma: &[f32; 12]) -> Option<Key> {
    if chroma.iter().all(|value| *value <= 0.0) {
        return None;
    }
    let mut fits: Vec<(f32, u8, Mode)> = Vec::new();
    for tonic in 0..12_u8 {
        for (mode, profile) in [(Mode::Major, &MAJOR), (Mode::Minor, &MINOR)] {
            let turned: Vec<_> =
                (0..12).map(|idx| chroma[(idx + usize::from(tonic)) % 12]).collect();
            fits.push((correlation(&turned, profile), tonic, mode));
        }
    }
    fits.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (best, tonic, mode) = fits[0];
    let confidence = ((best - fits[1].0) / best.abs().max(1e-6) * 4.0).clamp(0.0, 1.0);
    Some(Key { tonic, mode, confidence })
}

fn correlation(a: &[f32], b: &[f32]) -> f32 {
    let n = a.len() as f32;
    let (mean_a, mean_b) = (a.iter().sum::<f32>() / n, b.iter().sum::<f32>() / n);
    let (mut product, mut power_a, mut power_b) = (0.0, 0.0, 0.0);
    for (a, b) in a.iter().zip(b) {
        let (a, b) = (a - mean_a, b - mean_b);
        product += a * b;
        power_a += a * a;
        power_b += b * b;
    }
    product / (power_a * power_b).sqrt().max(f32::EPSILON)
}
