//! Whether a piece was performed or programmed: by how evenly its notes start, and how differently
//! they are struck. Who wrote it cannot be told from that.

use super::piece::Piece;

/// Notes that start this far from the grid, in quarter notes, are what players do: some 20 ms.
const UNEVENNESS: f64 = 0.02;
/// Notes that differ this much in velocity are what players do.
const SPREAD: f64 = 10.0;

/// How likely a piece was played by hand.
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
    // Few notes tell little.
    let certainty = n_notes / (n_notes + 8.0);
    Judgement { performed: 1.0 / (1.0 + (-2.0 * evidence * certainty).exp()) }
}
