//! The garden: playback under load, seeks, export, commands and monitors.

use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use ringback_client::{Client, Config, Credentials, Worker, WorkerTools};
use ringback_proto::any::{Any, Format};
use ringback_proto::garden::GardenAt;
use ringback_proto::ids::RegionId;
use ringback_proto::ready::OfferedTool;
use ringback_proto::request::*;
use ringback_proto::secret::Secret;
use ringback_proto::tool::tools::*;
use ringback_proto::{CallOptions, Tool};
use ringback_studio::render::{WavFormat, WavSink};
use tokio::task::JoinSet;

use crate::figure::{Figure, Line, Round};
use crate::garden_seek;
use crate::party::Connection;
use crate::process::{self, Server};
use crate::settings::Settings;

/// As many as may sound together.
const REGIONS: usize = 64;
/// Of these, every eighth is MIDI.
const MIDI_EVERY: usize = 8;
/// The length of each region and of the loop that plays them, in beats of half a second.
const BEATS: f64 = 32.0;
const RATE: u32 = 48_000;
/// The figures count after this time: the first blocks are made, caches have their size.
const SETTLE: Duration = Duration::from_secs(1);
const SECONDS: usize = 20;
const SECONDS_LONG: u64 = 600;
/// Commands per second, in bursts of this many.
const COMMANDS_PER_SECOND: u64 = 1000;
const BURST: u64 = 20;
/// This many have to arrive, or the other figures mean nothing.
const ARRIVED_PER_SECOND: f64 = 950.0;
/// Changes of the timeline wait for their commits, one after the other, so they are one of this many
/// commands; the others act on the transport.
const EDIT_EVERY: u64 = 20;
/// Seeks stay this far from the end of the loop, and some are planned for the next beat.
const SEEK_BEATS: u64 = 24;
const COMMANDS: usize = 2000;
const SEEKS: usize = 200;
const MONITORS: usize = 20;

const TUNE: &str = "X:1\nT:Bench\nM:4/4\nL:1/8\nK:C\n\
    |:CEGc ecGE|DFAd fdAF|EGBe geBG|FAcf afcA:|:GBdg bgdB|Acea c'aec|GBdg bgdB|c8:|\n";

pub(crate) async fn run(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    let seconds = settings.size(SECONDS).max(3) as u64;
    let mut figures = measured(settings, seconds).await?;
    figures.push(garden_seek::run(settings.size(SEEKS))?);
    Ok(figures)
}

/// Ten minutes of playback: for a person who waits.
pub(crate) async fn long(settings: &Settings) -> anyhow::Result<Vec<Figure>> {
    measured(settings, SECONDS_LONG).await
}

async fn measured(settings: &Settings, seconds: u64) -> anyhow::Result<Vec<Figure>> {
    // Playback has the machine that a user has; one of its cores is kept busy.
    settings.use_all_cores()?;
    let stage = Stage::set(settings, "null").await?;
    let mut figures = stage.playback(seconds).await?;
    figures.push(stage.monitors(settings).await?);
    stage.silence().await?;
    figures.push(stage.export().await?);
    figures.push(stage.commands(settings).await?);
    drop(stage);
    settings.use_one_core()?;
    Ok(figures)
}

/// A daemon and a garden with a full timeline.
struct Stage {
    client: Client,
    garden: u32,
    daemon: Server,
    _dir: tempfile::TempDir,
}

impl Stage {
    async fn set(settings: &Settings, device: &str) -> anyhow::Result<Self> {
        let dir = settings.temporary()?;
        let environment = [
            ("RINGBACK_GARDEN__DEVICE", device),
            ("RINGBACK_GARDEN__START", "always"),
            ("RINGBACK_GARDEN__BUFFER_FRAMES", "128"),
            ("PATH", "/usr/bin:/bin"),
        ];
        let daemon = Server::daemon_with(settings, dir.path(), dir.path(), &environment)?;
        let token = Secret::new(daemon.token.clone());
        let config = Config::new(&daemon.endpoint, Credentials::Token(token));
        let client = Client::connect(config).await?;
        let stage_client = client.clone();
        place_regions(&stage_client).await?;
        let garden = process::child_of(daemon.id())?;
        Ok(Self { client, garden, daemon, _dir: dir })
    }

