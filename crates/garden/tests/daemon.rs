//! The garden process with a real daemon: commands arrive, the timeline comes back, events go out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

#[path = "daemon/promises.rs"]
mod promises;

use std::process::Stdio;
use std::time::Duration;

use camino::Utf8PathBuf;
use ringback_client::{Client, Outcome};
use ringback_garden::{DeviceChoice, RunError, Settings};
use ringback_proto::garden::{GardenDeviceState, TransportState};
use ringback_proto::request::{
    ArtifactCreateRequest, GardenCreateRegionRequest, GardenDeleteRegionRequest,
    GardenEmergencyPauseRequest, GardenPlayRequest, GardenSeekRequest, GardenSetTempoRequest,
    GardenStatusRequest, GardenStatusResponse, GraphQueryRequest, RegionBehavior,
};
use ringback_proto::tool::tools::{
    ArtifactCreate, GardenCreateRegion, GardenDeleteRegion, GardenEmergencyPause, GardenPlay,
    GardenSeek, GardenSetTempo, GardenStatus, GraphQuery,
};
use ringback_proto::value::Value;
use ringback_proto::{Error, ErrorKind};
use ringback_testkit::{GRACE, Setup, World, wait_for, within};
use tokio::io::AsyncReadExt as _;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// A garden in this process.
struct Running {
    tasks: JoinSet<Result<(), RunError>>,
    stop: oneshot::Sender<()>,
}

impl Running {
    fn start(world: &World, device: DeviceChoice, has_blobs: bool) -> Self {
        Self::with(Self::settings(world, device, has_blobs))
    }

    fn settings(world: &World, device: DeviceChoice, has_blobs: bool) -> Settings {
        let daemon = world.client_config(world.admin_token());
        let blobs = Utf8PathBuf::from_path_buf(world.dir().to_owned()).unwrap();
        let blobs = has_blobs.then(|| blobs.join("data").join(ringback_blobs::DIR));
        let events = Some(world.events().to_owned());
        Settings { events, blobs, device, buffer_frames: 1024, ..Settings::new(daemon) }
    }

    fn with(settings: Settings) -> Self {
        let (stop, stopped) = oneshot::channel::<()>();
        let mut tasks = JoinSet::new();
        tasks.spawn(ringback_garden::run(settings, async { drop(stopped.await) }));
        Self { tasks, stop }
    }

    async fn end(mut self) {
        self.stop.send(()).expect("the garden runs");
        within("the end of the garden", self.tasks.join_next()).await.unwrap().unwrap().unwrap();
    }
}

async fn status(client: &Client) -> Option<GardenStatusResponse> {
    client.call::<GardenStatus>(GardenStatusRequest {}).await.ok()
}

async fn ready(client: &Client) {
    wait_for("the garden", async || status(client).await.is_some()).await;
}

/// A second of sound that is easy to recognise.
fn sound() -> Vec<[f32; 2]> {
    (0..48_000).map(|idx| (idx % 100) as f32 / 200.0).map(|level| [level, -level]).collect()
}

fn wav(frames: &[[f32; 2]]) -> Vec<u8> {
    let mut file = std::io::Cursor::new(Vec::new());
    let spec = hound::WavSpec {
        channels: 2,
        sample_rate: 48_000,
        bits_per_sample: 32,
        sample_format: hound::SampleFormat::Float,
    };
    let mut writer = hound::WavWriter::new(&mut file, spec).unwrap();
    for sample in frames.iter().flatten() {
        writer.write_sample(*sample).unwrap();
    }
    writer.finalize().unwrap();
    file.into_inner()
}

async fn store(client: &Client, frames: &[[f32; 2]]) -> String {
    let stored = client.upload(wav(frames).as_slice(), "audio/wav").await.unwrap();
    stored.hash.unwrap().to_string()
}

fn region(content: &str, position: f64) -> GardenCreateRegionRequest {
    GardenCreateRegionRequest {
        position,
        duration: None,
        behavior_type: RegionBehavior::PlayContent,
        content_id: content.to_owned(),
        gain_db: None,
        pan: None,
        offset_seconds: None,
        fade_in: None,
        fade_out: None,
        crossfade: None,
        repeat: None,
        approval: None,
        if_late: None,
        name: None,
        tags: Vec::new(),
    }
}

async fn try_play(client: &Client) -> Result<(), Error> {
    let played = client.submit::<GardenPlay>(GardenPlayRequest { at: None }).await?;
    assert!(matches!(played, Outcome::Accepted { job_id: Some(_), .. }), "{played:?}");
    Ok(())
}

async fn play(client: &Client) {
    try_play(client).await.unwrap();
}

