//! Sound analysis without a trained model: beats, downbeats and tempo, loudness, key, onsets,
//! timbre, and the similarity of two sounds.
//!
//! The methods are classical: spectral flux, its autocorrelation, dynamic programming for the
//! tempo, the beats and the bars, and key profiles. [`BACKEND`] names them in answers.

mod bars;
mod beats;
mod features;
mod key;
mod novelty;
mod sound;
mod spectrum;
mod tempo;

pub use beats::{Beats, track_beats};
pub use features::{Features, Similarity, Spectral, measure, similarity};
pub(crate) use key::of as key_of;
pub use key::{Key, Mode};
pub use novelty::Novelty;
pub use sound::{Loudness, Sound};

/// The name of the method in answers.
pub const BACKEND: &str = "embedded: spectral flux and dynamic programming, no trained model";
