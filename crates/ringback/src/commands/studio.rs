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
                  song.mp3\n  ringback studio picture tune.mid\n\nThese commands work on local files; the daemon's music \
                  tools do the same."
)]
pub struct StudioArgs {
    /// The subcommand
    #[command(subcommand)]
    pub subject: StudioSubject,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
}

/// Subcommands of `studio`.
#[derive(Debug, Subcommand)]
pub enum StudioSubject {
    /// Tunes in ABC notation
    Abc(abc::AbcArgs),
    /// Render a MIDI file with a SoundFont to a WAV file
    Render(sound::RenderArgs),
    /// Find the beats in an audio file
    Beats {
        /// Audio file: WAV, FLAC, MP3 or Ogg Vorbis
        file: PathBuf,
    },
    /// Draw a MIDI or audio file
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
