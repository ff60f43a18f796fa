//! Sound: fonts, rendering, analysis and pictures, with a SoundFont of the distribution.

mod fluidsynth;
mod support;