    async fn status(&self) -> anyhow::Result<GardenStatusResponse> {
        Ok(self.client.call::<GardenStatus>(GardenStatusRequest {}).await?)
    }

    /// Plays in a loop, with commands and a busy core.
    async fn playback(&self, seconds: u64) -> anyhow::Result<Vec<Figure>> {
        let region_id = self.regions().await?;
        let busy = BusyCore::start();
        self.client.submit::<GardenPlay>(GardenPlayRequest { at: None }).await?;
        let mut commands = JoinSet::new();
        commands.spawn(send_commands(self.client.clone(), region_id));
        tokio::time::sleep(SETTLE).await;
        let before = self.status().await?.counters;
        let callback = process::thread_of(self.garden, "garden-device")?;
        let (resident, start) = (self.resident_mib()?, Instant::now());
        let cpu = process::thread_cpu_us(self.garden, callback)?;
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let cpu = process::thread_cpu_us(self.garden, callback)? - cpu;
        let share = 100.0 * cpu / start.elapsed().as_secs_f64() / 1e6;
        let grown = self.resident_mib()? - resident;
        let after = self.status().await?.counters;
        commands.abort_all();
        drop(busy);
        let sent = after.commands - before.commands;
        let per_second = sent as f64 / start.elapsed().as_secs_f64();
        anyhow::ensure!(after.late == before.late, "content was late");
        let underruns = (after.underruns - before.underruns) as f64;
        let arrived = Line::AtLeast(ARRIVED_PER_SECOND);
        Ok(vec![
            Figure::value("garden: commands meanwhile", "commands/s", per_second, arrived),
            Figure::value("garden: empty ring, 64 regions", "times", underruns, Line::AtMost(0.0)),
            Figure::value("garden: CPU of the callback", "%", share, Line::AtMost(5.0)),
            Figure::value("garden: growth of its memory", "MiB", grown, Line::AtMost(1.0)),
        ])
    }

    /// Returns a region that is moved while the others play.
    async fn regions(&self) -> anyhow::Result<RegionId> {
        let regions = self.client.call::<GardenGetRegions>(GardenGetRegionsRequest::default());
        let regions = regions.await?.regions;
        Ok(regions.last().context("no regions")?.region_id)
    }

    fn resident_mib(&self) -> anyhow::Result<f64> {
        process::status_mib_of(self.garden, "VmRSS:")
    }

    /// The CPU of the garden with many listeners and with one.
    async fn monitors(&self, settings: &Settings) -> anyhow::Result<Figure> {
        let mut rounds = Vec::new();
        for _ in 0..3 {
            let bare = self.cpu_with_monitors(settings, 1).await?;
            let ours = self.cpu_with_monitors(settings, MONITORS).await?;
            rounds.push(Round { bare, ours });
        }
        let name = "garden: 20 monitors against one";
        Ok(Figure::ratio(name, "CPU ms", &rounds, Line::AtMost(1.1)))
    }

    async fn cpu_with_monitors(&self, settings: &Settings, count: usize) -> anyhow::Result<f64> {
        let mut listeners = JoinSet::new();
        for _ in 0..count {
            let mut connection = Connection::open(&self.daemon).await?;
            let sound = connection.stream("/v1/garden/monitor.pcm").await?;
            listeners.spawn(listen(connection, sound));
        }
        tokio::time::sleep(SETTLE).await;
        let cpu = process::cpu_us_of(self.garden)?;
        tokio::time::sleep(Duration::from_secs(settings.size(100).div_ceil(20) as u64)).await;
        Ok((process::cpu_us_of(self.garden)? - cpu) / 1e3)
    }