/// Rule: what was heard is a row: which region, which artifact, from which beat to which.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_played_is_recorded_as_heard() {
    let world = World::with_hoot().await;
    let garden = Running::start(&world, DeviceChoice::Null, true);
    let client = world.admin().await;
    ready(&client).await;
    let artifact = ArtifactCreateRequest {
        content_hash: store(&client, &sound()).await.parse().unwrap(),
        tags: Vec::new(),
        creator: None,
        metadata: None,
        parent_id: None,
        variation_set_id: None,
    };
    let artifact = client.call::<ArtifactCreate>(artifact).await.unwrap().artifact_id;
    let placed = region(&artifact.to_string(), 1.0);
    let region_id = client.call::<GardenCreateRegion>(placed).await.unwrap().region_id;
    play(&client).await;
    let query = "SELECT region_id, artifact_id, start_position, end_position FROM heard";
    let rows = async || {
        let query = GraphQueryRequest { query: query.to_owned(), variables: None, limit: None };
        client.call::<GraphQuery>(query).await.unwrap().results
    };
    wait_for("a row", async || !rows().await.is_empty()).await;
    let rows = rows().await;
    let expected = [
        ("region_id", Value::Text(region_id.to_string())),
        ("artifact_id", Value::Text(artifact.to_string())),
        ("start_position", Value::Float(1.0)),
        ("end_position", Value::Float(3.0)),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(rows, [Value::Map(expected.to_vec())]);
    garden.end().await;
    world.stop().await;
}

/// Rule: content that an agent places is heard, sample by sample, whether the garden reads the
/// daemon's directory or asks the daemon.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_placed_is_played() {
    for has_blobs in [true, false] {
        let world = World::with_hoot().await;
        let path = Utf8PathBuf::from_path_buf(world.dir().join("played.wav")).unwrap();
        let garden = Running::start(&world, DeviceChoice::File(path.clone()), has_blobs);
        let client = world.admin().await;
        ready(&client).await;
        let content = store(&client, &sound()).await;
        let created = client.call::<GardenCreateRegion>(region(&content, 0.0)).await.unwrap();
        assert!((created.duration - 2.0).abs() < 1e-9, "a second at 120 beats per minute");
        play(&client).await;
        wait_for("the end", async || {
            status(&client).await.is_some_and(|status| {
                status.state == TransportState::Stopped && status.counters.frames >= 48_000
            })
        })
        .await;
        garden.end().await;
        let samples: Vec<f32> =
            hound::WavReader::open(path).unwrap().samples().map(Result::unwrap).collect();
        let expected: Vec<f32> = sound().into_iter().flatten().collect();
        assert!(samples[..expected.len()] == expected, "blobs: {has_blobs}");
        client.close().await;
        drop(world.stop().await);
    }
}

