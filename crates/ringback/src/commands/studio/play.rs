//! `ringback studio abc play`: plays a tune with an installed player. A library would need the
//! development files of a sound system to build.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use clap::Args;
use ringback_studio::render::{FileFormat, RenderSettings, WavFormat};
use serde::Serialize;

use super::sound::{load_font, not_recorded, record};
use super::tune::TuneArgs;
use crate::config::Environment;
use crate::connection::TOKEN_VARIABLE;
use crate::failure::Failure;
use crate::screen::Screen;

/// Programs that play a WAV file on the default device, the best first, with their arguments before
/// the file name and their Debian packages.
const PLAYERS: [(&str, &[&str], &str); 4] = [
    ("pw-play", &[], "pipewire-bin"),
    ("paplay", &[], "pulseaudio-utils"),
    ("aplay", &["-q"], "alsa-utils"),
    ("play", &["-q", "-t", "wav"], "sox"),
];

/// The rendered file, which has no name: the player opens its own standard input, and nothing is
/// left behind however the two end.
const RENDER: &str = "/dev/stdin";

/// A tune, how it is played, and the font.
#[derive(Debug, Args)]
pub struct PlayArgs {
    /// Which tune, and how
    #[command(flatten)]
    pub tune: TuneArgs,
    /// SoundFont [default: `studio.soundfont`, else one installed on this system]
    #[arg(long, short, value_name = "FONT")]
    pub soundfont: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct PlayReport {
    title: String,
    seconds: f64,
    player: &'static str,
}

pub(super) fn play(
    args: &PlayArgs,
    environment: &Environment,
    screen: Screen,
) -> Result<(), Failure> {
    let (score, title) = args.tune.score(screen)?;
    let font = load_font(args.soundfont.as_deref(), environment)?;
    let mut file = tempfile::tempfile()
        .map_err(|source| Failure::System { action: "create a file for the sound", source })?;
    let format = FileFormat::Wav(WavFormat::Int16);
    let settings = RenderSettings::default();
    let rendered = record(BufWriter::new(&mut file), format, settings, &score, &font)
        .map_err(|error| not_recorded(error, &args.tune.file, Path::new("the sound")))?;
    screen.remark(format!("{title}: {:.1} s", rendered.seconds));
    let (player, status) = by_the_first(&file)?;
    if !status.success() {
        let message = format!(
            "`{player}` could not play the tune ({status}); check the sound device, or write a file with \
             `ringback studio abc midi` and `ringback studio render`"
        );
        return Err(Failure::Wrong(message));
    }
    let played = PlayReport { title, seconds: rendered.seconds, player };
    screen.answer(&played, |played| format!("played by {}", played.player))
}

/// Plays a file with the first installed player, and waits until it ends.
fn by_the_first(file: &File) -> Result<(&'static str, ExitStatus), Failure> {
    for (player, arguments, _) in PLAYERS {
        let failed = |source| Failure::System { action: "start a player", source };
        let input = file.try_clone().map_err(failed)?;
        let started = Command::new(player)
            .args(arguments)
            .arg(RENDER)
            .env_remove(TOKEN_VARIABLE)
            .stdin(Stdio::from(input))
            .stdout(Stdio::null())
            .status();
        match started {
            Ok(status) => return Ok((player, status)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let names = PLAYERS.map(|(player, _, _)| format!("`{player}`")).join(", ");
    let packages = PLAYERS.map(|(_, _, package)| package).join(", ");
    Err(Failure::Wrong(format!(
        "no player found: none of {names}; install one of the packages {packages}, or write a file \
         with `ringback studio abc midi` and `ringback studio render`"
    )))
}
