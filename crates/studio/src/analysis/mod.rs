//! What can be heard in sound, measured without a trained model: beats, downbeats and tempo,
//! loudness, key, onsets, the colour of the sound, and how alike two sounds are.
//!
//! The methods are classical: spectral flux, an autocorrelation of it, dynamic programming for the
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

/// What answers say they were computed by.
pub const BACKEND: &str = "embedded: spectral flux and dynamic programming, no trained model";
