//! Sound: fonts, rendering, analysis and pictures, with a SoundFont of the distribution.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod beats;
mod features;
mod fluidsynth;
mod font;
mod hostile;
mod pictures;
mod pieces;
mod render;
mod support;
