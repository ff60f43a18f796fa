//! Whether a piece was performed or programmed: by the timing and the velocities of its notes. It
//! cannot tell who wrote it.

use super::piece::Piece;

/// The distance from the grid of human onsets, in quarter notes: some 20 ms.
const UNEVENNESS: f64 = 0.02;
/// The spread of velocities of human playing.
const SPREAD: f64 = 10.0;

/// The probability that a piece was played by hand.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// 0 to 1; the rest is the probability that it was programmed.
    pub performed: f64,
}

/// Judges a piece.
#[must_use]
pub fn judge(piece: &Piece) -> Judgement {
    let n_notes = piece.notes.len() as f64;
    let velocities = || piece.notes.iter().map(|note| f64::from(note.velocity));
    let mean = velocities().sum::<f64>() / n_notes;
    let spread = (velocities().map(|v| (v - mean).powi(2)).sum::<f64>() / n_notes).sqrt();
    let evidence = 2.0 * (piece.unevenness / UNEVENNESS) + spread / SPREAD - 1.5;
    // Few notes are little evidence.
    let certainty = n_notes / (n_notes + 8.0);
    Judgement { performed: 1.0 / (1.0 + (-2.0 * evidence * certainty).exp()) }
}
