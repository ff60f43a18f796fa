//! Devices that need no other program's opinion: a command, and the loss of a device.

use std::time::Duration;

use ringback_garden::DeviceChoice;
use ringback_garden::Settings;
use ringback_garden::content::Source;
use ringback_garden::garden::Garden;
use ringback_proto::garden::{GardenDevice, GardenDeviceState, GardenEvent, TroubleKind};

use crate::support::{RATE, Shop, chord, region, settings, timeline};

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

#[tokio::test]
async fn a_device_that_does_not_exist_is_replaced_and_the_status_says_why() {
    let (garden, _events) = started(DeviceChoice::Command("/no/such/program".to_owned()));
    let device = until(&garden, |device| device.state == GardenDeviceState::Fallback).await;
    assert_eq!(device.kind, "null");
    assert!(device.message.unwrap().contains("/no/such/program"));
    end(garden).await;
}
