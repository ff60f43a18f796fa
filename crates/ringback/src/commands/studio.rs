//! `ringback studio`: music on this machine, without a daemon.

pub mod abc;
pub mod play;
pub mod sound;
pub mod tune;

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::Environment;
use crate::failure::Failure;
use crate::screen::Screen;

/// `ringback studio`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback studio abc check tune.abc\n  ringback studio abc play tune.abc\n  ringback studio abc midi \
                  tune.abc -o tune.mid --tempo 96\n  ringback studio render tune.mid -o tune.wav\n  ringback studio beats \
                  song.mp3\n  ringback studio picture tune.mid\n\nFiles are read and written here; the daemon's music tools do \
                  the same."
)]
pub struct StudioArgs {
    /// What to work on
    #[command(subcommand)]
    pub subject: StudioSubject,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
}

/// What to work on.
#[derive(Debug, Subcommand)]
pub enum StudioSubject {
    /// Tunes in ABC notation
    Abc(abc::AbcArgs),
    /// Play a MIDI file with a SoundFont into a WAV file
    Render(sound::RenderArgs),
    /// Find the beats of a sound
    Beats {
        /// WAV, FLAC, MP3 or Ogg Vorbis
        file: PathBuf,
    },
    /// Draw a MIDI file or a sound
    Picture(sound::PictureArgs),
}

pub(crate) fn run(args: &StudioArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    match &args.subject {
        StudioSubject::Abc(args) => abc::run(args, environment, screen),
        StudioSubject::Render(args) => sound::render_file(args, environment, screen),
        StudioSubject::Beats { file } => sound::beats(file, screen),
        StudioSubject::Picture(args) => sound::picture(args, screen),
    }
}
