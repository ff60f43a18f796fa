//! Devices that need no other program's opinion: a command, and the loss of a device.

use std::time::Duration;

use ringback_garden::DeviceChoice;
use ringback_garden::Settings;
use ringback_garden::content::Source;
use ringback_garden::garden::Garden;
use ringback_garden::transport::Action;
use ringback_proto::garden::command::CreateRegionArguments;
use ringback_proto::garden::{
    GardenDevice, GardenDeviceState, GardenEvent, GardenRegion, Ticks, TroubleKind,
};

use crate::fluidsynth::file;
use crate::support::{RATE, Shop, chord, midi, region, settings, timeline};

/// Set for the process that finds no sound server.
const NO_SERVER: &str = "GARDEN_TEST_NO_SERVER";

/// Longer than a device takes to be tried again.
const TIME_MAX: Duration = Duration::from_secs(30);

async fn until(garden: &Garden, is_so: impl Fn(&GardenDevice) -> bool) -> GardenDevice {
    let waiting = async {
        loop {
            let device = garden.handle().status().await.unwrap().device;
            if is_so(&device) {
                return device;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIME_MAX, waiting).await.unwrap()
}

fn started(device: DeviceChoice) -> (Garden, tokio::sync::mpsc::Receiver<GardenEvent>) {
    let settings = Settings { device, ..settings() };
    Garden::start(&settings, Source::new(None, None)).unwrap()
}

async fn end(garden: Garden) {
    tokio::task::spawn_blocking(|| garden.close()).await.unwrap();
}

#[tokio::test]
async fn a_program_gets_what_is_played() {
    let shop = Shop::new();
    let frames = chord(RATE, 0.5, 0.7, &[220.0, 333.0]);
    shop.write("a.wav", RATE, &frames);
    let regions = vec![region(1, shop.store("a.wav", "audio/wav"), 0.0)];
    let timeline = timeline(regions);
    let path = shop.path("played.raw");
    let device = DeviceChoice::Command(format!("dd bs=8192 status=none of={path}"));
    shop.play(timeline, device).await;
    let bytes = std::fs::read(path).unwrap();
    let samples: Vec<f32> = bytes
        .chunks_exact(4)
        .map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
        .collect();
    // The first frame of the chord is silent too.
    let start = samples.iter().position(|sample| *sample != 0.0).unwrap() - 2;
    let expected: Vec<f32> = frames.into_iter().flatten().collect();
    assert!(samples[start..start + expected.len()] == expected);
}

/// Rule: a lost device is replaced by none, reported, and tried again.
#[tokio::test]
async fn a_lost_device_is_replaced_reported_and_tried_again() {
    // It reads a little and ends.
    let (garden, mut events) = started(DeviceChoice::Command("head -c 8192".to_owned()));
    let is_lost = |device: &GardenDevice| {
        device.message.as_ref().is_some_and(|message| message.contains("cannot write to"))
    };
    let lost = until(&garden, is_lost).await;
    assert!(lost.kind == "null" && lost.state == GardenDeviceState::Lost, "{lost:?}");
    until(&garden, |device| device.kind == "command").await;
    end(garden).await;
    let mut is_reported = false;
    while let Some(event) = events.recv().await {
        is_reported |= matches!(event, GardenEvent::Trouble(trouble)
            if trouble.kind == TroubleKind::Device);
    }
    assert!(is_reported);
}

/// Rule: a disk that stalls is not heard: what is prepared plays on, and what waits for the disk comes
/// when it answers.
#[tokio::test]
async fn a_disk_that_stalls_is_not_heard() {
    let shop = Shop::new();
    shop.write("a.wav", RATE, &chord(RATE, 60.0, 0.5, &[220.0]));
    std::fs::write(shop.path("c.mid"), file(500_000)).unwrap();
    let stalled = shop.path("font.sf2");
    rustix::fs::mkfifoat(rustix::fs::CWD, stalled.as_str(), rustix::fs::Mode::RWXU).unwrap();
    let ahead = Duration::from_secs(1);
    let soundfont = Some(stalled.clone());
    let device = DeviceChoice::Null;
    let settings = Settings { ahead, soundfont, device, ..settings() };
    let (garden, _events) = Garden::start(&settings, shop.source()).unwrap();
    let handle = garden.handle();
    let place = async |region, revision| {
        let arguments = CreateRegionArguments { region, revision };
        handle.create_region(arguments, if revision == 1 { TIME_MAX } else { Duration::ZERO }).await
    };
    place(region(1, shop.store("a.wav", "audio/wav"), 0.0), 1).await.unwrap();
    handle.transport(Action::Play, None, None).await.unwrap();
    let notes = midi(2, shop.store("c.mid", "audio/midi"), 20.0);
    let duration = Some(Ticks(4 * Ticks::PER_BEAT));
    // Its SoundFont is a pipe into which nobody writes: the reader waits there.
    place(GardenRegion { duration, ..notes }, 2).await.unwrap();
    let status = async || handle.status().await.unwrap();
    let before = status().await;
    let longer_than_ahead = u64::from(RATE) * 3 / 2;
    let playing = async {
        while status().await.counters.frames < before.counters.frames + longer_than_ahead {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIME_MAX, playing).await.unwrap();
    assert_eq!(status().await.counters.underruns, before.counters.underruns);
    // The disk answers, and what it says is no font; so the reader can end.
    let pipe = shop.path("pipe");
    std::fs::rename(&stalled, &pipe).unwrap();
    std::fs::write(&stalled, b"no font").unwrap();
    std::fs::write(&pipe, b"no font").unwrap();
    end(garden).await;
}

/// Looks for a sound server: only for the test below, as a process of its own, because the environment
/// is that of a whole process.
#[tokio::test]
async fn a_process_finds_no_sound_server() {
    if std::env::var_os(NO_SERVER).is_none() {
        return;
    }
    let (garden, _events) = started(DeviceChoice::Auto);
    let device = until(&garden, |device| device.state == GardenDeviceState::Fallback).await;
    assert_eq!(device.kind, "null");
    let message = device.message.unwrap();
    assert!(message.contains("cannot open the device `pulse`"), "{message}");
    end(garden).await;
}

/// Rule: without a sound server, `auto` plays nowhere, and the status says so.
#[test]
fn auto_plays_nowhere_without_a_sound_server() {
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "devices::a_process_finds_no_sound_server"])
        .env(NO_SERVER, "1")
        .env("PULSE_SERVER", "unix:/nowhere/native")
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

#[tokio::test]
async fn a_device_that_does_not_exist_is_replaced_and_the_status_says_why() {
    let (garden, _events) = started(DeviceChoice::Command("/no/such/program".to_owned()));
    let device = until(&garden, |device| device.state == GardenDeviceState::Fallback).await;
    assert_eq!(device.kind, "null");
    assert!(device.message.unwrap().contains("/no/such/program"));
    end(garden).await;
}