    async fn silence(&self) -> anyhow::Result<()> {
        self.client.submit::<GardenStop>(GardenStopRequest { at: None }).await?;
        Ok(())
    }

    /// How many times faster than real time the timeline becomes a file.
    async fn export(&self) -> anyhow::Result<Figure> {
        let request = GardenExportRequest {
            start: None,
            end: None,
            format: Some(SampleFormat::S16),
            sample_rate: None,
            tags: vec![],
            creator: None,
            parent_id: None,
            variation_set_id: None,
        };
        let mut speeds = Vec::new();
        for _ in 0..3 {
            let start = Instant::now();
            let made = self.client.call::<GardenExport>(request.clone()).await?;
            let seconds = made.artifacts[0].duration_seconds.context("no length")?;
            speeds.push(seconds / start.elapsed().as_secs_f64());
        }
        Ok(Figure::values("garden: export of 64 regions", "x", &speeds, Line::AtLeast(50.0)))
    }

    /// A command against a durable job and an echo, one after the other.
    async fn commands(&self, settings: &Settings) -> anyhow::Result<Figure> {
        let token = Secret::new(self.daemon.token.clone());
        let config = Config::new(&self.daemon.endpoint, Credentials::Token(token));
        let echo = OfferedTool::Name("echo".to_owned());
        let nothing = || async { Ok(Bytes::from_static(&[0x80])) };
        let tools = WorkerTools::new("bench").raw_tool(echo, move |_| nothing());
        let worker = Worker::serve(config, tools).await?;
        let count = settings.size(COMMANDS);
        let mut rounds = Vec::new();
        // It plays during both sides of a round.
        self.client.submit::<GardenPlay>(GardenPlayRequest { at: None }).await?;
        for _ in 0..settings.n_rounds {
            let job =
                self.median_us::<JobSleep>(count, JobSleepRequest { milliseconds: 0 }).await?;
            let echo = self.median_echo_us(count).await?;
            let ours = self.median_us::<GardenPlay>(count, GardenPlayRequest { at: None }).await?;
            rounds.push(Round { bare: job + echo, ours });
        }
        worker.close().await;
        let name = "garden_play against a durable job and an echo, p50";
        Ok(Figure::ratio(name, "µs", &rounds, Line::AtMost(1.3)))
    }

    async fn median_us<T: Tool>(&self, count: usize, request: T::Request) -> anyhow::Result<f64>
    where
        T::Request: Clone,
    {
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let start = Instant::now();
            self.client.submit::<T>(request.clone()).await?;
            times.push(start.elapsed());
        }
        Ok(median_us(times))
    }

    async fn median_echo_us(&self, count: usize) -> anyhow::Result<f64> {
        let nothing = Any { format: Format::MsgPack, bytes: Bytes::from_static(&[0x80]) };
        let mut times = Vec::with_capacity(count);
        for _ in 0..count {
            let start = Instant::now();
            let options = CallOptions::default();
            self.client.call_named("bench_echo", nothing.clone(), options).await?;
            times.push(start.elapsed());
        }
        Ok(median_us(times))
    }
}

