//! `ringback garden`: the process that plays the timeline, and commands for it.

mod process;

use clap::{Args, Subcommand};
use ringback_client::{Client, Outcome};
use ringback_proto::Tool;
use ringback_proto::garden::{GardenAt, Ticks};
use ringback_proto::request::{
    GardenCreateRegionRequest, GardenGetRegionsRequest, GardenPauseRequest, GardenPlayRequest,
    GardenRegionInfo, GardenRegionsResponse, GardenSeekRequest, GardenSetTempoRequest,
    GardenStatusRequest, GardenStatusResponse, GardenStopRequest, RegionBehavior,
};
use ringback_proto::tool::tools::{
    GardenCreateRegion, GardenGetRegions, GardenPause, GardenPlay, GardenSeek, GardenSetTempo,
    GardenStatus, GardenStop,
};
use serde::Serialize;

use crate::config::Environment;
use crate::connection::ConnectArgs;
use crate::failure::Failure;
use crate::screen::{Screen, counted};

/// `ringback garden`
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ringback garden add art_… --at 0            place audio or MIDI at beat \
                  0\n  ringback garden play\n  ringback garden tempo 96 --at next_bar\n  ringback garden seek \
                  16\n  ringback garden status\n  ringback garden run --device file:take.wav   the process \
                  itself, in the foreground\n\nPositions and lengths are in beats: quarter notes."
)]
pub struct GardenArgs {
    /// What to do
    #[command(subcommand)]
    pub action: GardenAction,
    /// Print one JSON document
    #[arg(long, global = true)]
    pub json: bool,
    /// The daemon.
    #[command(flatten)]
    pub connect: ConnectArgs,
}

/// Actions of the garden.
#[derive(Debug, Subcommand)]
pub enum GardenAction {
    /// Play the timeline of a daemon in this process, until Ctrl-C
    Run(process::RunArgs),
    /// Show transport, position, tempo, device and counters
    Status,
    /// Play from the position
    Play(AtArgs),
    /// Pause; playing goes on from the same position
    Pause(AtArgs),
    /// Stop and go back to where playback began
    Stop(AtArgs),
    /// Move the position to a beat
    Seek {
        /// The beat
        beat: f64,
        /// When to do it.
        #[command(flatten)]
        at: AtArgs,
    },
    /// Set the tempo, and the time signature
    Tempo(TempoArgs),
    /// List the regions, of a range or of the whole timeline
    Regions {
        /// Only regions that end after this beat
        #[arg(long, value_name = "BEAT")]
        start: Option<f64>,
        /// Only regions that start before this beat
        #[arg(long, value_name = "BEAT")]
        end: Option<f64>,
    },
    /// Place audio or MIDI on the timeline
    Add(AddArgs),
}

/// When a command takes effect.
#[derive(Debug, Clone, Args)]
pub struct AtArgs {
    /// When: `now`, `next_beat`, `next_bar` or a beat [default: now]
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub at: Option<GardenAt>,
}

/// A tempo.
#[derive(Debug, Args)]
pub struct TempoArgs {
    /// Quarter notes per minute, from 5 to 960
    pub bpm: f64,
    /// The beat from which it holds
    #[arg(long, value_name = "BEAT", conflicts_with = "at")]
    pub beat: Option<f64>,
    /// The time signature, such as 3/4 [default: unchanged]
    #[arg(long, value_name = "N/M")]
    pub signature: Option<String>,
    /// When: `now`, `next_beat`, `next_bar` or a beat [default: the next bar while playing, else the
    /// start of the timeline]
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    pub at: Option<GardenAt>,
}

/// A region.
#[derive(Debug, Args)]
pub struct AddArgs {
    /// The content: an artifact id, or a hash
    pub content: String,
    /// The beat at which it starts
    #[arg(long, value_name = "BEAT", default_value_t = 0.0)]
    pub at: f64,
    /// Its length in beats [default: that of the content]
    #[arg(long, value_name = "BEATS")]
    pub duration: Option<f64>,
    /// Its gain in decibels
    #[arg(long, value_name = "DB", allow_negative_numbers = true)]
    pub gain: Option<f32>,
    /// Its place between left (-1) and right (1)
    #[arg(long, allow_negative_numbers = true)]
    pub pan: Option<f32>,
    /// How much of the content to skip at the start
    #[arg(long, value_name = "SECONDS")]
    pub offset: Option<f64>,
    /// The length of its fade in, in beats
    #[arg(long, value_name = "BEATS")]
    pub fade_in: Option<f64>,
    /// The length of its fade out, in beats
    #[arg(long, value_name = "BEATS")]
    pub fade_out: Option<f64>,
    /// Its name
    #[arg(long)]
    pub name: Option<String>,
    /// A tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
}

/// What became of a command.
#[derive(Debug, Serialize)]
struct Accepted {
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<String>,
}

pub(crate) async fn run(args: GardenArgs, environment: &Environment) -> Result<(), Failure> {
    let screen = Screen::new(args.json);
    let action = match args.action {
        GardenAction::Run(run) => {
            return process::run(&run, &args.connect, environment).await;
        }
        action @ (GardenAction::Status
        | GardenAction::Play(_)
        | GardenAction::Pause(_)
        | GardenAction::Stop(_)
        | GardenAction::Seek { .. }
        | GardenAction::Tempo(_)
        | GardenAction::Regions { .. }
        | GardenAction::Add(_)) => action,
    };
    let target = args.connect.target(environment)?;
    target.run(async |client| call(client, screen, action).await).await
}

