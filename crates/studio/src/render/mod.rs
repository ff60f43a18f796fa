//! Renders a MIDI file with a SoundFont into samples.
//!
//! The same file, font and settings produce the same samples on every run. Sound goes to an
//! [`AudioSink`] as it is made, so a render needs little memory and can be heard or stopped while
//! it runs. Everything here is computation: it belongs on a thread that may be busy for long.

mod file;
mod flac;
mod score;
mod synth;
mod tick_score;
mod wav;

pub use file::{FileFormat, FileSink};
pub use flac::FlacSink;
pub use score::{MIDI_BYTES_MAX, Note, Score, ScoreError, TimedMessage};
pub use synth::{
    AudioSink, Progress, RenderError, RenderLimits, RenderSettings, Rendered, SinkError, render,
};
pub use tick_score::TickScore;
pub use wav::{WavFormat, WavSink};
