//! What a garden plays, compared with what other programs make of the same files.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

mod devices;
mod export;
mod fluidsynth;
mod pulse;
mod sox;
mod support;
