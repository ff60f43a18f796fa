//! The garden process with a real daemon: commands arrive, the timeline comes back, events go out.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should stop here")]

use std::time::Duration;

use camino::Utf8PathBuf;
use ringback_client::{Client, Outcome};
use ringback_garden::{DeviceChoice, RunError, Settings};
use ringback_proto::ErrorKind;
use ringback_proto::garden::{GardenDeviceState, TransportState};
use ringback_proto::ids::BlobHash;
use ringback_proto::request::{
    GardenCreateRegionRequest, GardenDeleteRegionRequest, GardenEmergencyPauseRequest,
    GardenPlayRequest, GardenSeekRequest, GardenSetTempoRequest, GardenStatusRequest,
    GardenStatusResponse, RegionBehavior,
};
use ringback_proto::tool::tools::{
    GardenCreateRegion, GardenDeleteRegion, GardenEmergencyPause, GardenPlay, GardenSeek,
    GardenSetTempo, GardenStatus,
};
use ringback_testkit::{GRACE, World, wait_for, within};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// A garden in this process.
struct Running {
    tasks: JoinSet<Result<(), RunError>>,
    stop: oneshot::Sender<()>,
}

impl Running {
    fn start(world: &World, device: DeviceChoice, has_blobs: bool) -> Self {
        let daemon = world.client_config(world.admin_token());
        let blobs = Utf8PathBuf::from_path_buf(world.dir().to_owned()).unwrap();
        let blobs = has_blobs.then(|| blobs.join("data").join(ringback_blobs::DIR));
        let settings = Settings { blobs, device, buffer_frames: 1024, ..Settings::new(daemon) };
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

async fn store(client: &Client, frames: &[[f32; 2]]) -> BlobHash {
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
    client.upload(file.into_inner().as_slice(), "audio/wav").await.unwrap().hash.unwrap()
}

fn region(content: BlobHash, position: f64) -> GardenCreateRegionRequest {
    GardenCreateRegionRequest {
        position,
        duration: None,
        behavior_type: RegionBehavior::PlayContent,
        content_id: content.to_string(),
        gain_db: None,
        pan: None,
        offset_seconds: None,
        fade_in: None,
        fade_out: None,
        name: None,
        tags: Vec::new(),
    }
}

async fn play(client: &Client) {
    let played = client.submit::<GardenPlay>(GardenPlayRequest { at: None }).await.unwrap();
    assert!(matches!(played, Outcome::Accepted { job_id: Some(_), .. }), "{played:?}");
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
        let created = client.call::<GardenCreateRegion>(region(content, 0.0)).await.unwrap();
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
    let first = client.call::<GardenCreateRegion>(region(content, 0.0)).await.unwrap();
    client.call::<GardenCreateRegion>(region(content, 4.0)).await.unwrap();
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
    let refused = client.call::<GardenCreateRegion>(region(text, 0.0)).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    let content = store(&client, &sound().repeat(20)).await;
    client.call::<GardenCreateRegion>(region(content, 0.0)).await.unwrap();
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

/// A garden without a daemon says so, instead of waiting.
#[tokio::test]
async fn without_a_daemon_there_is_no_garden() {
    let mut daemon =
        ringback_client::Config::new("ipc:///nowhere/at.all", ringback_client::Credentials::None);
    daemon.connect_timeout = Duration::from_millis(50);
    let refused = ringback_garden::run(Settings::new(daemon), std::future::pending()).await;
    assert!(matches!(refused, Err(RunError::Connect(_))), "{refused:?}");
}