fn median_us(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// Fills the timeline and sets the loop.
async fn place_regions(client: &Client) -> anyhow::Result<()> {
    let abc = AbcToMidiRequest {
        abc: TUNE.to_owned(),
        tune: None,
        tempo_override: None,
        transpose: None,
        velocity: None,
        channel: None,
        chords: false,
        tags: vec![],
        creator: None,
        parent_id: None,
        variation_set_id: None,
    };
    let midi = client.call::<AbcToMidi>(abc).await?.artifact_id.to_string();
    for number in 0..REGIONS {
        let content_id = match number % MIDI_EVERY {
            0 => midi.clone(),
            _ => stored_noise(client, number as u32).await?,
        };
        client.call::<GardenCreateRegion>(region(content_id)).await?;
    }
    let range = GardenSetLoopRequest { start: Some(0.0), end: Some(BEATS) };
    client.submit::<GardenSetLoop>(range).await?;
    Ok(())
}

fn region(content_id: String) -> GardenCreateRegionRequest {
    GardenCreateRegionRequest {
        position: 0.0,
        duration: Some(BEATS),
        behavior_type: RegionBehavior::PlayContent,
        content_id,
        gain_db: Some(-30.0),
        pan: Some(0.25),
        offset_seconds: None,
        fade_in: Some(1.0),
        fade_out: Some(1.0),
        crossfade: None,
        repeat: None,
        approval: None,
        if_late: None,
        name: None,
        tags: vec![],
    }
}

/// Stores a stereo file of noise and returns its hash.
async fn stored_noise(client: &Client, seed: u32) -> anyhow::Result<String> {
    let mut file = Cursor::new(Vec::new());
    let mut sink = WavSink::new(&mut file, WavFormat::Int16, 2, RATE)?;
    let mut state = seed.wrapping_mul(2_654_435_761).max(1);
    let n_samples = (BEATS / 2.0) as usize * RATE as usize * 2;
    let samples: Vec<f32> = (0..n_samples)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            f32::from((state >> 16) as i16) / 32_768.0
        })
        .collect();
    sink.write(&samples)?;
    sink.finish()?;
    let stored = client.upload(&file.into_inner()[..], "audio/wav").await?;
    Ok(stored.hash.context("no hash")?.to_string())
}

/// Sends commands until it is aborted: seeks, plays and planned seeks, each with a new plan, and now
/// and then a change of tempo or a region that moves.
async fn send_commands(client: Client, region_id: RegionId) {
    let pause = Duration::from_secs(1) * BURST as u32 / COMMANDS_PER_SECOND as u32;
    let mut bursts = tokio::time::interval(pause);
    let mut under_way = JoinSet::new();
    let mut number = 0;
    loop {
        bursts.tick().await;
        for _ in 0..BURST {
            number += 1;
            // A full queue is part of the load.
            let client = client.clone();
            under_way.spawn(async move { drop(send_command(&client, region_id, number).await) });
        }
        while under_way.try_join_next().is_some() {}
    }
}

async fn send_command(client: &Client, region_id: RegionId, number: u64) -> anyhow::Result<()> {
    let (turn, n_edits) = (number % EDIT_EVERY, number / EDIT_EVERY);
    let beat = (number % SEEK_BEATS) as f64;
    match (turn, n_edits % 2) {
        (0, 0) => {
            let bpm = 119.0 + (n_edits % 4) as f64 / 2.0;
            let tempo =
                GardenSetTempoRequest { bpm, beat: Some(BEATS), time_signature: None, at: None };
            client.submit::<GardenSetTempo>(tempo).await?;
        }
        (0, _) => {
            // Within a tick of where it was: it still sounds with the others.
            let new_position = (n_edits % 4) as f64 / 1920.0;
            client
                .submit::<GardenMoveRegion>(GardenMoveRegionRequest { region_id, new_position })
                .await?;
        }
        (turn, _) if turn % 4 == 1 => {
            client.submit::<GardenSeek>(GardenSeekRequest { beat, at: None }).await?;
        }
        (turn, _) if turn % 8 == 2 => {
            let at = Some(GardenAt::NextBeat);
            client.submit::<GardenSeek>(GardenSeekRequest { beat, at }).await?;
        }
        _ => {
            client.submit::<GardenPlay>(GardenPlayRequest { at: None }).await?;
        }
    }
    Ok(())
}

/// Reads what is heard until it is aborted.
async fn listen(_connection: Connection, mut sound: Incoming) {
    while let Some(Ok(_)) = sound.frame().await {}
}

/// A thread that computes nothing, on one core.
struct BusyCore(Arc<AtomicBool>);

impl BusyCore {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        std::thread::spawn(move || {
            while !flag.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
        });
        Self(stop)
    }
}

impl Drop for BusyCore {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
