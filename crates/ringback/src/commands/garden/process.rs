//! `ringback garden run`: the process that plays.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use camino::Utf8PathBuf;
use clap::Args;
use ringback_garden::{DeviceChoice, Settings};
use ringback_proto::chain;

use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::telemetry::Telemetry;
use crate::units;

/// `ringback garden run`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback garden run\n  ringback garden run --device file:take.wav      a WAV \
                  file of everything played\n  ringback garden run --device 'command:aplay -t raw -f FLOAT_LE -c 2 \
                  -r 48000'\n\nThe daemon starts this by itself, as `[garden]` in its configuration says. \
                  A program gets 32-bit floats,\ntwo channels, on its standard input. Without \
                  `--blobs`, content is fetched from the daemon."
)]
pub struct RunArgs {
    /// Endpoint of the daemon [default: as for other commands]
    #[arg(long, value_name = "ENDPOINT")]
    pub connect: Option<String>,
    /// Event endpoint of the daemon [default: the one beside it]
    #[arg(long, value_name = "ENDPOINT")]
    pub iopub: Option<String>,
    /// The daemon's directory of content
    #[arg(long, value_name = "DIR")]
    pub blobs: Option<PathBuf>,
    /// Where the sound goes: `auto`, `null`, `pulse`, `file:PATH` or `command:PROGRAM ARGUMENTS`
    #[arg(long, value_name = "DEVICE", default_value = "auto")]
    pub device: DeviceChoice,
    /// Frames per second
    #[arg(long, value_name = "HZ", default_value_t = Settings::SAMPLE_RATE)]
    pub sample_rate: u32,
    /// Frames of one buffer of the device
    #[arg(long, value_name = "FRAMES", default_value_t = Settings::FRAMES_PER_BUFFER)]
    pub buffer_frames: u32,
    /// How much sound is mixed in advance [default: 100ms]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub ahead: Option<Duration>,
    /// How much prepared sound is kept in memory [default: 512MiB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub cache: Option<u64>,
    /// SoundFont that plays MIDI
    #[arg(long, value_name = "FILE")]
    pub soundfont: Option<PathBuf>,
}

pub(super) async fn run(
    args: &RunArgs,
    connect: &ConnectArgs,
    environment: &Environment,
) -> Result<(), Failure> {
    let mut connect = connect.clone();
    connect.daemon = args.connect.clone().or(connect.daemon);
    let config = connect.config(environment)?;
    let target = connect.target(environment)?;
    let events = args.iopub.clone().or_else(|| target.iopub().map(str::to_owned));
    let daemon = ringback_client::Config::new(target.endpoint, target.credentials);
    let settings = Settings {
        events,
        blobs: args.blobs.clone().map(utf8).transpose()?,
        device: args.device.clone(),
        sample_rate: args.sample_rate,
        buffer_frames: args.buffer_frames,
        ahead: args.ahead.unwrap_or(Settings::AHEAD),
        cache_bytes: args.cache.unwrap_or(Settings::CACHE_BYTES),
        soundfont: args.soundfont.clone().map(utf8).transpose()?,
        ..Settings::new(daemon)
    };
    let mut signals = super::super::serve::Signals::new()?;
    let telemetry = Telemetry::install(&config.log, &config.telemetry, None)?;
    let shutdown = async {
        tokio::select! {
            name = signals.next() => tracing::info!(signal = name, "the garden stops"),
            () = parent_gone() => tracing::info!("the daemon that started the garden is gone"),
        }
    };
    let ran = Box::pin(ringback_garden::run(settings, shutdown)).await;
    telemetry.shutdown().await;
    ran.map_err(|error| Failure::Wrong(chain(&error)))
}

/// Waits until standard input ends, if it is a pipe: a daemon holds the other end for as long as it
/// lives, however it ends.
async fn parent_gone() {
    let stdin = std::io::stdin().as_fd().try_clone_to_owned();
    let pipe = stdin.and_then(tokio::net::unix::pipe::Receiver::from_owned_fd);
    let Ok(mut pipe) = pipe else { return std::future::pending().await };
    // An error is an end too.
    drop(tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await);
}

fn utf8(path: PathBuf) -> Result<Utf8PathBuf, Failure> {
    Utf8PathBuf::from_path_buf(path)
        .map_err(|path| Failure::Usage(format!("`{}` is not UTF-8; rename it", path.display())))
}

fn duration(text: &str) -> Result<Duration, String> {
    units::duration(text).ok_or_else(|| "use a duration such as 100ms".to_owned())
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = units::size(text).or_else(|| text.parse().ok());
    bytes.ok_or_else(|| "use a size such as 512MiB, or bytes".to_owned())
}
