//! `ringback garden`: the process that plays the timeline, and commands for it.

mod export;
mod picture;
mod process;
mod view;
mod watch;

use clap::{Args, Subcommand, ValueEnum};
use ringback_client::{Client, Outcome};
use ringback_proto::Tool;
use ringback_proto::garden::{GardenAt, IfLate, RegionState, Ticks};
use ringback_proto::ids::{JobId, RegionId};
use ringback_proto::request::{
    GardenApproveRequest, GardenCreateRegionRequest, GardenGetRegionsRequest, GardenPauseRequest,
    GardenPlayRequest, GardenRegionInfo, GardenRegionsResponse, GardenRejectRequest,
    GardenSeekRequest, GardenSetLoopRequest, GardenSetTempoRequest, GardenStatusRequest,
    GardenStatusResponse, GardenStopRequest, RegionApproval, RegionBehavior,
};
use ringback_proto::tool::tools::{
    GardenApprove, GardenCreateRegion, GardenGetRegions, GardenPause, GardenPlay, GardenReject,
    GardenSeek, GardenSetLoop, GardenSetTempo, GardenStatus, GardenStop,
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
                  16\n  ringback garden loop 0 16\n  ringback garden add job_… --at 16 --duration 16 \
                  --if-late vamp   what a job is still making\n  ringback garden watch\n  ringback \
                  garden export song.wav\n  ringback garden run --device file:take.wav   the process \
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
    /// Place audio or MIDI on the timeline, or what a job is still making
    Add(AddArgs),
    /// Play a part of the timeline again and again; without beats, end that
    Loop {
        /// The beat at which it starts
        #[arg(requires = "end")]
        start: Option<f64>,
        /// The beat at which it ends
        end: Option<f64>,
    },
    /// Let a region be played that waits for approval
    Approve(VerdictArgs),
    /// Reject the content of a region: it is never heard
    Reject(VerdictArgs),
    /// Render the timeline to an audio file
    Export(export::ExportArgs),
    /// Draw the timeline as SVG
    Picture(picture::PictureArgs),
    /// Show regions, play head and levels as they change, until Ctrl-C
    Watch(watch::WatchArgs),
}

/// A region to approve or reject.
#[derive(Debug, Args)]
pub struct VerdictArgs {
    /// The region
    pub region_id: RegionId,
    /// Why
    #[arg(long)]
    pub reason: Option<String>,
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
    /// The content: an artifact id, a hash, or the id of a job that is still making it
    pub content: String,
    /// The beat at which it starts
    #[arg(long, value_name = "BEAT", default_value_t = 0.0)]
    pub at: f64,
    /// Its length in beats, or that of one pass with --repeat [default: that of the content]
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
    /// How long it takes over from regions that end there, in beats
    #[arg(long, value_name = "BEATS")]
    pub crossfade: Option<f64>,
    /// How many times to play it
    #[arg(long, value_name = "TIMES")]
    pub repeat: Option<u32>,
    /// Play it only after `garden approve`
    #[arg(long)]
    pub ask: bool,
    /// What playback does when it reaches the content of a job too early [default: silence]
    #[arg(long, value_enum)]
    pub if_late: Option<LateChoice>,
    /// Its name
    #[arg(long)]
    pub name: Option<String>,
    /// A tag; may be repeated
    #[arg(long = "tag", value_name = "TAG")]
    pub tags: Vec<String>,
}

/// What playback does when it reaches content that is not there yet.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LateChoice {
    /// Play on
    Silence,
    /// Repeat the bar before
    Vamp,
}

impl From<LateChoice> for IfLate {
    fn from(choice: LateChoice) -> Self {
        match choice {
            LateChoice::Silence => Self::Silence,
            LateChoice::Vamp => Self::Vamp,
        }
    }
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
    if let GardenAction::Run(run) = &args.action {
        return process::run(run, &args.connect, environment).await;
    }
    let target = args.connect.target(environment)?;
    if let GardenAction::Watch(watched) = &args.action {
        return watch::run(&target, screen, watched).await;
    }
    target.run(async |client| call(client, screen, args.action).await).await
}

async fn call(client: &Client, screen: Screen, action: GardenAction) -> Result<(), Failure> {
    match action {
        // They have their own connections.
        GardenAction::Run(_) | GardenAction::Watch(_) => Ok(()),
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
        GardenAction::Loop { start, end } => {
            tell::<GardenSetLoop>(client, screen, GardenSetLoopRequest { start, end }).await
        }
        GardenAction::Approve(VerdictArgs { region_id, reason }) => {
            let request = GardenApproveRequest { region_id, reason };
            tell::<GardenApprove>(client, screen, request).await
        }
        GardenAction::Reject(VerdictArgs { region_id, reason }) => {
            tell::<GardenReject>(client, screen, GardenRejectRequest { region_id, reason }).await
        }
        GardenAction::Export(args) => export::run(client, screen, args).await,
        GardenAction::Picture(args) => picture::run(client, screen, &args).await,
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
    let is_promise = args.content.parse::<JobId>().is_ok();
    let request = GardenCreateRegionRequest {
        position: args.at,
        duration: args.duration,
        behavior_type: if is_promise {
            RegionBehavior::Latent
        } else {
            RegionBehavior::PlayContent
        },
        content_id: args.content,
        gain_db: args.gain,
        pan: args.pan,
        offset_seconds: args.offset,
        fade_in: args.fade_in,
        fade_out: args.fade_out,
        crossfade: args.crossfade,
        repeat: args.repeat,
        approval: args.ask.then_some(RegionApproval::Required),
        if_late: args.if_late.map(Into::into),
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
        ("loop", loop_text(status)),
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

fn loop_text(status: &GardenStatusResponse) -> String {
    let range = status.loop_range.as_ref().map_or_else(
        || "none".to_owned(),
        |range| format!("beats {} to {}", shown(range.start), shown(range.end)),
    );
    match status.waiting_for {
        Some(region_id) => format!("{range}; repeats a bar until {region_id} is ready"),
        None => range,
    }
}

fn regions_text(screen: Screen, found: &GardenRegionsResponse) -> String {
    let row = |region: &GardenRegionInfo| {
        let content = region.content.as_ref();
        let name = content.and_then(|content| content.name.clone()).unwrap_or_default();
        let kind = content.map_or("hidden", |content| content.mime_type.as_deref().unwrap_or("-"));
        let times = if region.repeat > 1 { format!(" x {}", region.repeat) } else { String::new() };
        [
            region.region_id.to_string(),
            shown(region.position),
            format!("{}{times}", shown(region.duration)),
            state_text(region.state).to_owned(),
            screen.printable(kind),
            screen.printable(&name),
        ]
    };
    let rows: Vec<[String; 6]> = found.regions.iter().map(row).collect();
    let head = ["region", "beat", "beats", "state", "type", "name"];
    let table = screen.table(head, rows, "no regions");
    format!("{table}\n{}, revision {}", counted(found.regions.len(), "region"), found.revision)
}

/// Returns the state of a region for people.
fn state_text(state: RegionState) -> &'static str {
    match state {
        RegionState::Pending => "being made",
        RegionState::AwaitingApproval => "awaits approval",
        RegionState::Ready => "ready",
        RegionState::Failed => "failed",
        RegionState::Rejected => "rejected",
    }
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