/// Rule: after a restart of the daemon or of the garden, the timeline is the one that was committed.
#[tokio::test(flavor = "multi_thread")]
async fn the_timeline_comes_back_after_a_restart_of_either() {
    let world = World::with_hoot().await;
    let garden = Running::start(&world, DeviceChoice::Null, true);
    let client = world.admin().await;
    ready(&client).await;
    let content = store(&client, &sound()).await;
    let first = client.call::<GardenCreateRegion>(region(&content, 0.0)).await.unwrap();
    client.call::<GardenCreateRegion>(region(&content, 4.0)).await.unwrap();
    let request = GardenSetTempoRequest { bpm: 90.0, beat: None, time_signature: None, at: None };
    client.submit::<GardenSetTempo>(request).await.unwrap();
    let seek = GardenSeekRequest { beat: 3.0, at: None };
    client.submit::<GardenSeek>(seek).await.unwrap();
    client.close().await;
    let world = world.restart(GRACE).await;
    let client = world.admin().await;
    ready(&client).await;
    let back = status(&client).await.unwrap();
    assert_eq!((back.region_count, back.revision), (2, 3));
    assert!((back.tempo_bpm - 90.0).abs() < 1e-9 && (back.position_beats - 3.0).abs() < 1e-9);
    garden.end().await;
    let garden = Running::start(&world, DeviceChoice::Null, true);
    ready(&client).await;
    let back = status(&client).await.unwrap();
    assert_eq!((back.region_count, back.revision, back.state), (2, 3, TransportState::Stopped));
    let delete = GardenDeleteRegionRequest { region_id: first.region_id };
    client.submit::<GardenDeleteRegion>(delete).await.unwrap();
    assert_eq!(status(&client).await.unwrap().region_count, 1);
    garden.end().await;
    client.close().await;
    drop(world.stop().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_emergency_pause_is_silent_at_once_and_bad_content_is_refused() {
    let world = World::with_hoot().await;
    let garden = Running::start(&world, DeviceChoice::Null, true);
    let client = world.admin().await;
    ready(&client).await;
    let nothing = client.submit::<GardenPlay>(GardenPlayRequest { at: None }).await.unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::Conflict);
    let text = client.upload(&b"no sound"[..], "audio/wav").await.unwrap().hash.unwrap();
    let text = text.to_string();
    let refused = client.call::<GardenCreateRegion>(region(&text, 0.0)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    let content = store(&client, &sound().repeat(20)).await;
    client.call::<GardenCreateRegion>(region(&content, 0.0)).await.unwrap();
    play(&client).await;
    wait_for("sound", async || {
        status(&client).await.is_some_and(|status| status.position_beats > 0.1)
    })
    .await;
    client.submit::<GardenEmergencyPause>(GardenEmergencyPauseRequest {}).await.unwrap();
    let paused = status(&client).await.unwrap();
    assert_eq!(paused.state, TransportState::Paused);
    assert_eq!((paused.counters.underruns, paused.counters.late), (0, 0));
    assert_eq!(paused.device.state, GardenDeviceState::Running);
    garden.end().await;
    client.close().await;
    drop(world.stop().await);
}

/// Rule: a device that is lost is replaced by silence in real time, and tried again.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_device_is_replaced_and_tried_again() {
    let world = World::with_hoot().await;
    // It reads one buffer and ends.
    let device = DeviceChoice::Command("head -c 8192".to_owned());
    let garden = Running::start(&world, device, true);
    let client = world.admin().await;
    ready(&client).await;
    let device = async || status(&client).await.map(|status| status.device);
    wait_for("the loss", async || {
        device().await.is_some_and(|device| device.state == GardenDeviceState::Lost)
    })
    .await;
    let lost = device().await.unwrap();
    assert!(lost.kind == "null" && lost.message.is_some(), "{lost:?}");
    wait_for("another attempt", async || {
        device().await.is_some_and(|device| device.kind == "command")
    })
    .await;
    within("the end", garden.end()).await;
    client.close().await;
    drop(world.stop().await);
}

/// Starts a program that decodes what is heard into 32-bit floats on its standard output.
fn ffmpeg(world: &World) -> tokio::process::Child {
    let url = format!("http://{}/v1/garden/monitor.wav", world.address());
    let header = format!("Authorization: Bearer {}\r\n", world.admin_token().expose());
    tokio::process::Command::new("ffmpeg")
        .args(["-v", "error", "-headers", &header, "-i", &url])
        .args(["-f", "f32le", "-flush_packets", "1", "-"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("`ffmpeg` is installed by the tests' preparation")
}

/// Returns the frames from the first that is not silent on.
fn from_first_sound(bytes: &[u8]) -> Vec<[f32; 2]> {
    let samples = bytes.chunks_exact(4).map(|it| f32::from_le_bytes(it.try_into().unwrap()));
    let samples: Vec<f32> = samples.collect();
    let frames = samples.chunks_exact(2).map(|frame| [frame[0], frame[1]]);
    frames.skip_while(|frame| *frame == [0.0, 0.0]).collect()
}

/// Rule: what is heard over HTTP is what is played, sample by sample, for a player that exists; and
/// the stream ends with the garden.
#[tokio::test(flavor = "multi_thread")]
async fn a_player_hears_over_http_what_is_played() {
    let world = Setup::new().hoot().plain_http().start().await;
    // Much is mixed in advance: this is about sound, however busy the machine is.
    let garden = Running::with(Settings {
        device: DeviceChoice::Null,
        buffer_frames: 1024,
        ahead: Duration::from_secs(2),
        ..Settings::new(world.client_config(world.admin_token()))
    });
    let client = world.admin().await;
    ready(&client).await;
    let content = store(&client, &sound()).await;
    client.call::<GardenCreateRegion>(region(&content, 0.0)).await.unwrap();
    let mut player = ffmpeg(&world);
    let mut decoded = player.stdout.take().unwrap();
    let mut heard = vec![0; 8];
    within("silence", decoded.read_exact(&mut heard)).await.unwrap();
    assert_eq!(heard, [0; 8]);
    play(&client).await;
    // The sound starts with a silent frame.
    let expected = &sound()[1..];
    within("the sound", async {
        while from_first_sound(&heard).len() < expected.len() {
            assert!(decoded.read_buf(&mut heard).await.unwrap() > 0, "the stream goes on");
        }
    })
    .await;
    assert!(from_first_sound(&heard).starts_with(expected));
    garden.end().await;
    within("the rest", decoded.read_to_end(&mut heard)).await.unwrap();
    assert!(within("the end of the player", player.wait()).await.unwrap().success());
    client.close().await;
    drop(world.stop().await);
}

/// A garden without a daemon says so, instead of waiting.
#[tokio::test]
async fn without_a_daemon_there_is_no_garden() {
    let mut daemon =
        ringback_client::Config::new("ipc:///nowhere/at.all", ringback_client::Credentials::None);
    daemon.connect_timeout = Duration::from_millis(50);
    let refused = ringback_garden::run(Settings::new(daemon), std::future::pending()).await;
    assert!(matches!(refused, Err(RunError::Connect(_))), "{refused:?}");
}