async fn call(client: &Client, screen: Screen, action: GardenAction) -> Result<(), Failure> {
    match action {
        // It has its own connections.
        GardenAction::Run(_) => Ok(()),
        GardenAction::Status => {
            let status = client.call::<GardenStatus>(GardenStatusRequest {}).await?;
            screen.answer(&status, |status| status_text(screen, status))
        }
        GardenAction::Play(AtArgs { at }) => {
            tell::<GardenPlay>(client, screen, GardenPlayRequest { at }).await
        }
        GardenAction::Pause(AtArgs { at }) => {
            tell::<GardenPause>(client, screen, GardenPauseRequest { at }).await
        }
        GardenAction::Stop(AtArgs { at }) => {
            tell::<GardenStop>(client, screen, GardenStopRequest { at }).await
        }
        GardenAction::Seek { beat, at: AtArgs { at } } => {
            tell::<GardenSeek>(client, screen, GardenSeekRequest { beat, at }).await
        }
        GardenAction::Tempo(TempoArgs { bpm, beat, signature, at }) => {
            let request = GardenSetTempoRequest { bpm, beat, time_signature: signature, at };
            tell::<GardenSetTempo>(client, screen, request).await
        }
        GardenAction::Regions { start, end } => {
            let request = GardenGetRegionsRequest { start, end };
            let found = client.call::<GardenGetRegions>(request).await?;
            screen.answer(&found, |found| regions_text(screen, found))
        }
        GardenAction::Add(args) => add(client, screen, args).await,
    }
}

/// Sends a command that is answered before it has acted.
async fn tell<T: Tool>(
    client: &Client,
    screen: Screen,
    request: T::Request,
) -> Result<(), Failure> {
    let (message, job_id) = match client.submit::<T>(request).await? {
        Outcome::Accepted { message, job_id } => (message, job_id),
        Outcome::Job { job_id, .. } => ("accepted".to_owned(), Some(job_id)),
        Outcome::Done(_) => ("done".to_owned(), None),
    };
    let accepted = Accepted { message, job_id: job_id.map(|job_id| job_id.to_string()) };
    screen.answer(&accepted, |accepted| match &accepted.job_id {
        Some(job_id) => format!("{} ({job_id})", accepted.message),
        None => accepted.message.clone(),
    })
}

async fn add(client: &Client, screen: Screen, args: AddArgs) -> Result<(), Failure> {
    let request = GardenCreateRegionRequest {
        position: args.at,
        duration: args.duration,
        behavior_type: RegionBehavior::PlayContent,
        content_id: args.content,
        gain_db: args.gain,
        pan: args.pan,
        offset_seconds: args.offset,
        fade_in: args.fade_in,
        fade_out: args.fade_out,
        name: args.name,
        tags: args.tags,
    };
    let created = client.call::<GardenCreateRegion>(request).await?;
    screen.answer(&created, |created| {
        let rounded = match created.rounded.as_slice() {
            [] => String::new(),
            fields => format!(" (rounded: {})", fields.join(", ")),
        };
        let (position, duration) = (shown(created.position), shown(created.duration));
        format!("{} at beat {position}, {duration} beats long{rounded}", created.region_id)
    })
}

fn status_text(screen: Screen, status: &GardenStatusResponse) -> String {
    let device = &status.device;
    let realtime = if device.realtime { "" } else { ", no real-time scheduling" };
    let message = device.message.as_ref().map(|text| format!(": {text}")).unwrap_or_default();
    let counters = &status.counters;
    screen.pairs(&[
        ("state", status.state.as_str().to_owned()),
        (
            "position",
            format!(
                "beat {:.3}, bar {}, {:.3} s",
                status.position_beats, status.bar, status.position_seconds
            ),
        ),
        ("tempo", format!("{} in {}", status.tempo_bpm, status.time_signature)),
        ("regions", format!("{}, revision {}", status.region_count, status.revision)),
        (
            "device",
            format!(
                "{} ({}), {} Hz, {} frames{realtime}{message}",
                device.name, device.kind, device.sample_rate, device.buffer_frames
            ),
        ),
        (
            "counted",
            format!(
                "{} frames, {} underruns, {} late, {} clipped, {} commands",
                counters.frames,
                counters.underruns,
                counters.late,
                counters.clipped,
                counters.commands
            ),
        ),
    ])
}

fn regions_text(screen: Screen, found: &GardenRegionsResponse) -> String {
    let row = |region: &GardenRegionInfo| {
        let content = region.content.as_ref();
        let name = content.and_then(|content| content.name.clone()).unwrap_or_default();
        let kind = content.map_or("hidden", |content| content.mime_type.as_str());
        [
            region.region_id.to_string(),
            shown(region.position),
            shown(region.duration),
            screen.printable(kind),
            screen.printable(&name),
        ]
    };
    let rows: Vec<[String; 5]> = found.regions.iter().map(row).collect();
    let table = screen.table(["region", "beat", "beats", "type", "name"], rows, "no regions");
    format!("{table}\n{}, revision {}", counted(found.regions.len(), "region"), found.revision)
}

fn shown(beats: f64) -> String {
    Ticks::nearest(beats).map_or_else(|| beats.to_string(), |ticks| ticks.to_string())
}

/// Reads `now`, `next_beat`, `next_bar` or a beat.
fn moment(text: &str) -> Result<GardenAt, String> {
    match text {
        "now" => Ok(GardenAt::Now),
        "next_beat" => Ok(GardenAt::NextBeat),
        "next_bar" => Ok(GardenAt::NextBar),
        beat => beat
            .parse()
            .map(GardenAt::Beat)
            .map_err(|_| "use `now`, `next_beat`, `next_bar` or a beat".to_owned()),
    }
}
